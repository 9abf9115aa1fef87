package cli_test

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tgspool/tgspool/internal/cli"
	"github.com/tgspool/tgspool/internal/config"
)

// printed runs a command that needs no daemon and returns what it prints.
func printed(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if code := cli.Main("v1.2.3", args, strings.NewReader(""), &out, &errs); code != 0 {
		t.Fatalf("tgspool %s ended with %d: %s", strings.Join(args, " "), code, errs.String())
	}
	return out.String()
}

// plain takes off what roff needs, so that a page can be searched.
func plain(page string) string {
	return strings.NewReplacer(`\-`, "-", `\fB`, "", `\fR`, "", `\(aq`, "'", `\(dq`, `"`, `\e`, `\`).Replace(page)
}

// macros are the only requests that the pages use.
var macros = []string{
	".TH", ".SH", ".SS", ".PP", ".TP", ".RS", ".RE", ".EX", ".EE", ".B", ".I", ".RI", ".BR", ".nh", ".ad", ".br", `.\"`,
}

func TestManPagesAreRoff(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1796050939")
	for _, page := range []string{"man8", "man5"} {
		text := printed(t, "docs", page)
		if !strings.Contains(text, `"2026\-11\-30" "tgspool 1.2.3"`) {
			t.Errorf("%s doesn't bear the date and version of its sources", page)
		}
		for line := range strings.Lines(text) {
			request, _, _ := strings.Cut(strings.TrimSpace(line), " ")
			if strings.HasPrefix(line, "'") || strings.HasPrefix(line, ".") && !slices.Contains(macros, request) {
				t.Errorf("%s: text that roff takes for a request: %q", page, line)
			}
		}
	}
}

// TestManPageHasEveryCommand asks the help, not the table that the page is made of.
func TestManPageHasEveryCommand(t *testing.T) {
	page := plain(printed(t, "docs", "man8"))
	var walk func(path []string)
	walk = func(path []string) {
		help := printed(t, append(slices.Clone(path), "--help")...)
		if len(path) > 0 && !strings.Contains(page, `.SS "`+strings.Join(path, " ")) {
			t.Errorf("tgspool %s is missing", strings.Join(path, " "))
		}
		for _, flag := range regexp.MustCompile(`(?m)^\s+(?:-\w, )?(--[a-z-]+)`).FindAllStringSubmatch(help, -1) {
			if flag[1] != "--help" && !strings.Contains(page, flag[1]) {
				t.Errorf("tgspool %s: %s is missing", strings.Join(path, " "), flag[1])
			}
		}
		_, list, found := strings.Cut(help, "Available Commands:\n")
		if !found {
			return
		}
		for line := range strings.Lines(list) {
			fields := strings.Fields(line)
			if len(fields) == 0 {
				return
			}
			if name := fields[0]; name != "help" && name != "completion" {
				walk(append(slices.Clone(path), name))
			}
		}
	}
	walk(nil)
	if strings.Contains(page, "demo-handler") {
		t.Error("a hidden command is in the page")
	}
}

func TestManPageHasEveryKey(t *testing.T) {
	page := plain(printed(t, "docs", "man5"))
	table := ""
	found := map[string]bool{}
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, ".SH "); ok {
			table = strings.TrimPrefix(strings.TrimSuffix(name, `]"`), `"[`)
		}
		if name, _, ok := strings.Cut(line, " ("); ok {
			found[table+"."+name] = true
		}
	}
	for _, key := range config.Keys() {
		if !found[key.Path] {
			t.Errorf("%s is missing", key.Path)
		}
	}
}

func TestSettingsFileIsTheExample(t *testing.T) {
	if printed(t, "docs", "settings") != config.Example() {
		t.Error("docs settings isn't the example of the settings")
	}
}
