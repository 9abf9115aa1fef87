package handler

import (
	"strconv"
	"strings"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/spool"
)

// plainPath is the PATH of the programs, whatever the daemon's is.
const plainPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// maxVariable bounds one variable, in bytes. The system refuses to start a
// program with one over 128 KiB; Telegram's texts are far below, and the whole
// update is on standard input.
const maxVariable = 64 << 10

// environment is all that a program sees of us: nothing of the daemon's own
// environment, which may hold credentials. Variables that the update has no
// value for are there and empty, so that a script under `set -u` works.
func environment(bot, home string, u botapi.Update, lease *spool.Lease) []string {
	return []string{
		"PATH=" + plainPath,
		"LANG=C.UTF-8",
		"HOME=" + home,
		"TGSPOOL_BOT=" + bot,
		"TGSPOOL_UPDATE_ID=" + strconv.FormatInt(u.ID, 10),
		"TGSPOOL_KIND=" + variable(u.Kind),
		"TGSPOOL_CHAT_ID=" + optional(u.ChatID),
		"TGSPOOL_FROM_ID=" + optional(u.UserID),
		"TGSPOOL_TEXT=" + variable(u.Text),
		"TGSPOOL_COMMAND=" + variable(u.Command),
		"TGSPOOL_ARGS=" + variable(u.Args),
		"TGSPOOL_ATTEMPT=" + strconv.Itoa(lease.Attempts),
		"TGSPOOL_SESSION=" + string(sessionData(lease)),
	}
}

func optional(id int64) string {
	if id == 0 {
		return ""
	}
	return strconv.FormatInt(id, 10)
}

// variable makes a text fit for the environment: NUL bytes would end it.
func variable(s string) string {
	s = strings.ReplaceAll(s, "\x00", "")
	if len(s) > maxVariable {
		s = strings.ToValidUTF8(s[:maxVariable], "")
	}
	return s
}
