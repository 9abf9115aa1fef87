package localapi

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestPeer_MayManage(t *testing.T) {
	const uid, gid = 990, 991
	tests := []struct {
		name string
		peer peer
		want bool
	}{
		{"root", peer{uid: 0, groups: []uint32{0}}, true},
		{"the daemon's user", peer{uid: uid, groups: []uint32{5}}, true},
		{"a member of its group", peer{uid: 1000, groups: []uint32{1000, 27, gid}}, true},
		{"a stranger", peer{uid: 1000, groups: []uint32{1000, 27}}, false},
		{"a user whose id is the group's", peer{uid: gid, groups: []uint32{uid}}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.peer.mayManage(uid, gid); got != tt.want {
				t.Errorf("may manage: %v", got)
			}
		})
	}
}

// TestCredentials compares what the kernel says of the other end with what we
// are ourselves.
func TestCredentials(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", filepath.Join(t.TempDir(), "x"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	client, err := new(net.Dialer).DialContext(t.Context(), "unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	got, err := credentials(conn.(*net.UnixConn))
	if err != nil {
		t.Fatal(err)
	}
	if got.uid != uint32(os.Geteuid()) || !slices.Contains(got.groups, uint32(os.Getegid())) {
		t.Errorf("credentials %+v", got)
	}
	groups, err := os.Getgroups()
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range groups {
		if !slices.Contains(got.groups, uint32(g)) {
			t.Errorf("group %d is missing in %v", g, got.groups)
		}
	}
}

// TestByPeer: whoever can't be told is turned away.
func TestByPeer(t *testing.T) {
	rec := httptest.NewRecorder()
	byPeer(Endpoint{}, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("a request without credentials came through")
	})).ServeHTTP(rec, httptest.NewRequest("GET", "/v1/status", nil))
	if rec.Code != http.StatusForbidden {
		t.Errorf("status %d", rec.Code)
	}
}
