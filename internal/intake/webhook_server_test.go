package intake_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tgspool/tgspool/internal/intake"
	"github.com/tgspool/tgspool/internal/spool"
	"github.com/tgspool/tgspool/internal/telegramsim"
)

// pipes is a listener without sockets, so that its connections live in a bubble.
type pipes struct {
	conns chan net.Conn
	once  sync.Once
	end   chan struct{}
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), end: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.end:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error { p.once.Do(func() { close(p.end) }); return nil }

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// dial connects, or reports false when nobody accepts before ctx ends.
func (p *pipes) dial(ctx context.Context) (net.Conn, bool) {
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return ours, true
	case <-p.end:
	case <-ctx.Done():
	}
	return nil, false
}

// served runs a server with one bot in a bubble.
func served(t *testing.T, p *hookPost) (l *pipes, stop func()) {
	t.Helper()
	l = newPipes()
	s, err := intake.ServerOn(intake.ServerConfig{Hooks: map[string]*intake.Webhook{"home": p.hook}}, l)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	return l, func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	}
}

// exchange writes a request and reads the answer's status and Connection.
func exchange(t *testing.T, c net.Conn, request string) (status int, connection string) {
	t.Helper()
	go func() { _, _ = io.WriteString(c, request) }()
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Errorf("no answer: %v", err)
		return 0, ""
	}
	_ = response.Body.Close()
	if response.Close {
		return response.StatusCode, "close"
	}
	return response.StatusCode, ""
}

func raw(method, path, body string) string {
	return fmt.Sprintf("%s %s HTTP/1.1\r\nHost: x\r\nX-Telegram-Bot-Api-Secret-Token: %s\r\nContent-Length: %d\r\n\r\n%s",
		method, path, hookSecret, len(body), body)
}

func TestServer_Paths(t *testing.T) {
	for _, tt := range []struct {
		method, path string
		status       int
	}{
		{"POST", "/telegram/home", 200},
		{"POST", "/telegram/home?x=y", 200},
		{"POST", "/telegram/", 404},
		{"POST", "/telegram/other", 404},
		{"POST", "/telegram/home/", 404},
		{"POST", "/telegram//home", 404},
		{"POST", "/telegram/../telegram/home", 404},
		{"POST", "/", 404},
		{"POST", "/v1/status", 404},
		{"GET", "/", 404},
		{"GET", "/telegram/home", 405},
		{"HEAD", "/telegram/home", 405},
	} {
		t.Run(tt.method+" "+tt.path, func(t *testing.T) {
			inHookBubble(t, func(t *testing.T, p *hookPost) {
				p.receive(func(c *intake.WebhookConfig) { c.URL = "" })
				l, stop := served(t, p)
				defer stop()
				c, _ := l.dial(t.Context())
				defer func() { _ = c.Close() }()
				status, connection := exchange(t, c, raw(tt.method, tt.path, `{"update_id":5}`))
				if status != tt.status || (connection == "close") != (status != 200) {
					t.Errorf("answer %d, connection %q; want %d", status, connection, tt.status)
				}
			})
		})
	}
}

// Whoever is slow is cut off, before and in the middle of the body.
func TestServer_SlowCallers(t *testing.T) {
	for _, tt := range []struct {
		name, begin string
		most        time.Duration
		status      int // 0: no answer at all
	}{
		{"nothing", "", 11 * time.Second, 0},
		{"half a head", "POST /telegram/home HTTP/1.1\r\nHost:", 11 * time.Second, 0},
		{"half a body", raw("POST", "/telegram/home", `{"update_id":5}`)[:len(raw("POST", "/telegram/home", `{"update_id":5}`))-4], 31 * time.Second, 408},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inHookBubble(t, func(t *testing.T, p *hookPost) {
				p.receive(func(c *intake.WebhookConfig) { c.URL = "" })
				l, stop := served(t, p)
				defer stop()
				c, _ := l.dial(t.Context())
				defer func() { _ = c.Close() }()
				start := time.Now()
				if _, err := io.WriteString(c, tt.begin); err != nil {
					t.Fatal(err)
				}
				answer, _ := io.ReadAll(c)
				if took := time.Since(start); took > tt.most {
					t.Errorf("cut off after %s", took)
				}
				if got := string(answer); tt.status != 0 && !strings.HasPrefix(got, fmt.Sprintf("HTTP/1.1 %d ", tt.status)) {
					t.Errorf("answer %q", got)
				}
				p.wantStates()
			})
		})
	}
}

// A stop takes nothing new and lets a commit under way be answered, but doesn't
// wait for one for ever.
func TestServer_Stop(t *testing.T) {
	for _, tt := range []struct {
		name   string
		commit time.Duration
		took   time.Duration
	}{
		{"commit in time", 5 * time.Second, 5 * time.Second},
		{"commit too late", 40 * time.Second, 10 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inHookBubble(t, func(t *testing.T, p *hookPost) {
				p.receive(func(c *intake.WebhookConfig) {
					inner := c.Bot
					c.URL, c.Bot = "", inboxFunc{inner, func(ctx context.Context, b spool.Batch) (spool.Taken, error) {
						<-time.After(tt.commit)
						return inner.Intake(ctx, b)
					}}
				})
				l, stop := served(t, p)
				c, _ := l.dial(t.Context())
				defer func() { _ = c.Close() }()
				answer := make(chan string, 1)
				go func() {
					_, _ = io.WriteString(c, raw("POST", "/telegram/home", `{"update_id":5,"message":{}}`))
					got, _ := io.ReadAll(c)
					answer <- string(got)
				}()
				synctest.Wait()
				start := time.Now()
				stop()
				// The server looks twice a second whether its connections are free.
				if took := time.Since(start); took < tt.took || took > tt.took+time.Second {
					t.Errorf("stopping took %s, want about %s", took, tt.took)
				}
				got, ok := <-answer, tt.commit < tt.took+time.Second
				if strings.HasPrefix(got, "HTTP/1.1 200 ") != ok {
					t.Errorf("answer %q", got)
				}
				if _, ok := l.dial(t.Context()); ok {
					t.Error("a connection was accepted after the stop")
				}
				after(tt.commit) // the bubble's end waits for the commit
				p.wantStates("5 message open")
			})
		})
	}
}

func TestServer_Connections(t *testing.T) {
	inHookBubble(t, func(t *testing.T, p *hookPost) {
		p.receive(func(c *intake.WebhookConfig) { c.URL = "" })
		l, stop := served(t, p)
		defer stop()
		var open []net.Conn
		for range intake.MaxConns {
			c, _ := l.dial(t.Context())
			open = append(open, c)
		}
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, ok := l.dial(soon); ok {
			t.Errorf("more than %d connections", intake.MaxConns)
		}
		_ = open[0].Close()
		c, ok := l.dial(t.Context())
		if !ok {
			t.Fatal("a freed place isn't used")
		}
		open = append(open[1:], c)
		if status, _ := exchange(t, c, raw("POST", "/telegram/home", `{"update_id":5}`)); status != 200 {
			t.Errorf("answer %d", status)
		}
		for _, c := range open {
			_ = c.Close()
		}
	})
}

// newCert writes a certificate for a host, signed by itself.
func newCert(t *testing.T, dir, host string) (cert *x509.Certificate, certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, DNSNames: []string{host}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	if cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, block := range map[string]*pem.Block{
		certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: keyDER},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, certFile, keyFile
}

// pushTo is a transport that finds every host at one address and trusts one
// certificate.
func pushTo(addr string, cert *x509.Certificate, most uint16) *http.Transport {
	roots := x509.NewCertPool()
	roots.AddCert(cert)
	return &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, MaxVersion: most},
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", addr)
		},
	}
}

// Over a real socket with TLS: Telegram pushes, the certificate is renewed.
func TestServer_TLS(t *testing.T) {
	dir := t.TempDir()
	store, err := spool.Open(t.Context(), spool.Options{Path: filepath.Join(dir, "spool.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	bot, err := store.Attach(t.Context(), spool.BotConfig{ID: 123456, Name: "home"})
	if err != nil {
		t.Fatal(err)
	}
	hook, err := intake.NewWebhook(intake.WebhookConfig{Bot: bot, Route: pull, Secret: hookSecret})
	if err != nil {
		t.Fatal(err)
	}
	cert, certFile, keyFile := newCert(t, dir, "hook.invalid")
	s, err := intake.Listen(t.Context(), intake.ServerConfig{
		Addr: "127.0.0.1:0", TLSCert: certFile, TLSKey: keyFile, Hooks: map[string]*intake.Webhook{"home": hook},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()

	push := pushTo(s.Addr().String(), cert, 0)
	defer push.CloseIdleConnections()
	sim := telegramsim.New(telegramsim.Options{Bots: []telegramsim.Bot{{Token: token}}, Push: push})
	defer sim.Close()
	p := &hookPost{post: &post{t: t, sim: sim, bot: bot}}
	setSimWebhook(t, sim)
	took := make(chan *spool.Lease, 1)
	go func() {
		lease, err := bot.ClaimUpdate(ctx, "")
		if err == nil {
			took <- lease
		}
	}()
	p.text("over TLS")
	if lease := <-took; !strings.Contains(string(lease.Raw), "over TLS") {
		t.Errorf("took %s", lease.Raw)
	}

	old := pushTo(s.Addr().String(), cert, tls.VersionTLS11)
	if response, err := old.RoundTrip(get(t)); err == nil {
		t.Error("TLS 1.1 was accepted")
		_ = response.Body.Close()
	}
	if err := os.WriteFile(certFile, []byte("half a"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.ReloadTLS(); err == nil || !strings.Contains(err.Error(), certFile) {
		t.Errorf("a broken certificate: %v", err)
	}
	wantStatus(t, pushTo(s.Addr().String(), cert, 0), http.StatusMethodNotAllowed) // the old one still serves
	renewed, _, _ := newCert(t, dir, "hook.invalid")
	if err := s.ReloadTLS(); err != nil {
		t.Fatal(err)
	}
	wantStatus(t, pushTo(s.Addr().String(), renewed, 0), http.StatusMethodNotAllowed)
}

func get(t *testing.T) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://hook.invalid/telegram/home", nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func wantStatus(t *testing.T, transport *http.Transport, status int) {
	t.Helper()
	defer transport.CloseIdleConnections()
	response, err := transport.RoundTrip(get(t))
	if err != nil {
		t.Error(err)
		return
	}
	_ = response.Body.Close()
	if response.StatusCode != status {
		t.Errorf("answer %d, want %d", response.StatusCode, status)
	}
}

// setSimWebhook registers the hook as a person does without url in the settings.
func setSimWebhook(t *testing.T, sim *telegramsim.Sim) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		"https://api.invalid/bot"+token+"/setWebhook?url=https://hook.invalid/telegram/home&secret_token="+hookSecret, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := sim.Transport().RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("setWebhook: %d", response.StatusCode)
	}
}
