package daemon

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"syscall"

	slogjournal "github.com/systemd/slog-journal"

	"github.com/tgspool/tgspool/internal/config"
)

// newLogger chooses the form of the log: fields for the journal when stderr
// leads there, JSON on request, else text.
func newLogger(c config.Log, level *slog.LevelVar, stderr io.Writer, getenv func(string) string) *slog.Logger {
	level.Set(logLevel(c.Level))
	if c.Format == "json" {
		return slog.New(slog.NewJSONHandler(stderr, &slog.HandlerOptions{Level: level}))
	}
	if leadsToJournal(stderr, getenv("JOURNAL_STREAM")) {
		h, err := slogjournal.NewHandler(&slogjournal.Options{
			Level:        level,
			ReplaceAttr:  func(_ []string, a slog.Attr) slog.Attr { a.Key = journalKey(a.Key); return a },
			ReplaceGroup: journalKey,
		})
		if err == nil {
			return slog.New(h)
		}
	}
	return slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level}))
}

// logLevel reads a level that the settings have checked.
func logLevel(name string) slog.Level {
	var l slog.Level
	if err := l.UnmarshalText([]byte(name)); err != nil {
		return slog.LevelInfo
	}
	return l
}

// journalKey makes a key of ours one that the journal accepts.
func journalKey(key string) string { return strings.ToUpper(key) }

// leadsToJournal compares stderr with the stream that systemd has connected to
// the journal, given as device:inode.
func leadsToJournal(stderr io.Writer, stream string) bool {
	f, ok := stderr.(*os.File)
	if !ok || stream == "" {
		return false
	}
	fi, err := f.Stat()
	if err != nil {
		return false
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	return ok && stream == fmt.Sprintf("%d:%d", st.Dev, st.Ino)
}
