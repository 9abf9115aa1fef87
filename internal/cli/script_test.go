package cli_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tgspool/tgspool/internal/cli"
	"github.com/tgspool/tgspool/internal/gate"
	"github.com/tgspool/tgspool/internal/localapi"
	"github.com/tgspool/tgspool/internal/manage"
	"github.com/tgspool/tgspool/internal/spool"
)

// TestMain makes the test's binary the program itself when a script calls it.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"tgspool": func() {
			os.Exit(cli.Main("v1.2.3", os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) //nolint:forbidigo // here it is a program
		},
	})
}

// TestScripts runs the commands against a real store behind the real API. Only
// the loops are missing: what Telegram would have answered, scripts say with
// attempt.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(env *testscript.Env) error {
			env.Values[serverKey{}] = &server{}
			env.Setenv("TGSPOOL_SOCKET", filepath.Join(env.WorkDir, "t.sock"))
			env.Setenv("TZ", "UTC")
			env.Setenv("HOME", env.WorkDir)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "serve": serve, "halt": halt, "damage": damage, "attempt": attempt, "intake": intake, "arrive": arrive, "view": view,
		},
	})
}

// server is the daemon of one script.
type server struct {
	store *spool.Store
	bots  map[string]*spool.Bot
	names []string
	halt  func()

	mu    sync.Mutex
	views map[string]manage.View
}

type serverKey struct{}

func (s *server) Names() []string { return s.names }

func (s *server) View(bot string) (manage.View, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.views[bot]
	return v, ok
}

func (s *server) ResolveChat(_, name string) (string, bool) {
	chat, ok := map[string]string{"": "12345", "me": "12345", "family": "-1001234567890"}[name]
	return chat, ok
}

func of(ts *testscript.TestScript) *server { return ts.Value(serverKey{}).(*server) }

// exits CODE PROGRAM...: the program ends with exactly this code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM...")
	}
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if strconv.Itoa(got) != args[0] {
		ts.Fatalf("exit code %d, want %s", got, args[0])
	}
}

// serve BOT...: starts a daemon without loops on $TGSPOOL_SOCKET and submit.sock.
func serve(ts *testscript.TestScript, neg bool, names []string) {
	if neg || len(names) == 0 {
		ts.Fatalf("usage: serve BOT...")
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := of(ts)
	s.names, s.bots, s.views = names, map[string]*spool.Bot{}, map[string]manage.View{}
	var err error
	s.store, err = spool.Open(ctx, spool.Options{Path: ts.MkAbs("spool.db")})
	ts.Check(err)
	since := time.Now().Add(-90 * time.Second)
	for i, name := range names {
		s.bots[name], err = s.store.Attach(ctx, spool.BotConfig{ID: 7_000_000_001 + int64(i), Name: name})
		ts.Check(err)
		s.views[name] = manage.View{
			ID: 7_000_000_001 + int64(i), Username: name + "_bot",
			Intake: manage.Intake{State: "ok", Since: since}, Sender: gate.Snapshot{State: gate.StateOK, Since: since},
		}
	}
	api, err := localapi.Listen(ctx, localapi.Config{
		Endpoints: []localapi.Endpoint{{Addr: "unix:" + ts.Getenv("TGSPOOL_SOCKET")}, {Addr: "unix:" + ts.MkAbs("submit.sock"), Serve: []string{"submit"}}},
		Manage:    manage.New(manage.Config{Store: s.store, Bots: s, Version: "v1.2.3", StartedAt: since}),
	})
	ts.Check(err)
	done := make(chan error, 1)
	go func() { done <- api.Serve(ctx) }()
	s.halt = sync.OnceFunc(func() {
		cancel()
		ts.Check(<-done)
		ts.Check(s.store.Close())
	})
	ts.Defer(s.halt)
}

// halt stops the daemon that serve has started.
func halt(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: halt")
	}
	of(ts).halt()
}

// damage cut|heads FILE: cuts a file to its half, or spoils where it begins.
func damage(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: damage cut|heads FILE")
	}
	path := ts.MkAbs(args[1])
	b, err := os.ReadFile(path)
	ts.Check(err)
	if args[0] == "cut" {
		b = b[:len(b)/2]
	} else {
		clear(b[:2*4096])
	}
	ts.Check(os.WriteFile(path, b, 0o600)) //nolint:gosec // a file of the script's own
}

// attempt STATE [CLASS DESCRIPTION]: takes the first bot's next job and ends the
// attempt in that state.
func attempt(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 && len(args) != 3 {
		ts.Fatalf("usage: attempt STATE [CLASS DESCRIPTION]")
	}
	s := of(ts)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	bot := s.bots[s.names[0]]
	claim, err := bot.Claim(ctx)
	ts.Check(err)
	v := spool.Verdict{State: spool.State(args[0])}
	if v.State == spool.Done {
		v.Result = json.RawMessage(`{"message_id":4711,"text":"ok"}`)
	}
	if len(args) == 3 {
		v.Error = &spool.JobError{Class: args[1], Description: unescape(args[2]), At: time.Now()}
	}
	if v.State == spool.Uncertain {
		v.Evidence = &spool.Evidence{Phase: "written", BytesWritten: 512, At: time.Now()}
	}
	_, err = bot.Settle(ctx, claim, v)
	ts.Check(err)
}

// unescape lets scripts write control characters.
func unescape(s string) string {
	return strings.NewReplacer(`\e`, "\x1b", `\n`, "\n").Replace(s)
}

// intake ID KIND [ERROR]: an update comes in; one with an error is malformed.
func intake(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: intake ID KIND [ERROR]")
	}
	u := spool.NewUpdate{Kind: args[1], Raw: []byte(`{"update_id":` + args[0] + `}`), OrderKey: "chat:1", Route: spool.Route{Handler: "echo"}}
	if len(args) == 3 {
		u.Error = unescape(args[2])
	} else {
		ts.Check(json.Unmarshal([]byte(args[0]), &u.ID))
		u.HasID = true
	}
	s := of(ts)
	_, err := s.bots[s.names[0]].Intake(context.Background(), spool.Batch{Updates: []spool.NewUpdate{u}})
	ts.Check(err)
}

// arrive ID CHAT: a message of the chat comes in that no program takes.
func arrive(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: arrive ID CHAT")
	}
	u := spool.NewUpdate{
		HasID: true, Kind: "message", OrderKey: "chat:" + args[1], Route: spool.Route{Handler: spool.PullRoute},
		Raw: []byte(`{"update_id":` + args[0] + `,"message":{"message_id":1,"date":0,"chat":{"id":` + args[1] + `}}}`),
	}
	ts.Check(json.Unmarshal([]byte(args[0]), &u.ID))
	s := of(ts)
	_, err := s.bots[s.names[0]].Intake(context.Background(), spool.Batch{Updates: []spool.NewUpdate{u}})
	ts.Check(err)
}

// view BOT unconfigured|offline|cooldown|unreachable: how the bot's live view looks now.
func view(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: view BOT STATE")
	}
	s := of(ts)
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.views[args[0]]
	switch args[1] {
	case "unconfigured":
		v.Unconfigured = "no usable token: credential bot_home.token is missing"
	case "offline":
		v.Sender = gate.Snapshot{State: gate.StateOffline, Since: time.Now(), Detail: "looking up api.telegram.org: no such host"}
	case "cooldown":
		v.Sender = gate.Snapshot{State: gate.StateCooldown, Since: time.Now(), CooldownUntil: time.Now().Add(time.Hour)}
	case "unreachable":
		v.Handlers = []manage.Handler{{Name: "echo", Trouble: `program "/bin/ecko" is missing`}, {Name: "other"}}
	default:
		ts.Fatalf("unknown state %s", args[1])
	}
	s.views[args[0]] = v
}
