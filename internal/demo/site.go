package demo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tgspool/tgspool/internal/telegramsim"
)

const (
	botID    = 424242
	botToken = "424242:DEMO-DEMO-DEMO-DEMO-DEMO-DEMO-DEMO-"
	botName  = "demo"

	// The daemon's limits, and the simulator's, which are a little wider: what
	// the gates let through must never be refused. On a real bot both are a
	// third or a tenth of this; the demo has a minute.
	rate         = 100
	chatGap      = 100 * time.Millisecond
	simRate      = "110"
	simChatGap   = "95ms"
	workers      = 16
	startTimeout = 15 * time.Second
)

// site is the temporary folder with what runs in it.
type site struct {
	dir        string
	executable string
	simulator  *process
	daemon     *process
	control    *telegramsim.Remote
	logs       *os.File // what the daemon says, through all its lives
}

// newSite makes the folder and starts the simulator.
func newSite(ctx context.Context, executable string) (*site, error) {
	dir, err := os.MkdirTemp(shortTemp(), "tgspool-demo-")
	if err != nil {
		return nil, fmt.Errorf("making a folder: %w", err)
	}
	s := &site{dir: dir, executable: executable}
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(err, s.close(false))
	}
	return s, nil
}

// shortTemp is the folder for temporary files, unless the path of a socket in it
// would be too long for the system.
func shortTemp() string {
	if dir := os.TempDir(); len(dir) < 60 {
		return dir
	}
	return "/tmp"
}

func (s *site) path(name string) string { return filepath.Join(s.dir, name) }

func (s *site) open(ctx context.Context) error {
	logs, err := os.OpenFile(s.path("daemon.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("making the daemon's log: %w", err)
	}
	s.logs = logs
	api, control, err := s.startSimulator(ctx)
	if err != nil {
		return err
	}
	s.control = telegramsim.NewRemote(control)
	if err := os.WriteFile(s.path("token"), []byte(botToken+"\n"), 0o600); err != nil {
		return fmt.Errorf("writing the token: %w", err)
	}
	if err := os.WriteFile(s.path("tgspool.toml"), []byte(s.settings(api)), 0o600); err != nil {
		return fmt.Errorf("writing the settings: %w", err)
	}
	return nil
}

// settings are those of the daemon.
func (s *site) settings(api string) string {
	var kinds []string
	for _, kind := range sampleKinds() {
		kinds = append(kinds, fmt.Sprintf("%q", kind))
	}
	return fmt.Sprintf(`[store]
path = %q
[api]
listen = [%q]
[daemon]
drain = "3s"
[bots.%s]
token_file = %q
api_base = %q
[bots.%[3]s.intake]
allowed_updates = [%[6]s]
[bots.%[3]s.sender]
rate = %[7]d.0
chat_gap = %[8]q
workers = %[9]d
[[bots.%[3]s.handlers]]
name = "answer"
exec = [%[10]q, "demo-handler"]
reply = "calls"
allow_from = ["*"]
attempts = 10
`, s.path("spool.db"), "unix:"+s.socket(), botName, s.path("token"), api,
		strings.Join(kinds, ", "), rate, chatGap, workers, s.executable)
}

func (s *site) socket() string { return s.path("tgspool.sock") }

// startSimulator starts the simulator and reads where it listens.
func (s *site) startSimulator(ctx context.Context) (api, control string, err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return "", "", fmt.Errorf("making a pipe: %w", err)
	}
	complaints, err := os.OpenFile(s.path("simulator.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return "", "", errors.Join(fmt.Errorf("making the simulator's log: %w", err), r.Close(), w.Close())
	}
	s.simulator, err = launch("simulator", w, complaints, s.executable, "simulate", "--token", botToken, "--username", "demo_bot",
		"--strict", "--rate", simRate, "--chat-gap", simChatGap)
	_, _ = w.Close(), complaints.Close() // the simulator has its own
	if err != nil {
		return "", "", errors.Join(err, r.Close())
	}
	return readAddresses(ctx, r, s.simulator)
}

// readAddresses reads the first two lines of the simulator. The rest, a line
// for each call, is read and dropped until the simulator ends.
func readAddresses(ctx context.Context, r *os.File, p *process) (api, control string, err error) {
	type pair struct{ api, control string }
	found := make(chan pair, 1)
	go func() {
		defer func() { _ = r.Close() }()
		var have pair
		lines := bufio.NewScanner(r)
		for lines.Scan() {
			name, address, _ := strings.Cut(lines.Text(), " ")
			switch {
			case name == "api" && have.api == "":
				have.api = address
			case name == "control" && have.control == "":
				have.control = address
				found <- have
			}
		}
	}()
	limit := time.NewTimer(startTimeout)
	defer limit.Stop()
	select {
	case have := <-found:
		return have.api, have.control, nil
	case <-p.ended:
		return "", "", fmt.Errorf("the simulator ended at once: %w", p.err)
	case <-limit.C:
		return "", "", fmt.Errorf("the simulator did not start within %s", startTimeout)
	case <-ctx.Done():
		return "", "", ctx.Err()
	}
}

// startDaemon starts the daemon.
func (s *site) startDaemon() (err error) {
	s.daemon, err = launch("daemon", s.logs, s.logs, s.executable, "run", "--config", s.path("tgspool.toml"))
	return err
}

// tgspool runs a command of the program against the daemon.
func (s *site) tgspool(ctx context.Context, args ...string) (outcome, error) {
	return command(ctx, append([]string{s.executable, "--socket", s.socket()}, args...)...)
}

// close ends whatever runs, the daemon first, and removes the folder unless it
// is to be kept.
func (s *site) close(keep bool) error {
	if s.daemon != nil {
		_ = s.daemon.stop() // how it ends matters only where the script ends it
	}
	if s.simulator != nil {
		_ = s.simulator.stop()
	}
	if s.control != nil {
		s.control.Close()
	}
	if s.logs != nil {
		_ = s.logs.Close()
	}
	if keep {
		return nil
	}
	if err := os.RemoveAll(s.dir); err != nil {
		return fmt.Errorf("removing the folder: %w", err)
	}
	return nil
}
