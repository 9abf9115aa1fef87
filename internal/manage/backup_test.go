package manage_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tgspool/tgspool/internal/manage"
	"github.com/tgspool/tgspool/internal/spool"
)

// TestBackup_OverTheUnixSocketOnly asks for snapshots, well and badly.
func TestBackup_OverTheUnixSocketOnly(t *testing.T) {
	dir := t.TempDir()
	store, err := spool.Open(t.Context(), spool.Options{Path: filepath.Join(dir, "spool.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	api := manage.New(manage.Config{Store: store})
	ask := func(network, body string) *httptest.ResponseRecorder {
		var addr net.Addr = &net.UnixAddr{Name: "x", Net: "unix"}
		if network != "unix" {
			addr = &net.TCPAddr{}
		}
		r := httptest.NewRequestWithContext(context.WithValue(t.Context(), http.LocalAddrContextKey, addr),
			http.MethodPost, "/v1/db/backup", strings.NewReader(body))
		w := httptest.NewRecorder()
		api.ServeHTTP(w, r)
		return w
	}
	to := filepath.Join(dir, "copy.db")
	tests := []struct {
		network, body string
		want          int
	}{
		{"tcp", `{}`, 403},
		{"unix", `{"to":"copy.db"}`, 422},
		{"unix", `{"too":"x"}`, 422},
		{"unix", `{"to":7}`, 422},
		{"unix", `[]`, 400},
		{"unix", `{"to":"/no/such/folder/x.db"}`, 422},
		{"unix", `{"to":"` + to + `"}`, 201},
		{"unix", `{"to":"` + to + `"}`, 409},
		{"unix", `{"check":true}`, 200},
		{"unix", ``, 201},
	}
	for _, tt := range tests {
		w := ask(tt.network, tt.body)
		if w.Code != tt.want {
			t.Errorf("%s %s: %d %s, want %d", tt.network, tt.body, w.Code, w.Body, tt.want)
		}
		var done manage.Backup
		if w.Code < 300 && (json.Unmarshal(w.Body.Bytes(), &done) != nil || done.Problems == nil) {
			t.Errorf("%s: %s", tt.body, w.Body)
		}
	}
	if _, err := os.Stat(to); err != nil || len(spool.Snapshots(filepath.Join(dir, "snapshots"))) != 1 {
		t.Errorf("the files: %v", err)
	}
}
