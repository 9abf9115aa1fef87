package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tgspool/tgspool/internal/localapi"
	"github.com/tgspool/tgspool/internal/manage"
	"github.com/tgspool/tgspool/internal/spool"
)

// level is how bad something is, as Nagios counts: the exit code of the check.
type level int

const (
	levelOK level = iota
	levelWarning
	levelCritical
)

func (l level) String() string { return []string{"OK", "WARNING", "CRITICAL"}[l] }

// finding is one thing that was looked at.
type finding struct {
	Check string  `json:"check"`
	Bot   string  `json:"bot,omitempty"`
	Level level   `json:"level"`
	Word  string  `json:"status"`
	Value float64 `json:"value"`
	Warn  float64 `json:"warn"` // 0: none
	Crit  float64 `json:"crit"`
	Text  string  `json:"text"`
	unit  string
}

// limit is when a value is a warning and when it is critical; 0 is never.
type limit struct {
	warn, crit float64
	unit       string // "s", "B" or none
	below      bool   // bad when it is below, not above
	what       string // for the man page
}

// limits are the checks that have thresholds, with the defaults. Seconds, bytes
// or counts.
func limits() map[string]limit {
	return map[string]limit{
		"oldest":    {300, 600, "s", false, "how long the oldest job has been due"},
		"offline":   {60, 600, "s", false, "how long Telegram hasn't been reached"},
		"cooldown":  {300, 3600, "s", false, "how long Telegram makes the bot wait"},
		"queue":     {0, 0, "", false, "jobs that wait"},
		"dead":      {1, 0, "", false, "jobs given up in 24 h"},
		"uncertain": {1, 0, "", false, "jobs that may or may not have arrived"},
		"held":      {0, 0, "", false, "jobs that are held"},
		"unhandled": {100, 1000, "", false, "updates that wait for a handler"},
		"free":      {256 << 20, 64 << 20, "B", true, "room on the store's disk"},
	}
}

// limitNames are in the order in which they are shown.
var limitNames = []string{"oldest", "offline", "cooldown", "queue", "dead", "uncertain", "held", "unhandled", "free"}

// readLimits takes KEY=VALUE of --warn and --crit over.
func readLimits(warn, crit []string) (map[string]limit, error) {
	all := limits()
	for i, pair := range append(slices.Clone(warn), crit...) {
		name, text, ok := strings.Cut(pair, "=")
		l, known := all[name]
		if !ok || !known {
			return nil, withHint(usagef("%q is no threshold", pair), "KEY=VALUE with one of "+strings.Join(limitNames, ", "))
		}
		v, err := readLimit(l, text)
		if err != nil {
			return nil, usagef("%s: %s", name, err)
		}
		if i < len(warn) {
			l.warn = v
		} else {
			l.crit = v
		}
		all[name] = l
	}
	return all, nil
}

func readLimit(l limit, text string) (float64, error) {
	if l.unit == "s" {
		d, err := manage.ParseDuration(text)
		return d.Seconds(), err
	}
	factor := 1.0
	if l.unit == "B" {
		for i, suffix := range []string{"KiB", "MiB", "GiB"} {
			if number, ok := strings.CutSuffix(text, suffix); ok {
				text, factor = number, float64(int64(1)<<(10*(i+1)))
			}
		}
	}
	n, err := strconv.ParseUint(text, 10, 40)
	if err != nil {
		return 0, usagef("%q is not a number", short(text, 40))
	}
	return float64(n) * factor, nil
}

// judge compares a value with its limits.
func (l limit) judge(v float64) level {
	beyond := func(at float64) bool { return at > 0 && (!l.below && v >= at || l.below && v < at) }
	switch {
	case beyond(l.crit):
		return levelCritical
	case beyond(l.warn):
		return levelWarning
	}
	return levelOK
}

// check is status --check: it ends with 0, 1 or 2.
func (a *app) check(ctx context.Context, client *localapi.Client, warn, crit []string, format string) error {
	all, err := readLimits(warn, crit)
	if err != nil {
		return err
	}
	print, ok := map[string]func([]finding){"nagios": a.checkNagios, "text": a.checkText, "json": a.checkJSON, "prometheus": a.checkPrometheus}[format]
	if !ok {
		return usagef("unknown format %q; known: nagios, text, json, prometheus", short(format, 40))
	}
	var status manage.Status
	var found []finding
	if err := client.Do(ctx, localapi.Request{Method: http.MethodGet, Path: "/v1/status"}, &status); err != nil {
		// Whoever watches counts to two: a daemon that doesn't answer is the worst.
		found = []finding{{Check: "daemon", Level: levelCritical, Text: safe(err.Error())}}
	} else {
		found = judged(status, all, time.Now())
	}
	worst := levelOK
	for i := range found {
		found[i].Word = found[i].Level.String()
		worst = max(worst, found[i].Level)
	}
	print(found)
	if worst == levelOK {
		return nil
	}
	return silent(int(worst))
}

// judged looks at everything that status shows.
func judged(s manage.Status, all map[string]limit, now time.Time) []finding {
	found := []finding{{Check: "daemon", Text: "it answers"}}
	measured := func(bot, name string, v float64, text string) {
		l := all[name]
		found = append(found, finding{Check: name, Bot: bot, Level: l.judge(v), Value: v, Warn: l.warn, Crit: l.crit, Text: text, unit: l.unit})
	}
	stated := func(bot, name string, l level, text string) {
		found = append(found, finding{Check: name, Bot: bot, Level: l, Text: text})
	}
	measured("", "free", float64(s.Store.FreeBytes), size(s.Store.FreeBytes)+" free")
	if s.Store.Full {
		stated("", "store", levelCritical, "the store can't take anything new")
	}
	if s.Store.BackupError != "" {
		stated("", "backup", levelWarning, "the daily snapshot failed: "+short(s.Store.BackupError, 200))
	}
	if len(s.Bots.Names) == 0 {
		stated("", "bots", levelWarning, "no bot is configured")
	}
	for _, name := range s.Bots.Names {
		judgeBot(name, s.Bots.ByName[name], now, measured, stated)
	}
	return found
}

func judgeBot(name string, b manage.BotStatus, now time.Time, measured func(bot, name string, v float64, text string), stated func(bot, name string, l level, text string)) {
	offline := 0.0
	for _, part := range []struct {
		name, state string
		since       *time.Time
	}{{"intake", b.Intake.State, b.Intake.Since}, {"sender", b.Sender.State, b.Sender.Since}} {
		l := levelOK
		switch part.state {
		case "unauthorized", "unconfigured", "full":
			l = levelCritical
		case "conflict":
			l = levelWarning
		case "offline":
			if part.since != nil {
				offline = max(offline, now.Sub(*part.since).Seconds())
			}
		}
		stated(name, part.name, l, part.name+" "+safe(part.state))
	}
	cooldown := 0.0
	if until := b.Sender.CooldownUntil; until != nil {
		cooldown = max(0, until.Sub(now).Seconds())
	}
	seconds := func(v float64) string { return span(time.Duration(v * float64(time.Second))) }
	measured(name, "oldest", b.OldestPendingAgeS, "the oldest job due for "+seconds(b.OldestPendingAgeS))
	measured(name, "offline", offline, "offline for "+seconds(offline))
	measured(name, "cooldown", cooldown, "has to wait "+seconds(cooldown))
	measured(name, "queue", float64(b.QueueDepth), fmt.Sprintf("%d queued", b.QueueDepth))
	measured(name, "dead", float64(b.DeadLast24h), fmt.Sprintf("%d dead in 24 h", b.DeadLast24h))
	measured(name, "uncertain", float64(b.Jobs[spool.Uncertain]), fmt.Sprintf("%d uncertain", b.Jobs[spool.Uncertain]))
	measured(name, "held", float64(b.Jobs[spool.Held]), fmt.Sprintf("%d held", b.Jobs[spool.Held]))
	measured(name, "unhandled", float64(b.InboxUnhandled), fmt.Sprintf("%d updates unhandled", b.InboxUnhandled))
	for _, h := range b.Handlers {
		if h.State == "unreachable" {
			stated(name, "handler", levelWarning, "handler "+safe(h.Name)+" can't be reached")
		}
	}
}

// subject names what a finding is about.
func (f finding) subject() string {
	if f.Bot == "" {
		return f.Text
	}
	return safe(f.Bot) + ": " + f.Text
}

// checkNagios prints one line: the verdict, what is bad, and the measurements.
func (a *app) checkNagios(found []finding) {
	worst := levelOK
	var bad, data []string
	for _, f := range found {
		worst = max(worst, f.Level)
		if f.Level > levelOK {
			bad = append(bad, f.subject())
		}
		if f.Warn == 0 && f.Crit == 0 && f.Check != "queue" {
			continue
		}
		label := f.Check
		if f.Bot != "" {
			label = f.Bot + "_" + f.Check
		}
		data = append(data, fmt.Sprintf("'%s'=%s%s;%s;%s", strings.NewReplacer("'", "", "=", "").Replace(safe(label)), figure(f.Value), f.unit, threshold(f, f.Warn), threshold(f, f.Crit)))
	}
	if len(bad) == 0 {
		bad = []string{"all is well"}
	}
	a.out.printf("TGSPOOL %s - %s | %s\n", worst, strings.ReplaceAll(strings.Join(bad, "; "), "|", "/"), strings.Join(data, " "))
}

// threshold is written as Nagios reads it: "N:" alerts below N.
func threshold(f finding, v float64) string {
	switch {
	case v == 0:
		return ""
	case limits()[f.Check].below:
		return figure(v) + ":"
	}
	return figure(v)
}

func figure(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

func (a *app) checkText(found []finding) {
	for _, f := range found {
		code := []string{green, yellow, red}[f.Level]
		a.out.printf("%s  %s\n", a.colour(code, fmt.Sprintf("%-8s", f.Level)), f.subject())
	}
}

func (a *app) checkJSON(found []finding) {
	for _, f := range found {
		raw, err := json.Marshal(f)
		if err == nil { // it always is: names and numbers
			a.out.jsonLine(raw)
		}
	}
}

// checkPrometheus prints what node_exporter's textfile collector reads.
func (a *app) checkPrometheus(found []finding) {
	a.out.printf("# HELP tgspool_check_status 0 is ok, 1 a warning, 2 critical.\n# TYPE tgspool_check_status gauge\n")
	seen := map[string]bool{}
	for _, f := range found {
		labels := fmt.Sprintf("{check=%q,bot=%q}", f.Check, safe(f.Bot))
		if !seen[labels] { // handlers share one
			a.out.printf("tgspool_check_status%s %d\n", labels, f.Level)
		}
		seen[labels] = true
	}
}
