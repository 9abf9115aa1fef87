package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// world is one library's: its own simulator, spool and folder.
type world struct {
	dir, tgspool     string
	control, api     string // of the simulator and of tgspool
	base, token      string // what the bot is told
	args             []string
	sim, daemon, bot *process

	want map[string]arrival // what each kind of call looks like without tgspool
}

// process is a program under way.
type process struct {
	cmd  *exec.Cmd
	out  *output
	done chan struct{}
}

// output is what a program says; it is read while it is written.
type output struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all.Write(p)
}

func (o *output) text() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all.String()
}

func start(dir string, env []string, args ...string) (*process, error) {
	p := &process{cmd: exec.Command(args[0], args[1:]...), out: &output{}, done: make(chan struct{})}
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = dir, p.out, p.out
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // nobody is left behind
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { _ = p.cmd.Wait(); close(p.done) }()
	return p, nil
}

// end asks a program to end, and reports whether it did in time.
func (p *process) end(sig syscall.Signal, within time.Duration) bool {
	if p == nil {
		return true
	}
	_ = p.cmd.Process.Signal(sig)
	select {
	case <-p.done:
		return true
	case <-time.After(within):
		_ = p.cmd.Process.Kill()
		<-p.done
		return false
	}
}

func try(tgspool string, args []string) (notes string, err error) {
	dir, err := os.MkdirTemp("", "e2e-clients")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	w := &world{dir: dir, tgspool: tgspool, args: args}
	defer func() {
		for _, p := range []*process{w.bot, w.daemon, w.sim} {
			p.end(syscall.SIGKILL, 5*time.Second)
		}
		if err != nil && w.bot != nil {
			err = fmt.Errorf("%w\n--- the bot said:\n%s", err, tail(w.bot.out))
		}
		if err != nil && w.daemon != nil {
			err = fmt.Errorf("%w\n--- tgspool said:\n%s", err, tail(w.daemon.out))
		}
	}()
	if err := w.files(); err != nil {
		return "", err
	}
	if err := w.direct(); err != nil {
		return "", fmt.Errorf("without tgspool: %w", err)
	}
	if err := w.setUp(); err != nil {
		return "", err
	}
	for _, step := range []struct {
		name string
		do   func() (string, error)
	}{
		{"start with Telegram away", w.startAway}, {"all kinds of calls", w.calls}, {"a flood and a lost answer", w.faults},
		{"tgspool killed", w.killDaemon}, {"the bot killed", w.killBot}, {"stop", w.stop},
	} {
		note, err := step.do()
		if err != nil {
			return notes, fmt.Errorf("%s: %w", step.name, err)
		}
		notes += note
	}
	return notes, nil
}

func tail(b *output) string {
	lines := strings.Split(strings.TrimSpace(b.text()), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}

// nextPort is below the ports that the kernel gives to whoever connects.
var nextPort atomic.Int32

// free is an address that nobody listens on, handed out once.
func free() string {
	for {
		port := 10_000 + (int(nextPort.Add(1))+os.Getpid()*101)%20_000
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			defer l.Close()
			return l.Addr().String()
		}
	}
}

func (w *world) file(name, text string, mode os.FileMode) error {
	path := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), mode)
}

// files are what a bot sends.
func (w *world) files() error {
	return errors.Join(
		w.file("token", token, 0o600),
		w.file("document", "some text", 0o600),
		w.file("photo.png", "\x89PNG\r\n\x1a\nnone", 0o600),
	)
}

// simulate starts a simulator of the world's own and returns its address.
func (w *world) simulate() (upstream string, err error) {
	upstream, control := free(), free()
	w.control = "http://" + control
	if w.sim, err = start(w.dir, nil, w.tgspool, "simulate", "--listen", upstream, "--control", control, "--token", token); err != nil {
		return "", err
	}
	err = wait(20*time.Second, func() bool {
		r, err := http.Get(w.control + "/sim/journal?after=0")
		if err != nil {
			return false
		}
		defer r.Body.Close()
		return r.StatusCode == http.StatusOK
	})
	if err != nil {
		return "", fmt.Errorf("the simulator isn't there: %w", err)
	}
	return upstream, nil
}

func (w *world) setUp() error {
	upstream, err := w.simulate()
	if err != nil {
		return err
	}
	api := free()
	w.api, w.base, w.token = "http://"+api, "http://"+api, client
	sum := sha256.Sum256([]byte(client))
	err = w.file("tgspool.toml", fmt.Sprintf("[store]\npath = %q\n[api]\nlisten = [\"unix:%s/s\", \"tcp:%s\"]\n[daemon]\ndrain = \"2s\"\n"+
		"[bots.home]\ntoken_file = %q\napi_base = \"http://%s\"\n[bots.home.sender]\nchat_gap = \"50ms\"\ngroup_per_minute = 0\n"+
		"[[bots.home.clients]]\nname = \"bot\"\ntoken_sha256 = %q\nmethods = [\"*\"]\nchats = [\"*\"]\nfull = true\n",
		w.dir+"/spool.db", w.dir, api, w.dir+"/token", upstream, hex.EncodeToString(sum[:])), 0o600)
	if err != nil {
		return err
	}
	return w.startDaemon()
}

func (w *world) startDaemon() (err error) {
	if w.daemon, err = start(w.dir, nil, w.tgspool, "run", "--config", w.dir+"/tgspool.toml"); err != nil {
		return err
	}
	return wait(20*time.Second, func() bool {
		r, err := http.Get(w.api + "/bot" + client + "/getMe")
		if err != nil {
			return false
		}
		defer r.Body.Close()
		return r.StatusCode == http.StatusOK
	})
}

func (w *world) startBot() (err error) {
	w.bot, err = start(w.dir, []string{
		"BASE=" + w.base, "TOKEN=" + w.token, "NAME=" + name, "DOCUMENT=" + w.dir + "/document", "PHOTO=" + w.dir + "/photo.png",
		"NO_PROXY=127.0.0.1",
	}, w.args...)
	return err
}

// wait looks again and again until a thing is so.
func wait(most time.Duration, so func() bool) error {
	for end := time.Now().Add(most); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if so() {
			return nil
		}
	}
	return fmt.Errorf("not within %s", most)
}

func (w *world) post(path string, body any) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	r, err := http.Post(w.control+"/sim/"+path, "application/json", bytes.NewReader(raw))
	if err != nil {
		return err
	}
	defer r.Body.Close()
	if r.StatusCode >= 300 {
		text, _ := io.ReadAll(r.Body)
		return fmt.Errorf("%s: %s", path, text)
	}
	return nil
}

// sentFile is a file of a call.
type sentFile struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// arrival is a call that has reached Telegram.
type arrival struct {
	Method    string            `json:"method"`
	Text      string            `json:"text"`
	Effect    bool              `json:"effect"`
	MessageID int64             `json:"message_id"`
	IDs       []int64           `json:"message_ids"`
	Params    map[string]string `json:"params"`
	Files     []sentFile        `json:"files"`
}

func (w *world) arrivals() (list []arrival) {
	r, err := http.Get(w.control + "/sim/journal?after=0")
	if err != nil {
		return nil
	}
	defer r.Body.Close()
	_ = json.NewDecoder(r.Body).Decode(&list)
	return list
}

// count is how often a call with an effect has arrived.
func (w *world) count(fits func(a arrival) bool) (n int) {
	for _, a := range w.arrivals() {
		if a.Effect && fits(a) {
			n++
		}
	}
	return n
}

func method(m string) func(arrival) bool { return func(a arrival) bool { return a.Method == m } }

func text(t string) func(arrival) bool { return func(a arrival) bool { return a.Text == t } }

func (w *world) say(t string) error {
	return w.post("text", map[string]any{"chat_id": chat, "user_id": chat, "text": t})
}

func (w *world) once(what string, fits func(arrival) bool) error {
	if err := wait(40*time.Second, func() bool { return w.count(fits) > 0 }); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	time.Sleep(100 * time.Millisecond)
	if n := w.count(fits); n != 1 {
		return fmt.Errorf("%s: %d times", what, n)
	}
	return nil
}

// echo has texts answered, each exactly once.
func (w *world) echo(prefix string, n int) error {
	for i := range n {
		if err := w.say(fmt.Sprintf("echo %s%d", prefix, i)); err != nil {
			return err
		}
	}
	for i := range n {
		if err := w.once(fmt.Sprintf("answer to %s%d", prefix, i), text(fmt.Sprintf("re %s%d", prefix, i))); err != nil {
			return err
		}
	}
	return nil
}
