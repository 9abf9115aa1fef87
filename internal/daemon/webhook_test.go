package daemon_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tgspool/tgspool/internal/daemon"
	"github.com/tgspool/tgspool/internal/spool"
	"github.com/tgspool/tgspool/internal/telegramsim"
)

const (
	firstToken  = "111:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	secondToken = "222:BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB"
	proof       = "Never_to_be_logged-1" // the webhooks' secret
)

// house is a simulated Telegram and the folder of a daemon with two bots, which
// share one address for their webhooks.
type house struct {
	t    *testing.T
	dir  string
	addr string // where webhooks come in
	base string // the simulator
	sim  *telegramsim.Sim

	roots  *x509.CertPool // what the simulator trusts
	serial int64          // of the newest certificate

	stop  context.CancelFunc
	ended chan error

	mu  sync.Mutex // guards log
	log bytes.Buffer
}

// Write takes a line of the log.
func (h *house) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.log.Write(b)
}

// logged is the log so far.
func (h *house) logged() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.log.String()
}

func newHouse(t *testing.T) *house {
	t.Helper()
	h := &house{t: t, dir: t.TempDir(), addr: freeAddr(t)}
	h.roots = x509.NewCertPool()
	h.roots.AddCert(h.certificate())
	push := h.push()
	t.Cleanup(push.CloseIdleConnections)
	h.sim = telegramsim.New(telegramsim.Options{
		Bots: []telegramsim.Bot{{Token: firstToken}, {Token: secondToken}}, Push: push,
	})
	server := httptest.NewServer(h.sim.Handler())
	t.Cleanup(func() { h.sim.Close(); server.Close() })
	h.base = server.URL
	for name, text := range map[string]string{"first": firstToken, "second": secondToken, "secret": proof} {
		h.file(name, text)
	}
	return h
}

// freeAddr is an address that nobody listens on.
func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

func (h *house) file(name, text string) string {
	h.t.Helper()
	path := filepath.Join(h.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
	return path
}

// certificate writes the files cert and key for hook.test, signed by itself.
func (h *house) certificate() *x509.Certificate {
	h.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		h.t.Fatal(err)
	}
	h.serial++
	template := &x509.Certificate{
		SerialNumber: big.NewInt(h.serial), DNSNames: []string{"hook.test"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		h.t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		h.t.Fatal(err)
	}
	h.file("cert", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	h.file("key", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})))
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		h.t.Fatal(err)
	}
	return cert
}

// push is the simulator's way to the daemon: hook.test is this machine.
func (h *house) push() *http.Transport {
	return &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: h.roots},
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", h.addr)
		},
	}
}

// settings writes them; intake is what stands in [bots.X.intake] of each bot.
func (h *house) settings(intake map[string]string) {
	h.t.Helper()
	var text strings.Builder
	fmt.Fprintf(&text, "[store]\npath = %q\n[api]\nlisten = [\"unix:%s/s\"]\n[daemon]\ndrain = \"5s\"\n", h.dir+"/spool.db", h.dir)
	for _, name := range []string{"first", "second"} {
		fmt.Fprintf(&text, "[bots.%s]\ntoken_file = %q\napi_base = %q\n[bots.%[1]s.intake]\n%[4]s\n", name, h.dir+"/"+name, h.base, intake[name])
		fmt.Fprintf(&text, "[[bots.%s.handlers]]\nname = \"echo\"\nexec = [\"/bin/sh\", \"-c\", 'printf \"%%s\" \"$TGSPOOL_TEXT\"']\nallow_from = [\"*\"]\n", name)
	}
	h.file("tgspool.toml", text.String())
}

// byWebhook is the intake of a bot that registers a webhook.
func (h *house) byWebhook(name string) string {
	return fmt.Sprintf("mode = \"webhook\"\nurl = \"https://hook.test/telegram/%s\"\nlisten = %q\nsecret_file = %q\ntls_cert = %q\ntls_key = %q",
		name, h.addr, h.dir+"/secret", h.dir+"/cert", h.dir+"/key")
}

func (h *house) start() {
	ctx, stop := context.WithCancel(context.Background())
	h.stop, h.ended = stop, make(chan error, 1)
	go func() {
		h.ended <- daemon.Run(ctx, daemon.Options{
			Config: filepath.Join(h.dir, "tgspool.toml"), Version: "test",
			Getenv: func(string) string { return "" }, Stdout: h, Stderr: h,
		})
	}()
}

func (h *house) end() {
	h.t.Helper()
	h.stop()
	if err := <-h.ended; err != nil {
		h.t.Errorf("Run: %v", err)
	}
}

// wantReplies waits until both bots have echoed a text.
func (h *house) wantReplies(text string) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), 30*time.Second)
	defer cancel()
	for {
		next := h.sim.Arrived()
		if h.sim.CountText(7, text) == 2 {
			return
		}
		select {
		case <-next:
		case err := <-h.ended:
			h.t.Fatalf("the daemon has ended: %v\n%s", err, &h.log)
		case <-ctx.Done():
			h.mu.Lock()
			defer h.mu.Unlock()
			h.t.Fatalf("%q was echoed %d times, want 2:\n%s", text, h.sim.CountText(7, text), &h.log)
		}
	}
}

// feed writes a message to both bots.
func (h *house) feed(text string) {
	h.t.Helper()
	for _, bot := range []int64{111, 222} {
		raw := fmt.Sprintf(`{"message":{"message_id":1,"date":%d,"chat":{"id":7,"type":"private"},"from":{"id":7,"is_bot":false,"first_name":"x"},"text":%q}}`,
			time.Now().Unix(), text)
		if h.sim.Feed(bot, []byte(raw)) == 0 {
			h.t.Fatalf("the simulator dropped %q", text)
		}
	}
}

// Two bots behind one address, through a restart, and over to polling: every
// message is answered once, and the webhooks are gone at the end.
func TestWebhook_WholeWay(t *testing.T) {
	h := newHouse(t)
	h.settings(map[string]string{"first": h.byWebhook("first"), "second": h.byWebhook("second")})
	h.feed("before the start")
	h.start()
	h.wantReplies("before the start")
	h.feed("running")
	h.wantReplies("running")
	h.end()
	h.feed("while stopped")
	h.start()
	h.wantReplies("while stopped")
	h.end()

	h.settings(nil) // polling is the default
	h.feed("before polling")
	h.start()
	h.wantReplies("before polling")
	h.end()
	if n := h.sim.CountText(7, "running"); n != 2 {
		t.Errorf("%d answers to one message a bot", n)
	}
	store, err := spool.Open(t.Context(), spool.Options{Path: h.dir + "/spool.db"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	for _, b := range store.Bots() {
		page, err := b.Updates(spool.UpdateFilter{})
		if err != nil || len(page.Items) != 4 {
			t.Errorf("bot %s has %d updates, want 4 (%v)", b.Name(), len(page.Items), err)
		}
		if note, err := b.Note("webhook"); note != nil || err != nil {
			t.Errorf("bot %s still has a webhook: %s %v", b.Name(), note, err)
		}
	}
	for _, hidden := range []string{proof, firstToken, secondToken} {
		if strings.Contains(h.log.String(), hidden) {
			t.Errorf("a secret was logged:\n%s", &h.log)
		}
	}
}

func TestWebhook_OtherTLSFiles(t *testing.T) {
	h := newHouse(t)
	plain := strings.ReplaceAll(h.byWebhook("second"), "tls_", "# tls_")
	h.settings(map[string]string{"first": h.byWebhook("first"), "second": plain})
	h.start()
	err := <-h.ended
	var coded interface{ ExitCode() int }
	if !errors.As(err, &coded) || coded.ExitCode() != 78 {
		t.Fatalf("Run: %v", err)
	}
	for _, want := range []string{"[bots.second.intake]", "[bots.first.intake]", h.addr} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error doesn't name %s: %v", want, err)
		}
	}
}

// A reload takes over a new secret and a renewed certificate, and registers.
func TestWebhook_Reload(t *testing.T) {
	h := newHouse(t)
	h.settings(map[string]string{"first": h.byWebhook("first"), "second": h.byWebhook("second")})
	h.feed("before")
	h.start()
	h.wantReplies("before")
	h.roots.AddCert(h.certificate())
	h.file("secret", "another_one")
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if err := h.until(func(ctx context.Context) string {
		conn, err := (&tls.Dialer{Config: &tls.Config{RootCAs: h.roots, ServerName: "hook.test"}}).DialContext(ctx, "tcp", h.addr)
		if err != nil {
			return err.Error()
		}
		defer func() { _ = conn.Close() }()
		serving, ok := conn.(*tls.Conn)
		if !ok || serving.ConnectionState().PeerCertificates[0].SerialNumber.Int64() != h.serial {
			return "the old certificate"
		}
		return ""
	}); err != nil {
		t.Error(err)
	}
	h.feed("after")
	h.wantReplies("after")
	h.settings(nil)
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if err := h.until(func(context.Context) string {
		if log := h.logged(); !strings.Contains(log, "count after a restart") {
			return log
		}
		return ""
	}); err != nil {
		t.Error(err)
	}
	h.end()
	if strings.Contains(h.logged(), "keeps its secret") {
		t.Errorf("the secret that the new settings don't have is missed:\n%s", h.logged())
	}
	if log := h.log.String(); strings.Count(log, "the webhook is registered") != 4 || strings.Contains(log, "another_one") {
		t.Errorf("log:\n%s", log)
	}
}

// A bot whose address is taken says so and goes on trying; the other one works.
func TestWebhook_AddressIsTaken(t *testing.T) {
	h := newHouse(t)
	l, err := net.Listen("tcp", h.addr)
	if err != nil {
		t.Fatal(err)
	}
	h.settings(map[string]string{"first": h.byWebhook("first"), "second": h.byWebhook("second")})
	h.feed("hello")
	h.start()
	if err := h.status(func(s string) bool {
		return strings.Count(s, `"offline"`) >= 2 && strings.Contains(s, "address already in use")
	}); err != nil {
		t.Error(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	h.wantReplies("hello")
	h.end()
}

// TestUnconfigured_OneLine: why a bot can't work, and what to do, stand in one
// line of its state.
func TestUnconfigured_OneLine(t *testing.T) {
	h := newHouse(t)
	h.settings(nil)
	if err := os.Remove(h.dir + "/first"); err != nil {
		t.Fatal(err)
	}
	h.start()
	if err := h.status(func(s string) bool {
		return strings.Contains(s, "/first: ") && strings.Contains(s, "; write it with: tgspool token set first") && !strings.Contains(s, `\n`)
	}); err != nil {
		t.Error(err)
	}
	h.end()
}

// status asks the daemon until the answer is as wanted.
func (h *house) status(ok func(string) bool) error {
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", h.dir+"/s")
		},
	}}
	return h.until(func(ctx context.Context) string {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://tgspool/v1/status", nil)
		if err != nil {
			return err.Error()
		}
		response, err := client.Do(r)
		if err != nil {
			return err.Error()
		}
		defer func() { _ = response.Body.Close() }()
		var body bytes.Buffer
		if _, err := body.ReadFrom(response.Body); err != nil {
			return err.Error()
		}
		if !ok(body.String()) {
			return body.String()
		}
		return ""
	})
}

// until looks again and again until nothing is missing.
func (h *house) until(missing func(ctx context.Context) string) error {
	ctx, cancel := context.WithTimeout(h.t.Context(), 20*time.Second)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		last := missing(ctx)
		if last == "" {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("it stays at: %s", last)
		}
	}
}
