package daemon

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestNotifier_ExtendsALongStart opens a store that takes its time.
func TestNotifier_ExtendsALongStart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "n")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = manager.Close() }()
	t.Setenv("NOTIFY_SOCKET", path)
	done := (&notifier{}).extend(t.Context(), 20*time.Millisecond)
	buf := make([]byte, 512)
	for range 3 {
		if err := manager.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		n, err := manager.Read(buf)
		if err != nil || !strings.Contains(string(buf[:n]), "EXTEND_TIMEOUT_USEC=60000") {
			t.Fatalf("told %q, %v", buf[:n], err)
		}
	}
	done()
	for { // what was sent before is still there; then nothing comes any more
		if err := manager.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if _, err := manager.Read(buf); err != nil {
			return
		}
	}
}
