package localapi_test

import (
	"context"
	"net"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/tgspool/tgspool/internal/localapi"
)

// bearer knows one token.
func bearer(token string) localapi.Login {
	return localapi.Login{Admin: token == "right"}
}

// TestServer_Metrics: the figures are for whoever may manage, and over TCP for
// programs of this machine.
func TestServer_Metrics(t *testing.T) {
	tests := []struct {
		name   string
		serve  []string
		unix   bool
		host   string
		header http.Header
		status int
	}{
		{name: "from loopback", status: 200},
		{name: "by name", host: "localhost:8081", status: 200},
		{name: "by the v6 address", host: "[::1]:9", status: 200},
		{name: "only figures", serve: []string{"metrics"}, status: 200},
		{name: "not served", serve: []string{"bot"}, status: 403},
		{name: "rebound name", host: "evil.example:8081", status: 403},
		{name: "behind a proxy", header: http.Header{"X-Forwarded-For": {"192.0.2.1"}}, status: 401},
		{name: "behind another proxy", header: http.Header{"Forwarded": {"for=192.0.2.1"}}, status: 401},
		{name: "behind a proxy with the admin's token", header: http.Header{"X-Forwarded-For": {"192.0.2.1"}, "Authorization": {"Bearer right"}}, status: 200},
		{name: "socket", unix: true, status: 200},
		{name: "socket for managing", unix: true, serve: []string{"manage"}, status: 200},
		{name: "socket for figures", unix: true, serve: []string{"metrics"}, status: 200},
		{name: "socket for submitting", unix: true, serve: []string{"submit"}, status: 403},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "s")
			e := localapi.Endpoint{Addr: "tcp:127.0.0.1:0", Serve: tt.serve}
			if tt.unix {
				e.Addr = "unix:" + path
			}
			s, _ := server(t, localapi.Config{Endpoints: []localapi.Endpoint{e}, Manage: api(nil), Bearer: bearer})
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			url := "http://" + s.Addrs()[0].String() + "/metrics"
			if tt.unix {
				client.Transport = &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
					return new(net.Dialer).DialContext(ctx, "unix", path)
				}}
				url = "http://tgspool/metrics"
			}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			if tt.header != nil {
				req.Header = tt.header
			}
			if tt.host != "" {
				req.Host = tt.host
			}
			res, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = res.Body.Close()
			if res.StatusCode != tt.status {
				t.Errorf("status %d, want %d", res.StatusCode, tt.status)
			}
		})
	}
}
