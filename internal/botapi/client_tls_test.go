package botapi

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// login is what stands in a URL for a user and a password, which must never be shown.
const login = "ada:hunter2@"

// serveTLS answers every request; roots is what a client must trust. edit may
// change the certificate.
func serveTLS(t *testing.T, edit func(*x509.Certificate)) (server *httptest.Server, roots *x509.CertPool, requests *atomic.Int64) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	if edit != nil {
		edit(template)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	requests = new(atomic.Int64)
	server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		if r.ProtoMajor != 1 {
			t.Errorf("spoken over %s", r.Proto)
		}
		_, _ = io.WriteString(w, okBody)
	}))
	server.EnableHTTP2 = true
	server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError) // refused handshakes are what is tested
	server.StartTLS()
	t.Cleanup(server.Close)
	roots = x509.NewCertPool()
	roots.AddCert(leaf)
	return server, roots, requests
}

func trust(client *Client, roots *x509.CertPool) {
	for _, transport := range client.own {
		transport.TLSClientConfig.RootCAs = roots
	}
}

func TestOverTLS(t *testing.T) {
	server, roots, _ := serveTLS(t, nil)
	client := newTestClient(t, Config{BaseURL: server.URL})
	trust(client, roots)
	for i := range 2 {
		seen, o := call(t, client, hello)
		expect(t, seen, o, PhaseResponse, ClassOK)
		// The handshake is far bigger than the request, and isn't counted.
		if !seen.TLSVerified || seen.ServerDate.IsZero() || seen.BytesWritten > 500 || seen.Reused != (i == 1) {
			t.Errorf("call %d: verified %v, date %v, %d bytes, reused %v", i, seen.TLSVerified, seen.ServerDate, seen.BytesWritten, seen.Reused)
		}
	}
}

func TestWrongCertificates(t *testing.T) {
	for _, c := range []struct {
		name    string
		edit    func(*x509.Certificate)
		trusted bool
		says    string
	}{
		{"unknown authority", nil, false, "unknown authority"},
		{"other host", func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 2)} }, true, "127.0.0.1"},
		{"over", func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }, true, "is the clock right?"},
		{"not yet", func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Minute) }, true, "is the clock right?"},
	} {
		t.Run(c.name, func(t *testing.T) {
			server, roots, requests := serveTLS(t, c.edit)
			client := newTestClient(t, Config{BaseURL: server.URL})
			if c.trusted {
				trust(client, roots)
			}
			seen, o := call(t, client, hello)
			expect(t, seen, o, PhaseConnected, ClassOffline)
			if !strings.Contains(seen.Err.Error(), c.says) || requests.Load() != 0 {
				t.Errorf("%v, %d requests", seen.Err, requests.Load())
			}
		})
	}
}

func TestServerThatSpeaksNoTLS(t *testing.T) {
	server := serveWire(t, func(_ *wire, c *wireConn) {
		_, _ = c.in.Peek(1)
		c.answer("400 Bad Request", "text/plain", "plain HTTP only")
	})
	seen, o := call(t, newTestClient(t, Config{BaseURL: "https://" + server.host}), hello)
	expect(t, seen, o, PhaseConnected, ClassOffline)
}

func TestServerThatHangsUpInTheHandshake(t *testing.T) {
	server := serveWire(t, func(_ *wire, c *wireConn) { _, _ = c.in.Peek(1) })
	seen, o := call(t, newTestClient(t, Config{BaseURL: "https://" + server.host}), hello)
	expect(t, seen, o, PhaseConnected, ClassOffline)
}

// tunnel connects both ends until one of them closes.
func tunnel(client net.Conn, in *bufio.Reader, host string) {
	server, err := net.Dial("tcp", host)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	var wait sync.WaitGroup
	wait.Go(func() {
		_, _ = io.Copy(client, server)
		_ = client.Close()
	})
	_, _ = io.Copy(server, in)
	_ = server.Close()
	wait.Wait()
}

func TestThroughHTTPProxy(t *testing.T) {
	server, roots, requests := serveTLS(t, nil)
	asked := make(chan *http.Request, 4)
	proxy := serveWire(t, func(_ *wire, c *wireConn) {
		r := c.request()
		asked <- r
		c.say("HTTP/1.1 200 Connection established\r\n\r\n")
		tunnel(c.Conn, c.in, r.Host)
	})
	client := newTestClient(t, Config{BaseURL: server.URL, Proxy: "http://" + login + proxy.host})
	trust(client, roots)
	seen, o := call(t, client, hello)
	expect(t, seen, o, PhaseResponse, ClassOK)
	r := <-asked
	if r.Method != http.MethodConnect || r.Header.Get("Proxy-Authorization") == "" || requests.Load() != 1 {
		t.Errorf("%s, %d requests", r.Method, requests.Load())
	}
	if !seen.TLSVerified || seen.BytesWritten > 500 {
		t.Errorf("verified %v, %d bytes", seen.TLSVerified, seen.BytesWritten)
	}
}

func TestProxyThatRefuses(t *testing.T) {
	for _, answer := range []string{
		"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n",
		"",
	} {
		proxy := serveWire(t, func(_ *wire, c *wireConn) {
			c.request()
			c.say(answer)
		})
		client := newTestClient(t, Config{BaseURL: "https://tgspool.invalid", Proxy: "http://" + login + proxy.host})
		seen, o := call(t, client, hello)
		expect(t, seen, o, PhaseConnected, ClassOffline)
	}
}

// TestPlainProxyMayPassTheRequestOn: without a tunnel the proxy gets the request itself,
// so what it does with it can't be known.
func TestPlainProxyMayPassTheRequestOn(t *testing.T) {
	proxy := serveWire(t, func(_ *wire, c *wireConn) { c.request() })
	client := newTestClient(t, Config{BaseURL: "http://tgspool.invalid", Proxy: "http://" + proxy.host})
	seen, o := call(t, client, hello)
	expect(t, seen, o, PhaseWritten, ClassUnknownOutcome)
}

func TestThroughSOCKS(t *testing.T) {
	server, roots, _ := serveTLS(t, nil)
	refuse := atomic.Bool{}
	proxy := serveWire(t, func(_ *wire, c *wireConn) {
		greeting := make([]byte, 2)
		_, _ = io.ReadFull(c.in, greeting)
		_, _ = c.in.Discard(int(greeting[1]))
		c.say("\x05\x00")
		_, _ = c.in.Discard(10) // CONNECT to an IPv4 address
		if refuse.Load() {
			c.say("\x05\x05\x00\x01\x00\x00\x00\x00\x00\x00")
			return
		}
		c.say("\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00")
		target, _ := url.Parse(server.URL)
		tunnel(c.Conn, c.in, target.Host)
	})
	client := newTestClient(t, Config{BaseURL: server.URL, Proxy: "socks5://" + proxy.host})
	trust(client, roots)
	seen, o := call(t, client, hello)
	expect(t, seen, o, PhaseResponse, ClassOK)
	refuse.Store(true)
	fresh := hello
	fresh.Fresh = true
	seen, o = call(t, client, fresh)
	expect(t, seen, o, PhaseConnected, ClassOffline)
}

func TestNewClientRefuses(t *testing.T) {
	token := mustToken(t)
	for name, config := range map[string]Config{
		"no token":         {},
		"base without URL": {Token: token, BaseURL: "api.telegram.org"},
		"base of a file":   {Token: token, BaseURL: "file:///etc/passwd"},
		"base with user":   {Token: token, BaseURL: "https://" + login + "api.telegram.org"},
		"base with query":  {Token: token, BaseURL: "https://api.telegram.org?hunter2"},
		"base unreadable":  {Token: token, BaseURL: "https://" + login + "[::1"},
		"proxy scheme":     {Token: token, Proxy: "ftp://" + login + "proxy:1"},
		"proxy unreadable": {Token: token, Proxy: "http://" + login + "proxy:port"},
		"proxy no URL":     {Token: token, Proxy: "hunter2"},
		"family":           {Token: token, IPFamily: "5"},
	} {
		client, err := NewClient(config)
		if err == nil || client != nil {
			t.Errorf("%s was taken", name)
			continue
		}
		if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), testSecret) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, family := range []string{"", "auto", "4", "6"} {
		if _, err := NewClient(Config{Token: token, IPFamily: family}); err != nil {
			t.Errorf("family %q: %v", family, err)
		}
	}
}

func TestOnlyOneFamily(t *testing.T) {
	server := serveWire(t, echoOK) // on 127.0.0.1
	seen, o := call(t, newTestClient(t, Config{BaseURL: server.url, IPFamily: "4"}), hello)
	expect(t, seen, o, PhaseResponse, ClassOK)
	seen, o = call(t, newTestClient(t, Config{BaseURL: server.url, IPFamily: "6"}), hello)
	expect(t, seen, o, PhaseNone, ClassOffline)
}
