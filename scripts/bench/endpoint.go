package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
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

	bolt "go.etcd.io/bbolt"

	"github.com/tgspool/tgspool/internal/telegramsim"
	"github.com/tgspool/tgspool/scripts/bench/kit"
)

// endpoint measures what a bot written with a library meets: the same calls made
// to the simulator directly, through a plain proxy, and through tgspool.
func (b *bench) endpoint() error {
	e, err := b.newEndpoint()
	if err != nil {
		return err
	}
	defer e.stop()
	for _, part := range []func() error{e.upload, e.latency, e.held, e.wake} {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

// endpoint is the simulator, a proxy to it, and tgspool before it.
type endpoint struct {
	b             *bench
	sim           *telegramsim.Sim
	direct, proxy string // where a call can be made
	spooled       string
	daemon        *exec.Cmd
	client        *http.Client
	n             int
	ends          []func()
}

func (b *bench) newEndpoint() (e *endpoint, err error) {
	e = &endpoint{b: b, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 600, DisableCompression: true}}}
	defer func() {
		if err != nil {
			e.stop()
		}
	}()
	e.sim = telegramsim.New(telegramsim.Options{Bots: []telegramsim.Bot{{Token: token}}})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return e, err
	}
	server := &http.Server{Handler: e.sim.Handler()}
	go func() { _ = server.Serve(listener) }()
	e.ends = append(e.ends, func() { e.sim.Close(); _ = server.Close() })
	e.direct = "http://" + listener.Addr().String()
	if err := e.startProxy(); err != nil {
		return e, err
	}
	return e, e.startDaemon()
}

func (e *endpoint) stop() {
	for _, end := range slices.Backward(e.ends) {
		end()
	}
}

func (e *endpoint) startProxy() error {
	path := filepath.Join(e.b.dir, "proxy")
	if out, err := exec.CommandContext(e.b.ctx, "go", "build", "-o", path, "./proxy").CombinedOutput(); err != nil {
		return fmt.Errorf("building the proxy: %w\n%s", err, out)
	}
	cmd := exec.CommandContext(e.b.ctx, path, e.direct)
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	e.ends = append(e.ends, func() { _ = in.Close(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	e.proxy = strings.TrimSpace(line)
	return err
}

func (e *endpoint) startDaemon() error {
	program, err := e.b.binary()
	if err != nil {
		return err
	}
	dir := filepath.Join(e.b.dir, "endpoint")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	address := l.Addr().String()
	_ = l.Close()
	e.spooled = "http://" + address
	settings := fmt.Sprintf("[store]\npath = \"%[1]s/spool.db\"\n[api]\nlisten = [\"unix:%[1]s/s\", \"tcp:%[2]s\"]\n[bots.bench]\ntoken_file = \"%[1]s/token\"\n"+
		"api_base = \"%[3]s\"\n[bots.bench.sender]\nrate = 0.0\nchat_gap = \"0s\"\ngroup_per_minute = 0\n", dir, address, e.direct)
	for name, text := range map[string]string{"tgspool.toml": settings, "token": token + "\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	e.daemon = exec.CommandContext(e.b.ctx, program, "run", "--config", filepath.Join(dir, "tgspool.toml"))
	e.daemon.Env = append(os.Environ(), "GOMEMLIMIT=72MiB") // as the unit sets it
	if err := e.daemon.Start(); err != nil {
		return err
	}
	e.ends = append(e.ends, func() {
		_ = e.daemon.Process.Signal(syscall.SIGTERM)
		_ = e.daemon.Wait()
	})
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if _, err := e.call(e.spooled, "getMe", []byte(`{}`)); err == nil {
			return nil
		}
	}
	return errors.New("tgspool isn't there")
}

// call makes a call and reports how long its answer took.
func (e *endpoint) call(base, method string, body []byte) (time.Duration, error) {
	return e.post(base, method, "application/json", bytes.NewReader(body))
}

func (e *endpoint) post(base, method, kind string, body io.Reader) (time.Duration, error) {
	r, err := http.NewRequestWithContext(e.b.ctx, http.MethodPost, base+"/bot"+token+"/"+method, body)
	if err != nil {
		return 0, err
	}
	r.Header.Set("Content-Type", kind)
	start := time.Now()
	a, err := e.client.Do(r)
	if err != nil {
		return 0, err
	}
	text, err := io.ReadAll(a.Body)
	took := time.Since(start)
	_ = a.Body.Close()
	if err == nil && a.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s %s", method, a.Status, text)
	}
	return took, err
}

// message is a call of 300 bytes that no other equals.
func (e *endpoint) message() []byte {
	e.n++
	return kit.Payload(int64(e.n))
}

const callsARound = 300

// latency has one caller make calls, one after the other, each way in turn.
func (e *endpoint) latency() error {
	db, err := bolt.Open(filepath.Join(e.b.dir, "commit.db"), 0o600, &bolt.Options{FreelistType: bolt.FreelistMapType, NoFreelistSync: true})
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	var shares, direct, proxy, ours, commits []float64
	for range e.b.rounds {
		d, err := e.p50(e.direct)
		if err != nil {
			return err
		}
		p, err := e.p50(e.proxy)
		if err != nil {
			return err
		}
		o, err := e.p50(e.spooled)
		if err != nil {
			return err
		}
		c, err := commit(db)
		if err != nil {
			return err
		}
		direct, proxy, ours, commits = append(direct, d), append(proxy, p), append(ours, o), append(commits, c)
		shares = append(shares, (o-d)/(1.25*(p-d)+c))
	}
	fmt.Printf("   one caller, p50 of an answer in ms: directly %.3f, through a plain proxy %.3f, through tgspool %.3f; one commit %.3f\n",
		median(direct), median(proxy), median(ours), median(commits))
	e.b.atMost("endpoint: added p50 ÷ (1.25 × a plain proxy's + a commit)", median(shares), 1, "")
	return nil
}

// p50 is the median of some calls' times, in ms.
func (e *endpoint) p50(base string) (float64, error) {
	took := make([]time.Duration, 0, callsARound)
	for range callsARound {
		d, err := e.call(base, "sendMessage", e.message())
		if err != nil {
			return 0, err
		}
		took = append(took, d)
	}
	return middle(took), nil
}

func middle(took []time.Duration) float64 {
	slices.Sort(took)
	return took[len(took)/2].Seconds() * 1000
}

// commit is the median of some commits' times, in ms: one record of 300 bytes
// into a file of the same kind.
func commit(db *bolt.DB) (float64, error) {
	took := make([]time.Duration, 0, callsARound)
	for i := range callsARound {
		start := time.Now()
		err := db.Update(func(tx *bolt.Tx) error {
			bucket, err := tx.CreateBucketIfNotExists([]byte("b"))
			if err == nil {
				err = bucket.Put(fmt.Appendf(nil, "%06d", i), kit.Payload(int64(i)))
			}
			return err
		})
		if err != nil {
			return 0, err
		}
		took = append(took, time.Since(start))
	}
	return middle(took), nil
}

// held has 500 calls wait while Telegram can't be reached.
func (e *endpoint) held() error {
	const calls = 500
	before := kit.RSSAnon(e.daemon.Process.Pid)
	peak := watch(e.daemon.Process.Pid)
	e.sim.SetOffline(true)
	var all sync.WaitGroup
	failed := make(chan error, calls)
	for range calls {
		body := e.message()
		all.Go(func() {
			if _, err := e.call(e.spooled, "sendMessage", body); err != nil {
				failed <- err
			}
		})
	}
	time.Sleep(5 * time.Second) // all wait
	most := peak()
	e.sim.SetOffline(false)
	all.Wait()
	select {
	case err := <-failed:
		return fmt.Errorf("a held call: %w", err)
	default:
	}
	fmt.Printf("   anonymous memory before: %.1f MiB\n", float64(before)/mib)
	e.b.atMost("endpoint: 500 calls held, anonymous memory", float64(most)/mib, 64, " MiB")
	return nil
}

// upload sends a file of 50 MB.
func (e *endpoint) upload() error {
	in, out := io.Pipe()
	form := multipart.NewWriter(out)
	go func() {
		err := form.WriteField("chat_id", "7")
		if err == nil {
			var part io.Writer
			if part, err = form.CreateFormFile("document", "big.bin"); err == nil {
				_, err = io.Copy(part, io.LimitReader(zeros{}, 50_000_000-1024))
			}
		}
		if err == nil {
			err = form.Close()
		}
		_ = out.CloseWithError(err)
	}()
	peak := watch(e.daemon.Process.Pid)
	took, err := e.post(e.spooled, "sendDocument", form.FormDataContentType(), in)
	most := peak()
	if err != nil {
		return err
	}
	fmt.Printf("   50 MB through tgspool: %.1f s\n", took.Seconds())
	e.b.atMost("endpoint: a 50 MB upload, anonymous memory", float64(most)/mib, 24, " MiB")
	return nil
}

// zeros never end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// wake measures how long after the commit of an update a parked poll has it. The
// commit's own time can be told only inside of the process.
func (e *endpoint) wake() error {
	c, err := e.b.start("ours")
	if err != nil {
		return err
	}
	defer func() { _ = c.end() }()
	reply, err := c.do(kit.Request{Op: "wake", N: 200})
	if err != nil {
		return err
	}
	e.b.atMost("endpoint: a parked poll is answered after the commit, p50", reply.P50.Seconds()*1000, 5, " ms")
	return nil
}
