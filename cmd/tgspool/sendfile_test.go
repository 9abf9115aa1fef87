package main_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tgspool/tgspool/internal/telegramsim"
)

// TestSendFile hands a file over while Telegram can't be reached, kills the
// daemon, and finds the file at Telegram byte for byte, once, and nowhere else.
func TestSendFile(t *testing.T) {
	r := newRig(t, build(t), 1)
	r.sim.SetOffline(true) // from the start: over a connection that is cut the call would be in doubt
	r.start()
	r.ready()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	content := make([]byte, 3_000_001)
	for i, rng := 0, rand.New(rand.NewPCG(7, 7)); i < len(content); i++ {
		content[i] = byte(rng.Uint32())
	}
	name := filepath.Join(r.dir, `a "log" of тест.bin`)
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if said := r.command(ctx, "send", "--chat", "8000000000", "--document", name, "--key", "log", "the", "log"); said != "job 1 pending\n" {
		r.fatal("send says %q", said)
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	// Killed within an attempt it would be in doubt whether the file has arrived.
	r.until(ctx, "to find Telegram away", func() bool {
		var job struct {
			State string
			Error *struct{ Class string } `json:"last_error"`
		}
		_, err := r.do(ctx, http.MethodGet, "/v1/jobs/1", nil, &job)
		return err == nil && job.State == "pending" && job.Error != nil && job.Error.Class == "offline"
	})
	r.stop(syscall.SIGKILL)
	r.start()
	r.ready()
	if left := r.uploads(); len(left) != 1 {
		r.fatal("uploads %q after the kill", left)
	}
	r.sim.SetOffline(false)
	r.until(ctx, "to send the file", func() bool { return len(r.uploads()) == 0 })

	var files []telegramsim.ArrivedFile
	for _, a := range r.sim.Journal() {
		if a.Effect {
			files = append(files, a.Files...)
		}
	}
	sum := sha256.Sum256(content)
	if len(files) != 1 || files[0].SHA256 != hex.EncodeToString(sum[:]) || files[0].Name != filepath.Base(name) || files[0].Field != "document" {
		r.fatal("arrived: %+v", files)
	}
	if n := r.sim.CountText(8000000000, "the log"); n != 1 {
		t.Errorf("the caption has arrived %d times", n)
	}
}

// TestSendFile_DaemonStops in the middle of a file: the command says so, and
// neither a job nor a part of the file is left.
func TestSendFile_DaemonStops(t *testing.T) {
	binary := build(t)
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(signal.String(), func(t *testing.T) {
			r := newRig(t, binary, 1)
			r.start()
			r.ready()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			send := exec.CommandContext(ctx, r.binary, "send", "--chat", "8000000000", "--document", "-", "--config", r.settings)
			send.Env = []string{"PATH=/usr/bin:/bin"}
			var said bytes.Buffer
			send.Stderr = &said
			pipe, err := send.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := send.Start(); err != nil {
				t.Fatal(err)
			}
			if _, err := pipe.Write(make([]byte, 1<<20)); err != nil {
				t.Fatal(err)
			}
			r.until(ctx, "to take the beginning", func() bool { return len(r.uploads()) == 1 })
			r.stop(signal)
			_ = pipe.Close() // the command may have gone already
			err = send.Wait()
			exit, ok := errors.AsType[*exec.ExitError](err)
			if !ok || exit.ExitCode() != 75 || !strings.Contains(said.String(), "the daemon has gone before it said that the job is queued") {
				t.Errorf("send ends with %v: %s", err, &said)
			}
			r.start()
			r.ready()
			if left := r.uploads(); len(left) != 0 {
				t.Errorf("uploads %q are left", left)
			}
			var list struct{ Items []json.RawMessage }
			if _, err := r.do(ctx, http.MethodGet, "/v1/bots/kill/jobs", nil, &list); err != nil || len(list.Items) != 0 {
				t.Errorf("jobs %s, %v", list.Items, err)
			}
		})
	}
}

// stop ends the daemon by a signal.
func (r *rig) stop(signal syscall.Signal) {
	r.t.Helper()
	if err := r.daemon.cmd.Process.Signal(signal); err != nil {
		r.t.Fatal(err)
	}
	select {
	case <-r.daemon.ended:
	case <-time.After(20 * time.Second):
		r.fatal("the daemon didn't end")
	}
}

// uploads lists the files of jobs.
func (r *rig) uploads() []string {
	r.t.Helper()
	found, err := filepath.Glob(filepath.Join(r.dir, "files", "*", "*"))
	if err != nil {
		r.t.Fatal(err)
	}
	return found
}
