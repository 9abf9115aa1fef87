// Package internal holds the rooms; this file holds their walls. It reads the
// sources only, so that it says what is wrong even where a room doesn't compile.
package internal

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	module       = "github.com/tgspool/tgspool/"
	mainRoom     = "cmd/tgspool"
	maxFileLines = 450
	maxFuncLines = 90
)

// rooms is the table of internal/README.md: which of our packages each room may
// import. The loops (intake, handler, sender) and the faces of the local API
// never import each other: they meet in the spool, and in the daemon that wires
// them. Tests are free: what they import never reaches the binary.
var rooms = map[string][]string{
	mainRoom:      {"cli"},
	"spool":       {},
	"gate":        {},
	"botapi":      {},
	"text":        {},
	"config":      {},
	"telegramsim": {"botapi"},
	"outbox":      {"botapi", "spool", "text"},
	"wire":        {"botapi", "spool"},
	"intake":      {"botapi", "gate", "spool"},
	"handler":     {"botapi", "gate", "outbox", "spool", "text", "wire"},
	"sender":      {"botapi", "gate", "spool"},
	"botserver":   {"botapi", "gate", "outbox", "spool", "wire"},
	"manage":      {"gate", "outbox", "spool", "text", "wire"},
	"dashboard":   {"spool"},
	"localapi":    {"botserver", "dashboard", "manage", "spool"},
	"daemon": {
		"botapi", "botserver", "config", "dashboard", "gate", "handler", "intake",
		"localapi", "manage", "outbox", "sender", "spool", "text", "wire",
	},
	"demo":  {"spool", "telegramsim"},
	"setup": {"botapi", "config"},
	"cli": {
		"botapi", "botserver", "config", "daemon", "dashboard", "demo", "gate", "handler", "intake",
		"localapi", "manage", "sender", "setup", "spool", "telegramsim", "text", "wire",
	},
}

// libraries says which rooms may use a library of others. One that isn't here is
// one that nobody decided to depend on.
var libraries = map[string][]string{
	"go.etcd.io/bbolt":                    {"spool"},
	"github.com/fxamacker/cbor/v2":        {"spool"},
	"golang.org/x/time/rate":              {"gate"},
	"github.com/pelletier/go-toml/v2":     {"config"},
	"github.com/coreos/go-systemd/v22":    {"daemon"},
	"github.com/systemd/slog-journal":     {"daemon"},
	"golang.org/x/sync":                   {"daemon"},
	"github.com/spf13/cobra":              {"cli"},
	"github.com/spf13/pflag":              {"cli"},
	"golang.org/x/term":                   {"cli"},
	"github.com/rivo/uniseg":              {"text"},
	"golang.org/x/net/html":               {"text"},
	"golang.org/x/sys/unix":               {"spool", "handler", "localapi", "daemon", "cli"},
	"github.com/prometheus/client_golang": {"manage"},
	"rsc.io/qr":                           {"setup"},
	"github.com/rogpeppe/go-internal":     {},
	"pgregory.net/rapid":                  {},
}

// owned lists what only some rooms may touch, and why the others may not.
var owned = map[string]struct {
	by  []string
	why string
}{
	"os.Exit":              {[]string{mainRoom}, "only main ends the process, so that everything else runs inside a test"},
	"os.Args":              {[]string{mainRoom}, "arguments come in by cli.Main"},
	"os.Stdin":             {[]string{mainRoom}, "the streams come in by cli.Main"},
	"os.Stdout":            {[]string{mainRoom}, "the streams come in by cli.Main"},
	"os.Stderr":            {[]string{mainRoom}, "the streams come in by cli.Main"},
	"signal.Notify":        {[]string{"daemon", "cli"}, "the daemon decides how it stops"},
	"signal.NotifyContext": {[]string{"daemon", "cli"}, "the daemon decides how it stops"},
	"time.Sleep":           {nil, "nothing can end it; wait on a timer and a context"},
	"slog.SetDefault":      {nil, "loggers are handed in"},
	"slog.Default":         {nil, "loggers are handed in"},
}

// source is one parsed Go file: its path below the repository and its room.
type source struct {
	path, room string
	set        *token.FileSet
	file       *ast.File
}

func (s source) isTest() bool { return strings.HasSuffix(s.path, "_test.go") }

// at is where a finding stands, as editors like it.
func (s source) at(pos token.Pos) string {
	return fmt.Sprintf("%s:%d", s.path, s.set.Position(pos).Line)
}

// parse reads one file. Its room is the first folder below internal, or the path
// of the command; what lies directly in internal (this file) is in no room.
func parse(name string, text any) (source, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
	if err != nil {
		return source{}, fmt.Errorf("reading a source file: %w", err)
	}
	room := path.Dir(name)
	if below, ok := strings.CutPrefix(room, "internal/"); ok {
		room, _, _ = strings.Cut(below, "/")
	}
	return source{path: name, room: room, set: set, file: file}, nil
}

// imports finds the imports that the room of s may not have.
func imports(s source) []string {
	if s.isTest() {
		return nil
	}
	allowed, known := rooms[s.room]
	if !known {
		return []string{s.path + ": room " + s.room + " is not in the table"}
	}
	var found []string
	for _, spec := range s.file.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			found = append(found, s.at(spec.Pos())+": import of "+spec.Path.Value)
			continue
		}
		if !mayImport(s.room, allowed, name) {
			found = append(found, s.at(spec.Pos())+": "+s.room+" may not import "+name)
		}
	}
	return found
}

func mayImport(room string, allowed []string, name string) bool {
	if name == "log" {
		return false // slog, and only the logger that was handed in
	}
	if ours, ok := strings.CutPrefix(name, module+"internal/"); ok {
		other, _, _ := strings.Cut(ours, "/")
		if strings.HasSuffix(ours, "test") {
			return false // a room's test kit stays out of the binary
		}
		return other == room || slices.Contains(allowed, other)
	}
	if first, _, _ := strings.Cut(name, "/"); !strings.Contains(first, ".") {
		return true // the standard library
	}
	for library, users := range libraries {
		if name == library || strings.HasPrefix(name, library+"/") {
			return slices.Contains(users, room)
		}
	}
	return false
}

// habits finds what the room of s may not touch, and in tests what makes them
// slow, flaky or silent.
func habits(s source) []string {
	var found []string
	fakeTime := s.isTest() && slices.ContainsFunc(s.file.Imports, func(spec *ast.ImportSpec) bool {
		return spec.Path.Value == `"testing/synctest"`
	})
	ast.Inspect(s.file, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		x, ok := sel.X.(*ast.Ident)
		if !ok {
			return true
		}
		name := x.Name + "." + sel.Sel.Name
		rule, isOwned := owned[name]
		switch {
		case !s.isTest() && isOwned && !slices.Contains(rule.by, s.room):
			found = append(found, s.at(n.Pos())+": "+name+": "+rule.why)
		case s.isTest() && name == "time.Sleep" && !fakeTime:
			found = append(found, s.at(n.Pos())+": time.Sleep in real time: wait for the condition, or use testing/synctest")
		case s.isTest() && slices.Contains([]string{"t.Skip", "t.Skipf", "t.SkipNow"}, name):
			found = append(found, s.at(n.Pos())+": "+name+": a test that may not run proves nothing")
		}
		return true
	})
	return found
}

// sizes finds files and functions that no longer fit their reader.
func sizes(s source) []string {
	if s.isTest() {
		return nil
	}
	var found []string
	if lines := s.set.Position(s.file.FileEnd).Line; lines > maxFileLines {
		found = append(found, fmt.Sprintf("%s: %d lines, over %d: which noun wants a file of its own?", s.path, lines, maxFileLines))
	}
	for _, decl := range s.file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		lines := s.set.Position(f.End()).Line - s.set.Position(f.Pos()).Line + 1
		if lines > maxFuncLines {
			found = append(found, fmt.Sprintf("%s: %s has %d lines, over %d", s.at(f.Pos()), f.Name.Name, lines, maxFuncLines))
		}
	}
	return found
}

// tree parses every Go file of the repository's own packages.
func tree(t *testing.T) []source {
	t.Helper()
	var all []source
	repository := os.DirFS("..")
	for _, top := range []string{"cmd", "internal"} {
		err := fs.WalkDir(repository, top, func(name string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && entry.Name() == "testdata":
				return fs.SkipDir
			case entry.IsDir() || path.Ext(name) != ".go":
				return nil
			}
			text, err := fs.ReadFile(repository, name)
			if err != nil {
				return err
			}
			s, err := parse(name, text)
			all = append(all, s)
			return err
		})
		if err != nil {
			t.Fatalf("walking %s: %v", top, err)
		}
	}
	return all
}

func TestHouse(t *testing.T) {
	all := tree(t)
	for name, rule := range map[string]func(source) []string{
		"imports": imports, "habits": habits, "sizes": sizes,
	} {
		t.Run(name, func(t *testing.T) {
			for _, s := range all {
				for _, finding := range rule(s) {
					t.Error(finding)
				}
			}
		})
	}
}

// TestRulesBite proves that each rule can fail, and lets pass what it should.
func TestRulesBite(t *testing.T) {
	long := "package p\nfunc f() {" + strings.Repeat("\n", maxFuncLines) + "}\n"
	tests := []struct {
		name, file, text string
		rule             func(source) []string
		want             string // part of the one finding; empty: none
	}{
		{"a loop may use the spool", "internal/sender/a.go", `package sender; import _ "` + module + `internal/spool"`, imports, ""},
		{"loops don't know each other", "internal/sender/a.go", `package sender; import _ "` + module + `internal/intake"`, imports, "may not import"},
		{"the spool knows nobody", "internal/spool/a.go", `package spool; import _ "` + module + `internal/botapi"`, imports, "may not import"},
		{"only the spool knows bbolt", "internal/sender/a.go", `package sender; import _ "go.etcd.io/bbolt"`, imports, "may not import"},
		{"the spool knows bbolt", "internal/spool/a.go", `package spool; import _ "go.etcd.io/bbolt/errors"`, imports, ""},
		{"only cli knows cobra", "internal/daemon/a.go", `package daemon; import _ "github.com/spf13/cobra"`, imports, "may not import"},
		{"a library that nobody chose", "internal/cli/a.go", `package cli; import _ "example.com/x"`, imports, "may not import"},
		{"a folder of a room is the room", "internal/spool/x/a.go", `package x; import _ "` + module + `internal/botapi"`, imports, "spool may not"},
		{"a test kit stays in tests", "internal/sender/a.go", `package sender; import _ "` + module + `internal/spool/spooltest"`, imports, "may not import"},
		{"tests are free", "internal/sender/a_test.go", `package sender; import _ "` + module + `internal/telegramsim"`, imports, ""},
		{"an unknown room", "internal/util/a.go", `package util`, imports, "not in the table"},
		{"the old logger", "internal/cli/a.go", `package cli; import _ "log"`, imports, "may not import"},
		{"a room exits", "internal/cli/a.go", `package cli; import "os"; func f() { os.Exit(1) }`, habits, "only main"},
		{"main exits", mainRoom + "/main.go", `package main; import "os"; func main() { os.Exit(1) }`, habits, ""},
		{"a room sleeps", "internal/cli/a.go", `package cli; import "time"; func f() { time.Sleep(1) }`, habits, "time.Sleep"},
		{"a test sleeps", "internal/cli/a_test.go", `package cli; import "time"; func f() { time.Sleep(1) }`, habits, "real time"},
		{"a test sleeps in fake time", "internal/cli/a_test.go", `package cli; import ("time"; _ "testing/synctest"); func f() { time.Sleep(1) }`, habits, ""},
		{"a test skips", "internal/cli/a_test.go", `package cli; import "testing"; func TestX(t *testing.T) { t.Skip() }`, habits, "proves nothing"},
		{"a long file", "internal/cli/a.go", "package cli" + strings.Repeat("\n", maxFileLines+1), sizes, "over 450"},
		{"a file of the full length", "internal/cli/a.go", "package cli" + strings.Repeat("\n", maxFileLines), sizes, ""},
		{"a long function", "internal/cli/a.go", long, sizes, "f has 91 lines"},
		{"a long test", "internal/cli/a_test.go", long, sizes, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := parse(tt.file, tt.text)
			if err != nil {
				t.Fatal(err)
			}
			got := tt.rule(s)
			if tt.want == "" && len(got) > 0 {
				t.Errorf("findings %q, want none", got)
			}
			if tt.want != "" && (len(got) != 1 || !strings.Contains(got[0], tt.want)) {
				t.Errorf("findings %q, want one with %q", got, tt.want)
			}
		})
	}
}

// TestLintTable compares the table above with depguard's in .golangci.yml, which
// says the same for those who look at lint first.
func TestLintTable(t *testing.T) {
	text, err := os.ReadFile("../.golangci.yml")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	room := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if files, ok := strings.CutPrefix(line, `files: ["**/`); ok {
			room, _, _ = strings.Cut(strings.TrimPrefix(files, "internal/"), "/*")
			got[room] = []string{}
		}
		if other, ok := strings.CutPrefix(line, "- "+module+"internal/"); ok && room != "" {
			got[room] = append(got[room], strings.TrimSuffix(other, "$"))
		}
		if strings.HasPrefix(line, `files: ["$test"]`) {
			room = ""
		}
	}
	for name, want := range rooms {
		if slices.Sort(got[name]); !slices.Equal(got[name], want) {
			t.Errorf("depguard lets %s import %q, the table here %q", name, got[name], want)
		}
	}
	for name := range got {
		if _, ok := rooms[name]; !ok {
			t.Errorf("depguard knows a room %s that the table here doesn't", name)
		}
	}
}
