package localapi_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tgspool/tgspool/internal/localapi"
	"github.com/tgspool/tgspool/internal/manage"
	"github.com/tgspool/tgspool/internal/spool"
)

// TestServer_Hosts: a web page whose name is made to mean this machine gets
// nothing, on whichever face, and hears so in the form of that face.
func TestServer_Hosts(t *testing.T) {
	s, _ := server(t, localapi.Config{
		Endpoints: []localapi.Endpoint{{Addr: "tcp:127.0.0.1:0"}, {Addr: "unix:" + filepath.Join(t.TempDir(), "s")}},
		Manage:    api(nil), Bot: botFace, Bearer: logins, Hosts: []string{"Pi.lan."},
	})
	tests := []struct {
		host string
		ok   bool
	}{
		{"localhost:8081", true},
		{"LOCALHOST.", true},
		{"app.localhost", true},
		{"127.1.2.3:8081", true},
		{"[::1]:8081", true},
		{"[::ffff:127.0.0.1]", true},
		{"pi.lan:8081", true},
		{"", true},
		{"evil.example", false},
		{"evil.example:8081", false},
		{"192.0.2.1:8081", false},
		{"localhost.evil.example", false},
		{"127.0.0.1.evil.example", false},
		{"2130706433", false},
		{"pi.lan.evil.example", false},
	}
	for _, tt := range tests {
		t.Run(tt.host, func(t *testing.T) {
			for _, path := range []string{"/bot1:a/getMe", "/file/bot1:a/x", "/v1/status", "/healthz", "/"} {
				res := raw(t, s.Addrs()[0], "GET "+path+" HTTP/1.1\r\nAuthorization: Bearer admin\r\nHost: "+tt.host+"\r\n\r\n") //nolint:bodyclose // raw closes it at the end of the test
				if ok := res.StatusCode == http.StatusOK; ok != tt.ok || !ok && res.StatusCode != http.StatusForbidden {
					t.Errorf("%s: status %d", path, res.StatusCode)
				}
				if tt.ok {
					continue
				}
				var body struct {
					Code   int `json:"error_code"`
					Status int `json:"status"`
				}
				if err := json.NewDecoder(res.Body).Decode(&body); err != nil || body.Code+body.Status != http.StatusForbidden {
					t.Errorf("%s: body %+v, %v", path, body, err)
				}
			}
			if res := raw(t, s.Addrs()[1], "GET /v1/status HTTP/1.1\r\nHost: "+tt.host+"\r\n\r\n"); res.StatusCode != http.StatusOK { //nolint:bodyclose // raw closes it at the end of the test
				t.Errorf("a socket that no page can reach: %d", res.StatusCode)
			}
		})
	}
	s.UseHosts([]string{"evil.example"})
	if res := raw(t, s.Addrs()[0], "GET /healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n"); res.StatusCode != http.StatusOK { //nolint:bodyclose // raw closes it at the end of the test
		t.Errorf("a name that a reload has brought: %d", res.StatusCode)
	}
}

// logins stands in for the daemon's tokens.
func logins(token string) localapi.Login {
	switch token {
	case "admin":
		return localapi.Login{Admin: true}
	case "client":
		return localapi.Login{Caller: &manage.Caller{Name: "client", Origins: []string{"api:client"}}}
	case "flood":
		return localapi.Login{Wait: 1500 * time.Millisecond}
	}
	return localapi.Login{}
}

// TestServer_Bearer: who comes in over TCP, and as whom.
func TestServer_Bearer(t *testing.T) {
	face := face(t)
	s, _ := server(t, localapi.Config{
		Endpoints: []localapi.Endpoint{{Addr: "tcp:127.0.0.1:0"}, {Addr: "tcp:127.0.0.1:0", Serve: []string{"submit"}}},
		Manage:    face, Bot: botFace, Bearer: logins,
	})
	tests := []struct {
		face          int
		authorization string
		path          string
		status        int
	}{
		{0, "Bearer admin", "/v1/bots/x/jobs", 404},
		{0, "bearer  admin ", "/v1/bots/x/jobs", 404},
		{0, "Bearer client", "/v1/bots/x/jobs", 404},
		{0, "Bearer client", "/v1/bots/x/chats", 403},
		{0, "Bearer client", "/v1/nothing", 403},
		{0, "Bearer wrong", "/v1/bots/x/jobs", 401},
		{0, "Bearer flood", "/v1/bots/x/jobs", 429},
		{0, "Basic admin", "/v1/bots/x/jobs", 401},
		{0, "admin", "/v1/bots/x/jobs", 401},
		{0, "Bearer", "/v1/bots/x/jobs", 401},
		{0, "", "/v1/bots/x/jobs", 401},
		{1, "Bearer admin", "/v1/bots/x/jobs", 404},
		{1, "Bearer admin", "/v1/bots/x/chats", 403},
		{1, "Bearer client", "/v1/bots/x/jobs", 404},
	}
	for _, tt := range tests {
		t.Run(tt.authorization+tt.path, func(t *testing.T) {
			res := raw(t, s.Addrs()[tt.face], "GET "+tt.path+" HTTP/1.1\r\nHost: localhost\r\nAuthorization: "+tt.authorization+"\r\n\r\n") //nolint:bodyclose // raw closes it at the end of the test
			if res.StatusCode != tt.status {
				t.Errorf("status %d, want %d", res.StatusCode, tt.status)
			}
			if tt.status == 429 && res.Header.Get("Retry-After") != "2" {
				t.Errorf("come again after %q", res.Header.Get("Retry-After"))
			}
			if tt.status == 401 && res.Header.Get("WWW-Authenticate") == "" {
				t.Error("no challenge")
			}
		})
	}
}

// face is the management API of a daemon without a bot.
func face(t *testing.T) http.Handler {
	t.Helper()
	store, err := spool.Open(t.Context(), spool.Options{Path: filepath.Join(t.TempDir(), "spool.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return manage.New(manage.Config{Store: store, Bots: noBots{}})
}

// noBots is a daemon without a bot.
type noBots struct{}

func (noBots) Names() []string                           { return nil }
func (noBots) View(string) (manage.View, bool)           { return manage.View{}, false }
func (noBots) ResolveChat(string, string) (string, bool) { return "", false }

// TestServer_Submit: what one may do on a socket that serves no more than that,
// whoever one is.
func TestServer_Submit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "submit.sock")
	s, _ := server(t, localapi.Config{
		Endpoints: []localapi.Endpoint{{Addr: "unix:" + path, Serve: []string{"submit"}}}, Manage: face(t),
	})
	for path, status := range map[string]int{
		"/v1/bots/x/jobs": 404, "/v1/status": 403, "/v1/bots/x/chats": 403, "/v1/bots/x/updates": 403,
	} {
		if res := ask(t, s.Addrs()[0], path); res.StatusCode != status { //nolint:bodyclose // ask closes it at the end of the test
			t.Errorf("%s: status %d, want %d", path, res.StatusCode, status)
		}
	}
}

// authority makes certificates for 127.0.0.1.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pool *x509.CertPool
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{pool: x509.NewCertPool()}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.pool.AddCert(a.cert)
	return a
}

// write puts a certificate with the serial number and its key into a folder.
func (a *authority) write(t *testing.T, dir string, serial int64) (cert, key string) {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(a.key)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// TestServer_TLS: requests, uploads and errors over TLS, a renewed certificate,
// one that can't be read, and a client that speaks plain HTTP.
func TestServer_TLS(t *testing.T) {
	dir, ca := t.TempDir(), newAuthority(t)
	cert, key := ca.write(t, dir, 7)
	s, _ := server(t, localapi.Config{
		Endpoints: []localapi.Endpoint{{Addr: "tcp:127.0.0.1:0", TLSCert: cert, TLSKey: key}}, Manage: api(nil), Bot: botFace, Bearer: logins,
	})
	address := s.Addrs()[0].String()
	get := func(path string) *http.Response {
		t.Helper()
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: ca.pool, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true}}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+address+path, strings.NewReader(strings.Repeat("x", 1<<20)))
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = res.Body.Close() })
		return res
	}
	res := get("/bot1:a/sendPhoto") //nolint:bodyclose // get closes it at the end of the test
	if res.StatusCode != 200 || res.Header.Get("X-Access") != "false" || res.TLS.PeerCertificates[0].SerialNumber.Int64() != 7 {
		t.Errorf("answer %d, access %q", res.StatusCode, res.Header.Get("X-Access"))
	}
	if err := os.WriteFile(cert, []byte("half a certif"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.ReloadTLS(); err == nil || !strings.Contains(err.Error(), cert) {
		t.Errorf("a broken certificate: %v", err)
	}
	if res := get("/bot1:a/getMe"); res.TLS.PeerCertificates[0].SerialNumber.Int64() != 7 { //nolint:bodyclose // get closes it at the end of the test
		t.Error("the broken certificate has replaced the good one")
	}
	ca.write(t, dir, 8)
	if err := s.ReloadTLS(); err != nil {
		t.Error(err)
	}
	if res := get("/bot1:a/getMe"); res.TLS.PeerCertificates[0].SerialNumber.Int64() != 8 { //nolint:bodyclose // get closes it at the end of the test
		t.Error("the renewed certificate isn't in use")
	}
	plain := raw(t, s.Addrs()[0], "GET /bot1:a/getMe HTTP/1.1\r\nHost: localhost\r\n\r\n") //nolint:bodyclose // raw closes it at the end of the test
	if text, _ := io.ReadAll(plain.Body); plain.StatusCode != 400 || !strings.Contains(string(text), "HTTPS only") {
		t.Errorf("plain HTTP: %d %s", plain.StatusCode, text)
	}
	conn, err := (&tls.Dialer{Config: &tls.Config{RootCAs: ca.pool, MinVersion: tls.VersionTLS12}}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_, _ = io.WriteString(conn, "nonsense\r\n\r\n")
	if text, _ := io.ReadAll(conn); !strings.Contains(string(text), `{"ok":false,"error_code":400`) {
		t.Errorf("nonsense: %s", text)
	}
}

// TestListen_BadCertificate names the files, and leaves nothing open.
func TestListen_BadCertificate(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	_, err := localapi.Listen(context.Background(), localapi.Config{Manage: http.NotFoundHandler(), Endpoints: []localapi.Endpoint{
		{Addr: "unix:" + socket}, {Addr: "tcp:127.0.0.1:0", TLSCert: "/none/cert.pem", TLSKey: "/none/key.pem"},
	}})
	if err == nil || !strings.Contains(err.Error(), "/none/cert.pem") {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(socket); err == nil {
		t.Error("the socket is left")
	}
}
