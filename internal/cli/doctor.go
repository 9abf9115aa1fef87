package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tgspool/tgspool/internal/config"
	"github.com/tgspool/tgspool/internal/localapi"
	"github.com/tgspool/tgspool/internal/manage"
)

// grade is how a check of the doctor ends.
type grade string

const (
	gradeOK   grade = "ok"
	gradeWarn grade = "warn"
	gradeFail grade = "fail"
)

// diagnosis is the result of one check: what was found and what to do.
type diagnosis struct {
	Check string `json:"check"`
	Grade grade  `json:"status"`
	Found string `json:"found"`
	Do    string `json:"do,omitempty"`
}

// doctor looks at one thing after the other, and says so at once: some take a
// while.
type doctor struct {
	a     *app
	cfg   *config.Config
	found []diagnosis
}

func (a *app) doctorCommand() *cobra.Command {
	var report string
	c := &cobra.Command{
		Use: "doctor", Short: "Look for what keeps the bots from working, and say what to do", Args: cobra.NoArgs,
		Long: "Look for what keeps the bots from working, and say what to do: settings, tokens, the clock, names,\n" +
			"TLS and the proxy on the way to Telegram, the disk and its speed, the store, the service. Run it\n" +
			"with sudo where only root may read the tokens. It changes nothing; to measure the disk it writes\n" +
			"a small file beside the store and removes it.\n\n" +
			"It ends with 0 unless a check failed (65, or 78 for the settings). --report writes all that helps\n" +
			"others to help you, without tokens, texts and other secrets.",
		Example: "  sudo tgspool doctor\n  sudo tgspool doctor --report report.txt",
		RunE: func(c *cobra.Command, _ []string) error {
			d := &doctor{a: a}
			code := d.examine(c.Context())
			if report != "" {
				if err := d.report(c.Context(), report); err != nil {
					return err
				}
				a.complain("hint", "the report is in "+report+"; read it before you give it away")
			}
			if code != exitOK {
				return silent(code)
			}
			return nil
		},
	}
	c.Flags().StringVar(&report, "report", "", "also write a report to this `file`")
	return a.jsonFlag(c)
}

// say shows the end of a check.
func (d *doctor) say(check string, g grade, do, format string, args ...any) {
	found := diagnosis{Check: check, Grade: g, Found: safe(fmt.Sprintf(format, args...)), Do: do}
	d.found = append(d.found, found)
	if d.a.json {
		if raw, err := json.Marshal(found); err == nil { // it always is
			d.a.out.jsonLine(raw)
		}
	} else {
		code := map[grade]string{gradeOK: green, gradeWarn: yellow, gradeFail: red}[g]
		d.a.out.printf("%s  %-9s %s\n", d.a.colour(code, fmt.Sprintf("%-4s", g)), check, found.Found)
		if do != "" && g != gradeOK {
			d.a.out.printf("%16s→ %s\n", "", do)
		}
	}
	_ = d.a.out.flush() // the end of the command tells what is wrong with it
}

// examine carries out all checks and returns the exit code.
func (d *doctor) examine(ctx context.Context) int {
	if !d.settings() {
		return exitConfig
	}
	for _, bot := range d.cfg.Bots {
		d.bot(ctx, bot)
	}
	d.disk(filepath.Dir(d.cfg.Store.Path))
	d.store(ctx)
	d.unit(ctx)
	for _, f := range d.found {
		if f.Grade == gradeFail {
			return exitData
		}
	}
	return exitOK
}

// settings reads them; false when they can't be used.
func (d *doctor) settings() bool {
	cfg, err := d.a.load()
	if err != nil {
		e := explain(err)
		do := "mend what is named; tgspool config check shows all of it"
		if e.hint != "" {
			do = strings.Join(strings.Fields(e.hint), " ")
		}
		d.say("settings", gradeFail, do, "%s", strings.TrimSpace(e.msg))
		return false
	}
	d.cfg = cfg
	problems := append(config.Check(cfg), d.a.checkTokens(cfg)...)
	for _, p := range problems {
		d.say("settings", gradeWarn, "look at that line", "%s", p)
	}
	if len(problems) == 0 {
		d.say("settings", gradeOK, "", "%s", plural(len(cfg.Bots), "bot"))
	}
	return true
}

// report writes what was found, and how the daemon sees itself. The status holds
// names and numbers, no texts and no tokens.
func (d *doctor) report(ctx context.Context, file string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "tgspool %s, %s/%s, %s, %s\n\n", d.a.version, runtime.GOOS, runtime.GOARCH, runtime.Version(), time.Now().UTC().Format(time.RFC3339))
	for _, name := range []string{"/etc/os-release", "/proc/version", "/proc/device-tree/model"} {
		if text, err := os.ReadFile(name); err == nil {
			first, _, _ := strings.Cut(strings.Trim(string(text), "\x00\n"), "\n")
			fmt.Fprintf(&b, "%s: %s\n", name, safe(first))
		}
	}
	b.WriteString("\n")
	for _, f := range d.found {
		fmt.Fprintf(&b, "%-4s  %-9s %s\n", f.Grade, f.Check, f.Found)
	}
	if client, err := d.a.dial(); err == nil {
		defer client.Close()
		var status manage.Status
		if err := client.Do(ctx, localapi.Request{Method: http.MethodGet, Path: "/v1/status"}, &status); err == nil {
			raw, err := json.MarshalIndent(status, "", "  ")
			if err == nil {
				fmt.Fprintf(&b, "\nstatus %s\n", raw)
			}
		}
	}
	if d.cfg != nil {
		// Settings without secrets, as config show has them.
		fmt.Fprintf(&b, "\n%s", d.cfg.TOML())
	}
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		return &exitError{code: exitIO, msg: "writing the report: " + err.Error()}
	}
	return nil
}
