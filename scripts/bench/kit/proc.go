package kit

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strconv"
	"strings"
	"time"
)

// Written is how many bytes this process has handed to write calls so far. What
// bbolt and SQLite put into a memory map doesn't count, but neither writes its
// file that way.
func Written() int64 { return field("/proc/self/io", "wchar:") }

// RSSAnon is the anonymous memory of a process in bytes: what the kernel can't
// drop and read again from a file. 0 when the process is gone.
func RSSAnon(pid int) int64 {
	return 1024 * field(fmt.Sprintf("/proc/%d/status", pid), "RssAnon:")
}

// CPU is the time on a CPU of all threads of this process that still live.
func CPU() time.Duration { return Threads(os.Getpid()).CPU }

// Activity is what a process has done so far.
type Activity struct {
	CPU     time.Duration
	Wakeups int64 // times that a thread went to sleep by itself, and so woke up again
	Written int64 // bytes handed to write calls
	Stored  int64 // bytes that the kernel took for a disk
}

// Threads sums up the living threads of a process.
func Threads(pid int) (a Activity) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	for _, task := range tasks {
		if raw, err := os.ReadFile(task + "/schedstat"); err == nil {
			ran, _, _ := strings.Cut(string(raw), " ")
			ns, _ := strconv.ParseInt(ran, 10, 64)
			a.CPU += time.Duration(ns)
		}
		a.Wakeups += field(task+"/status", "voluntary_ctxt_switches:")
	}
	io := fmt.Sprintf("/proc/%d/io", pid)
	a.Written, a.Stored = field(io, "wchar:"), field(io, "write_bytes:")
	return a
}

// field reads a number from a file of lines "name: number".
func field(path, name string) int64 {
	raw, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(raw) {
		if rest, ok := bytes.CutPrefix(line, []byte(name)); ok {
			words := strings.Fields(string(rest))
			n, _ := strconv.ParseInt(words[0], 10, 64)
			return n
		}
	}
	return 0
}

// startProfile profiles into a file until stop; with no path it does nothing.
func startProfile(path string) (stop func(), err error) {
	if path == "" {
		return func() {}, nil
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, err
	}
	return func() {
		pprof.StopCPUProfile()
		_ = f.Close()
		if f, err := os.Create(path + ".allocs"); err == nil {
			_ = pprof.Lookup("allocs").WriteTo(f, 0)
			_ = f.Close()
		}
	}, nil
}

// Payload is the parameters of the i-th job: 300 bytes, one of 5,000 chats.
func Payload(i int64) []byte {
	p := fmt.Appendf(nil, `{"chat_id":%d,"text":"%09d `, Chat(i), i)
	return append(append(p, text[:Size-len(p)-2]...), `"}`...)
}

// The conditions of all figures.
const (
	Size  = 300    // bytes of parameters
	Chats = 5_000  // chats, in turn
	Ended = 10_000 // jobs that are over and still kept
)

// Chat is the chat of the i-th job, an id as people have them.
func Chat(i int64) int64 { return 7_000_000_000 + i%Chats }

var text = strings.Repeat("The spool keeps what it was given. ", 9)
