package manage

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tgspool/tgspool/internal/outbox"
	"github.com/tgspool/tgspool/internal/spool"
)

const (
	defaultLimit = 100
	maxLimit     = 1000
)

// params are the query parameters of a request, each given once.
type params map[string]string

// readQuery parses the query. A parameter that the endpoint doesn't know, one
// given twice and an empty one are refused: ignoring any of them would widen
// what is selected.
func readQuery(r *http.Request, known ...string) (params, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, problemf(http.StatusBadRequest, "the query can't be read")
	}
	q := params{}
	for name, all := range values {
		switch {
		case !slices.Contains(known, name):
			return nil, problemf(http.StatusBadRequest, "unknown parameter %q; known here: %s", name, listed(known))
		case len(all) > 1:
			return nil, problemf(http.StatusBadRequest, "parameter %q is given twice", name)
		case all[0] == "":
			return nil, problemf(http.StatusBadRequest, "parameter %q is empty", name)
		}
		q[name] = all[0]
	}
	return q, nil
}

func listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// page reads limit and after.
func (q params) page() (limit int, after int64, err error) {
	limit = defaultLimit
	if s, ok := q["limit"]; ok {
		limit, err = strconv.Atoi(s)
		if err != nil || limit < 1 || limit > maxLimit {
			return 0, 0, problemf(http.StatusBadRequest, "limit %q is not a number from 1 to %d", s, maxLimit)
		}
	}
	if s, ok := q["after"]; ok {
		after, err = strconv.ParseInt(s, 10, 64)
		if err != nil || after < 0 {
			return 0, 0, problemf(http.StatusBadRequest, "after %q is not an id", s)
		}
	}
	return limit, after, nil
}

// flag reads a parameter that is true or false.
func (q params) flag(name string) (bool, error) {
	switch q[name] {
	case "", "false", "0":
		return false, nil
	case "true", "1":
		return true, nil
	}
	return false, problemf(http.StatusBadRequest, "%s %q is neither true nor false", name, q[name])
}

// wait reads how long the answer may be held back; 0: not at all.
func (q params) wait() (time.Duration, error) {
	s, ok := q["wait"]
	if !ok {
		return 0, nil
	}
	d, err := ParseDuration(s)
	if err != nil {
		return 0, problemf(http.StatusBadRequest, "wait: %s", err)
	}
	return min(d, maxWait), nil
}

// filterNames are the parameters that select jobs.
var filterNames = []string{"state", "chat", "lane", "method", "key", "older", "origin"}

// filter reads the parameters that select jobs. Names of chats are those of
// the bot.
func (a *api) filter(bot string, q params) (spool.JobFilter, error) {
	f := spool.JobFilter{
		State: spool.State(q["state"]), Lane: spool.Lane(q["lane"]),
		Method: q["method"], Key: q["key"], Origin: q["origin"],
	}
	if f.State != "" && !slices.Contains(spool.States(), f.State) {
		return f, problemf(http.StatusBadRequest, "unknown state %q; known: %s", f.State, join(spool.States()))
	}
	if f.Lane != "" && !slices.Contains(spool.Lanes(), f.Lane) {
		return f, problemf(http.StatusBadRequest, "unknown lane %q; known: %s", f.Lane, join(spool.Lanes()))
	}
	if f.Method != "" {
		m, err := outbox.Method(f.Method)
		if err != nil {
			return f, problemf(http.StatusBadRequest, "method: %s", err)
		}
		f.Method = m.Name
	}
	if s, ok := q["chat"]; ok {
		chat, err := a.resolveChat(bot, s)
		if err != nil {
			return f, err
		}
		f.Chat = chat
	}
	if s, ok := q["older"]; ok {
		d, err := ParseDuration(s)
		if err != nil {
			return f, problemf(http.StatusBadRequest, "older: %s", err)
		}
		f.Older = d
	}
	return f, nil
}

// resolveChat returns the id in decimal or the @name of a chat given as id,
// @name or name of the settings.
func (a *api) resolveChat(bot, s string) (string, error) {
	if id, err := strconv.ParseInt(s, 10, 64); err == nil {
		return strconv.FormatInt(id, 10), nil
	} else if errors.Is(err, strconv.ErrRange) {
		return "", problemf(http.StatusBadRequest, "chat id %s is out of range", s)
	}
	if len(s) > 1 && s[0] == '@' {
		return strings.ToLower(s), nil
	}
	if chat, ok := a.bots.ResolveChat(bot, s); ok {
		return chat, nil
	}
	if s == "" {
		return "", problemf(http.StatusUnprocessableEntity, "bot %q has no default chat; name one with --chat", bot)
	}
	return "", problemf(http.StatusUnprocessableEntity,
		"%q is no chat id, no @name and no name in [bots.%s.chats]", s, bot)
}

func join[S ~string](all []S) string {
	names := make([]string, len(all))
	for i, s := range all {
		names[i] = string(s)
	}
	return strings.Join(names, ", ")
}

// id reads a number of the path.
func id(r *http.Request, name string) (int64, error) {
	n, err := strconv.ParseInt(r.PathValue(name), 10, 64)
	if err != nil || n < 1 {
		return 0, problemf(http.StatusBadRequest, "%q is no %s", r.PathValue(name), name)
	}
	return n, nil
}

// maxSpan bounds every duration of the API, so that no sum of times overflows.
const maxSpan = 10 * 365 * 24 * time.Hour

// ParseDuration reads a duration that isn't negative, like "90s", "1h30m" or,
// beyond what Go reads, "7d".
func ParseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if days, ok := strings.CutSuffix(s, "d"); ok && err != nil {
		var n int64
		if n, err = strconv.ParseInt(days, 10, 32); err == nil {
			n = max(min(n, 2*int64(maxSpan/(24*time.Hour))), -1)
			d = time.Duration(n) * 24 * time.Hour
		}
	}
	switch {
	case err != nil:
		return 0, problemf(http.StatusUnprocessableEntity, "%q is not a duration like 90s, 10m or 7d", s)
	case d < 0:
		return 0, problemf(http.StatusUnprocessableEntity, "%q is negative", s)
	case d > maxSpan:
		return 0, problemf(http.StatusUnprocessableEntity, "%q is over ten years", s)
	}
	return d, nil
}
