package cli_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// execSocket listens as tgspool-exec.socket does: each connection is the input
// and output of a process of its own.
func (b *box) execSocket(peer string) {
	b.t.Helper()
	path := filepath.Join(b.dir, "exec.sock")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		b.t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := listener.AcceptUnix()
			if err != nil {
				return
			}
			running.Go(func() { b.execInstance(conn, peer) })
		}
	})
	b.t.Cleanup(func() {
		_ = listener.Close()
		running.Wait()
	})
	b.env = append(b.env, "TGSPOOL_EXEC_SOCKET="+path)
}

func (b *box) execInstance(conn *net.UnixConn, peer string) {
	file, err := conn.File()
	_ = conn.Close() // the process has its own
	if err != nil {
		b.t.Error(err)
		return
	}
	path, err := exec.LookPath("tgspool")
	if err != nil {
		b.t.Error(err)
		return
	}
	c := exec.Command(path, "exec-handler", "--peer", peer)
	c.Stdin, c.Stdout = file, file
	c.Env = []string{"HOME=/of-the-unit", "CREDENTIALS_DIRECTORY=/secret", "PATH=/nowhere"}
	err = c.Run()
	_ = file.Close()
	if _, odd := err.(*exec.ExitError); err != nil && !odd { //nolint:errorlint // exec returns it as it is
		b.t.Error(err)
	}
}

const environmentHandler = `
[bots.home]
token_file = "/nowhere"
[[bots.home.handlers]]
name = "env"
exec = ["/usr/bin/env"]
allow_from = ["*"]
`

func TestTry_ThroughTheUnit(t *testing.T) {
	b := newBox(t)
	b.execSocket(strconv.Itoa(os.Getuid()))
	b.write("tgspool.toml", environmentHandler)
	code, out := b.run("", "try", "env")
	if code != 0 || !strings.Contains(out, "HOME=/of-the-unit") || !strings.Contains(out, "TGSPOOL_BOT=home") {
		t.Errorf("code %d:\n%s", code, out)
	}
	for _, leak := range []string{"CREDENTIALS", "/secret", "/nowhere", "API_BASE", "own rights"} {
		if strings.Contains(out, leak) {
			t.Errorf("%s is in\n%s", leak, out)
		}
	}
}
