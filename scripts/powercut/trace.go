package main

import (
	"bufio"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// event is one thing of the trace that matters: the store's file was changed or
// synced, or something was confirmed.
type event struct {
	kind   string // write | size | sync | confirmed
	offset int64  // write; the new size with size
	data   []byte // write
	what   string // confirmed: "job", "update", "attempt" or "done"
	id     int64  // confirmed
}

var (
	unfinished = regexp.MustCompile(`^(\d+) +(\w+)\((.*) <unfinished \.\.\.>$`)
	resumed    = regexp.MustCompile(`^(\d+) +<\.\.\. (\w+) resumed>(.*)$`)
	whole      = regexp.MustCompile(`^(\d+) +(\w+)\((.*)$`)
	onFile     = regexp.MustCompile(`^\d+<([^>]*)>`)
	confirmed  = regexp.MustCompile(`^confirmed (\w+) (\d+)$`)
	hexString  = regexp.MustCompile(`"((?:\\x[0-9a-f]{2})*)"`)
)

// readTrace reads what strace -f -y -xx has written. Events stand in the order
// in which their calls have ended.
func readTrace(path string) ([]event, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var list []event
	begun := map[string]string{} // per thread: the call that it is in
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		line := lines.Text()
		if m := unfinished.FindStringSubmatch(line); m != nil {
			begun[m[1]] = m[3]
			continue
		}
		name, args := "", ""
		if m := resumed.FindStringSubmatch(line); m != nil {
			name, args = m[2], begun[m[1]]+m[3]
		} else if m := whole.FindStringSubmatch(line); m != nil {
			name, args = m[2], m[3]
		}
		e, ok, err := parse(name, args)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", line[:min(len(line), 120)], err)
		}
		if ok {
			list = append(list, e)
		}
	}
	return list, lines.Err()
}

// parse makes an event of a call; ok is false when it is none of ours.
func parse(name, args string) (e event, ok bool, err error) {
	m := onFile.FindStringSubmatch(args)
	if m == nil || strings.Contains(args, ") = -1 ") {
		return e, false, nil
	}
	// A new store is made under another name of the same beginning, whole.
	db := strings.Contains(string(unhex(`"`+m[1]+`"`)), "/spool.db")
	switch name {
	case "pwrite64":
		if !db {
			return e, false, nil
		}
		e.kind, e.data = "write", unhex(args)
		e.offset, err = number(args, `, (\d+)\) += \d+$`)
		return e, err == nil, err
	case "ftruncate":
		e.kind = "size"
		e.offset, err = number(args, `, (\d+)\) += 0$`)
		return e, db && err == nil, err
	case "fdatasync", "fsync":
		e.kind = "sync"
		return e, db, nil
	case "write":
		c := confirmed.FindStringSubmatch(strings.TrimSpace(string(unhex(args))))
		if c == nil {
			return e, false, nil
		}
		id, err := strconv.ParseInt(c[2], 10, 64)
		return event{kind: "confirmed", what: c[1], id: id}, true, err
	}
	return e, false, nil
}

func number(args, pattern string) (int64, error) {
	m := regexp.MustCompile(pattern).FindStringSubmatch(args)
	if m == nil {
		return 0, fmt.Errorf("no %s", pattern)
	}
	return strconv.ParseInt(m[1], 10, 64)
}

func unhex(args string) []byte {
	m := hexString.FindStringSubmatch(args)
	if m == nil {
		return nil
	}
	out := make([]byte, 0, len(m[1])/4)
	for i := 0; i+4 <= len(m[1]); i += 4 {
		b, _ := strconv.ParseUint(m[1][i+2:i+4], 16, 8)
		out = append(out, byte(b))
	}
	return out
}
