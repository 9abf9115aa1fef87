// E2e-clients runs bots on unmodified libraries, each in a process of its own,
// against the real tgspool and the simulator, and breaks things meanwhile.
//
//	e2e-clients -tgspool BIN -bot BIN -node DIR [NAME…]
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	token  = "123456:SIMULATOR-SIMULATOR-SIMULATOR-SIMUL" // the bot's own, which no client sees
	client = "123456:ccccccccccccccccccccccccccccccccccc"
	chat   = 7
	name   = "mÿ file (1), \"odd\".txt"
)

// library is one of those that are tried.
type library struct {
	name string
	args func(node, bot string) []string
}

func libraries() []library {
	js := func(file string) func(string, string) []string {
		return func(node, _ string) []string { return []string{"node", filepath.Join(node, file+".js")} }
	}
	golang := func(name string) func(string, string) []string {
		return func(_, bot string) []string { return []string{bot, name} }
	}
	return []library{
		{"grammY", js("grammy")}, {"telegraf", js("telegraf")}, {"gramio", js("gramio")},
		{"node-telegram-bot-api-2", js("ntba2")}, {"node-telegram-bot-api-0.66", js("ntba066")},
		{"go-telegram/bot", golang("go-telegram")}, {"telego", golang("telego")},
		{"telebot.v4", golang("telebot")}, {"go-telegram-bot-api", golang("tgbotapi")},
	}
}

func main() {
	tgspool := flag.String("tgspool", "bin/tgspool", "the program")
	bot := flag.String("bot", "", "the bot on the Go libraries")
	node := flag.String("node", "", "the folder of the bots on the libraries for Node")
	flag.Parse()
	failed := false
	fmt.Printf("%-28s %s\n", "LIBRARY", "RESULT")
	for _, l := range libraries() {
		if flag.NArg() > 0 && !slices.Contains(flag.Args(), l.name) {
			continue
		}
		notes, err := try(*tgspool, l.args(*node, *bot))
		result := "passed" + notes
		if err != nil {
			failed, result = true, "FAILED: "+err.Error()
		}
		fmt.Printf("%-28s %s\n", l.name, result)
	}
	if failed {
		os.Exit(1)
	}
}

// world is one library's: its own simulator, spool and folder.
type world struct {
	dir, tgspool, base, control, api string
	args                             []string
	sim, daemon, bot                 *process
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
			err = fmt.Errorf("%w\n--- the bot said:\n%s\n--- tgspool said:\n%s", err, tail(w.bot.out), tail(w.daemon.out))
		}
	}()
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

func free() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func (w *world) file(name, text string, mode os.FileMode) error {
	path := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), mode)
}

func (w *world) setUp() (err error) {
	upstream, control, api := free(), free(), free()
	w.control, w.api, w.base = "http://"+control, "http://"+api, "http://"+api
	sum := sha256.Sum256([]byte(client))
	err = errors.Join(
		w.file("token", token, 0o600),
		w.file("document", "some text", 0o600),
		w.file("photo.png", "\x89PNG\r\n\x1a\nnone", 0o600),
		w.file("tgspool.toml", fmt.Sprintf("[store]\npath = %q\n[api]\nlisten = [\"unix:%s/s\", \"tcp:%s\"]\n[daemon]\ndrain = \"2s\"\n"+
			"[bots.home]\ntoken_file = %q\napi_base = \"http://%s\"\n[bots.home.sender]\nchat_gap = \"50ms\"\ngroup_per_minute = 0\n"+
			"[[bots.home.clients]]\nname = \"bot\"\ntoken_sha256 = %q\nmethods = [\"*\"]\nchats = [\"*\"]\nfull = true\n",
			w.dir+"/spool.db", w.dir, api, w.dir+"/token", upstream, hex.EncodeToString(sum[:])), 0o600),
	)
	if err != nil {
		return err
	}
	if w.sim, err = start(w.dir, nil, w.tgspool, "simulate", "--listen", upstream, "--control", control, "--token", token); err != nil {
		return err
	}
	if err := wait(20*time.Second, func() bool {
		return w.post("text", map[string]any{"chat_id": chat, "user_id": chat, "text": "hello"}) == nil
	}); err != nil {
		return fmt.Errorf("the simulator isn't there: %w", err)
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
		"BASE=" + w.base, "TOKEN=" + client, "NAME=" + name, "DOCUMENT=" + w.dir + "/document", "PHOTO=" + w.dir + "/photo.png",
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

// arrival is a call that has reached Telegram.
type arrival struct {
	Method    string            `json:"method"`
	Text      string            `json:"text"`
	Effect    bool              `json:"effect"`
	MessageID int64             `json:"message_id"`
	IDs       []int64           `json:"message_ids"`
	Params    map[string]string `json:"params"`
	Files     []struct {
		Name string `json:"name"`
		Size int64  `json:"size"`
	} `json:"files"`
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

func (w *world) startAway() (string, error) {
	if err := w.post("offline", map[string]any{"offline": true}); err != nil {
		return "", err
	}
	if err := w.startBot(); err != nil {
		return "", err
	}
	time.Sleep(2 * time.Second)
	select {
	case <-w.bot.done:
		return "", errors.New("the bot has ended")
	default:
	}
	if err := w.post("offline", map[string]any{"offline": false}); err != nil {
		return "", err
	}
	return "", w.echo("start", 3)
}

func (w *world) calls() (string, error) {
	for _, step := range []struct {
		say  string
		fits func(arrival) bool
	}{
		{"document", func(a arrival) bool {
			return a.Method == "sendDocument" && len(a.Files) == 1 && a.Files[0].Size == 9
		}},
		{"photo", func(a arrival) bool { return a.Method == "sendPhoto" && len(a.Files) == 1 }},
		{"album", func(a arrival) bool { return a.Method == "sendMediaGroup" && len(a.Files) == 2 && len(a.IDs) == 2 }},
		{"edit", func(a arrival) bool { return a.Method == "editMessageText" && a.Text == "edited" }},
	} {
		if err := w.say(step.say); err != nil {
			return "", err
		}
		if err := w.once(step.say, step.fits); err != nil {
			return "", err
		}
	}
	var message int64
	for _, a := range w.arrivals() {
		if a.Text == "re start0" {
			message = a.MessageID
		}
	}
	if err := w.post("press", map[string]any{"chat_id": chat, "user_id": chat, "message_id": message, "data": "x"}); err != nil {
		return "", err
	}
	return "", w.once("toast", func(a arrival) bool { return a.Method == "answerCallbackQuery" && a.Params["text"] == "toast" })
}

func (w *world) faults() (string, error) {
	if err := w.post("faults", map[string]any{"method": "sendMessage", "kind": "flood", "retry_after": 2, "times": 1}); err != nil {
		return "", err
	}
	if err := w.echo("flood", 2); err != nil {
		return "", err
	}
	fault := map[string]any{"method": "sendMessage", "kind": "reset_after_read", "times": 1, "effect": true}
	if err := w.post("faults", fault); err != nil {
		return "", err
	}
	if err := w.echo("lost", 1); err != nil {
		return "", err
	}
	return "", w.echo("after", 2)
}

// killDaemon kills tgspool while texts come in: none is answered twice, and one
// that isn't answered is uncertain, or the bot has heard that its call failed.
func (w *world) killDaemon() (string, error) {
	before := w.failures()
	for i := range 10 {
		if err := w.say(fmt.Sprintf("echo kill%d", i)); err != nil {
			return "", err
		}
		if i == 5 {
			time.Sleep(150 * time.Millisecond)
			w.daemon.end(syscall.SIGKILL, 5*time.Second)
		}
	}
	if err := w.startDaemon(); err != nil {
		return "", err
	}
	missing := func() (n int) {
		for i := range 10 {
			if w.count(text(fmt.Sprintf("re kill%d", i))) == 0 {
				n++
			}
		}
		return n
	}
	told := func() int { return w.failures() - before }
	if err := wait(60*time.Second, func() bool { return missing() <= w.uncertain()+told() }); err != nil {
		return "", fmt.Errorf("%d answers are missing, %d are uncertain, %d calls have failed: %w", missing(), w.uncertain(), told(), err)
	}
	if err := w.echo("again", 2); err != nil {
		return "", err
	}
	for i := range 10 {
		if n := w.count(text(fmt.Sprintf("re kill%d", i))); n > 1 {
			return "", fmt.Errorf("answer to kill%d: %d times", i, n)
		}
	}
	return fmt.Sprintf(", %d of 10 calls failed while tgspool was away", missing()), nil
}

// failures is how many calls the bot has heard to have failed.
func (w *world) failures() int { return strings.Count(w.bot.out.text(), "failed:") }

// uncertain is how many jobs wait for a decision.
func (w *world) uncertain() (n int) {
	out, err := exec.Command(w.tgspool, "queue", "list", "--state", "uncertain", "--json", "--socket", w.dir+"/s").Output()
	if err != nil {
		return 0
	}
	return bytes.Count(out, []byte("\n"))
}

// killBot kills the bot while texts come in: none is lost; what was answered
// and read may be answered again. Some libraries acknowledge updates before they
// handle them; what such a one had in its hands is replayed, as a person would.
func (w *world) killBot() (string, error) {
	for i := range 10 {
		if err := w.say(fmt.Sprintf("echo bot%d", i)); err != nil {
			return "", err
		}
		if i == 5 {
			time.Sleep(150 * time.Millisecond)
			w.bot.end(syscall.SIGKILL, 5*time.Second)
		}
	}
	time.Sleep(2 * time.Second) // what it had queued goes out
	replayed, err := w.replay()
	if err != nil {
		return "", err
	}
	if err := w.startBot(); err != nil {
		return "", err
	}
	repeats := 0
	for i := range 10 {
		fits := text(fmt.Sprintf("re bot%d", i))
		if err := wait(40*time.Second, func() bool { return w.count(fits) > 0 }); err != nil {
			return "", fmt.Errorf("answer to bot%d: %w", i, err)
		}
	}
	time.Sleep(time.Second)
	for i := range 10 {
		repeats += w.count(text(fmt.Sprintf("re bot%d", i))) - 1
	}
	return fmt.Sprintf("; the bot killed: %d repeats, %d updates lost by it and replayed", repeats, replayed), nil
}

// replay opens the updates again that the bot has acknowledged and not answered.
func (w *world) replay() (n int, err error) {
	out, err := exec.Command(w.tgspool, "inbox", "list", "--state", "handled", "--json", "--socket", w.dir+"/s").Output()
	if err != nil {
		return 0, fmt.Errorf("listing the inbox: %w", err)
	}
	dec := json.NewDecoder(bytes.NewReader(out))
	for dec.More() {
		var u struct {
			Seq    int64 `json:"seq"`
			Update struct {
				Message struct {
					Text string `json:"text"`
				} `json:"message"`
			} `json:"update"`
		}
		if err := dec.Decode(&u); err != nil {
			return n, err
		}
		t, ours := strings.CutPrefix(u.Update.Message.Text, "echo bot")
		if !ours || w.count(text("re bot"+t)) > 0 {
			continue
		}
		if out, err := exec.Command(w.tgspool, "inbox", "replay", fmt.Sprint(u.Seq), "--socket", w.dir+"/s").CombinedOutput(); err != nil {
			return n, fmt.Errorf("replaying: %s", out)
		}
		n++
	}
	return n, nil
}

func (w *world) stop() (string, error) {
	note := ""
	if !w.bot.end(syscall.SIGTERM, 15*time.Second) {
		note = ", it doesn't end when it is asked to"
	}
	if !w.daemon.end(syscall.SIGTERM, 10*time.Second) {
		return note, errors.New("tgspool doesn't stop")
	}
	return note, nil
}
