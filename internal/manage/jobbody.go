package manage

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tgspool/tgspool/internal/outbox"
	"github.com/tgspool/tgspool/internal/spool"
)

// maxJobs is the most that one request may queue.
const maxJobs = 10_000

// jobMembers are the members of a posted job.
var jobMembers = []string{
	"method", "params", "chat", "dedupe_key", "dedupe_for", "lane", "not_before", "delay",
	"expires_at", "ttl", "max_attempts", "on_uncertain", "force", "fallback", "replace",
	"split", "plain_fallback",
}

// posted is a job as it was asked for.
type posted struct {
	method  string
	params  json.RawMessage
	chat    *string // a name to be resolved; "" is the bot's default chat
	options outbox.Options

	fallback *posted // the second call: method, params and chat alone

	dedupeFor, delay, ttl bool // given
}

// readJob reads one posted job. The times of delay and ttl count from now.
func readJob(data []byte, now time.Time) (posted, error) {
	var p posted
	all, err := readObject(data)
	if err != nil {
		return p, err
	}
	for _, m := range all {
		if m.null() && slices.Contains(jobMembers, m.name) {
			continue
		}
		if err := p.set(m, now); err != nil {
			return p, err
		}
	}
	return p, p.check(now)
}

// set takes one member over.
func (p *posted) set(m member, now time.Time) (err error) {
	o := &p.options
	switch m.name {
	case "method":
		p.method, err = decode[string](m, "a string")
	case "params":
		p.params = m.value
		if m.value[0] != '{' {
			err = problemf(http.StatusUnprocessableEntity, `"params" must be an object`)
		}
	case "chat":
		p.chat, err = decode[*string](m, "a string")
		if err != nil {
			// An id may be written as the number that it is.
			var id int64
			id, err = decode[int64](m, "a chat id, @name or name of the settings")
			s := strconv.FormatInt(id, 10)
			p.chat = &s
		}
	case "dedupe_key":
		o.DedupeKey, err = decode[string](m, "a string")
	case "dedupe_for":
		p.dedupeFor = true
		o.DedupeFor, err = duration(m)
	case "lane":
		o.Lane, err = decode[spool.Lane](m, "one of "+join(spool.Lanes()))
	case "not_before":
		err = once(&o.NotBefore, m, "delay", timestamp)
	case "delay":
		p.delay = true
		err = once(&o.NotBefore, m, "not_before", after(now))
	case "expires_at":
		err = once(&o.ExpiresAt, m, "ttl", timestamp)
	case "ttl":
		p.ttl = true
		err = once(&o.ExpiresAt, m, "expires_at", after(now))
	case "max_attempts":
		o.MaxAttempts, err = decode[int](m, "a whole number")
		if err == nil && (o.MaxAttempts < 1 || o.MaxAttempts > 1000) {
			err = problemf(http.StatusUnprocessableEntity, `"max_attempts" must be from 1 to 1000`)
		}
	case "on_uncertain":
		o.OnUncertain, err = decode[spool.Policy](m, "one of "+join(spool.Policies()))
	case "force":
		o.Force, err = decode[bool](m, "true or false")
	case "replace":
		o.Replace, err = decode[bool](m, "true or false")
	case "split":
		o.Split, err = decode[bool](m, "true or false")
	case "plain_fallback":
		o.PlainFallback, err = decode[bool](m, "true or false")
	case "fallback":
		p.fallback, err = readFallback(m)
	default:
		return unknownMember(m.name, jobMembers)
	}
	return err
}

// readFallback reads the second call of a job: {"method":…,"params":…}.
func readFallback(m member) (*posted, error) {
	if m.value[0] != '{' {
		return nil, problemf(http.StatusUnprocessableEntity, `"fallback" must be an object like {"method":…,"params":…}`)
	}
	all, err := readObject(m.value)
	if err != nil {
		return nil, inside("fallback", err)
	}
	p := &posted{}
	for _, m := range all {
		if m.name != "method" && m.name != "params" {
			return nil, inside("fallback", unknownMember(m.name, []string{"method", "params"}))
		}
		if err := p.set(m, time.Time{}); err != nil {
			return nil, inside("fallback", err)
		}
	}
	if p.params == nil {
		return nil, problemf(http.StatusUnprocessableEntity, `"fallback" needs "params"`)
	}
	return p, nil
}

// inside says in which member an error was met.
func inside(name string, err error) error {
	if bad, ok := errors.AsType[*Problem](err); ok {
		bad.Detail = strconv.Quote(name) + ": " + bad.Detail
	}
	return err
}

// check looks at what single members can't tell.
func (p *posted) check(now time.Time) error {
	o := p.options
	switch {
	case p.method == "":
		return problemf(http.StatusUnprocessableEntity, `"method" is missing`)
	case p.dedupeFor && o.DedupeKey == "":
		return problemf(http.StatusUnprocessableEntity, `"dedupe_for" needs a "dedupe_key"`)
	case o.Replace && o.DedupeKey == "":
		return problemf(http.StatusUnprocessableEntity, `"replace" needs a "dedupe_key"`)
	case len(o.DedupeKey) > 256:
		return problemf(http.StatusUnprocessableEntity, `"dedupe_key" is longer than 256 bytes`)
	case o.Lane != "" && !slices.Contains(spool.Lanes(), o.Lane):
		return problemf(http.StatusUnprocessableEntity, "unknown lane %q; known: %s", o.Lane, join(spool.Lanes()))
	case o.OnUncertain != "" && !slices.Contains(spool.Policies(), o.OnUncertain):
		return problemf(http.StatusUnprocessableEntity, "unknown policy %q; known: %s", o.OnUncertain, join(spool.Policies()))
	case !o.ExpiresAt.IsZero() && !o.ExpiresAt.After(now):
		return problemf(http.StatusUnprocessableEntity, "the job would be expired at once")
	case !o.ExpiresAt.IsZero() && !o.NotBefore.IsZero() && !o.ExpiresAt.After(o.NotBefore):
		return problemf(http.StatusUnprocessableEntity, "the job would expire before it may go out")
	}
	return nil
}

func duration(m member) (time.Duration, error) {
	s, err := decode[string](m, `a duration like "10m"`)
	if err != nil {
		return 0, err
	}
	d, err := ParseDuration(s)
	if p, ok := errors.AsType[*Problem](err); ok {
		p.Detail = strconv.Quote(m.name) + ": " + p.Detail
	}
	return d, err
}

func timestamp(m member) (time.Time, error) {
	t, err := decode[time.Time](m, `a time like "2026-01-02T15:04:05Z"`)
	if err == nil && (t.Year() < 1970 || t.Year() > 2200) {
		return t, problemf(http.StatusUnprocessableEntity, "%q lies in the year %d", m.name, t.Year())
	}
	return t, err
}

// after reads a duration as the time that lies so far behind now.
func after(now time.Time) func(member) (time.Time, error) {
	return func(m member) (time.Time, error) {
		d, err := duration(m)
		return now.Add(d), err
	}
}

// once sets a time that may be given in two forms, but not in both.
func once(t *time.Time, m member, other string, read func(member) (time.Time, error)) error {
	if !t.IsZero() {
		return problemf(http.StatusUnprocessableEntity, "%q and %q exclude each other", m.name, other)
	}
	v, err := read(m)
	*t = v
	return err
}

// build makes the job of what was posted: names of chats are resolved, the rest
// of the parameters stays byte for byte.
func (a *api) build(r *http.Request, bot string, p posted) (spool.NewJob, error) {
	if err := a.place(bot, &p); err != nil {
		return spool.NewJob{}, err
	}
	who := callerOf(r)
	if err := who.check(p.method, p.params); err != nil {
		return spool.NewJob{}, err
	}
	who.apply(&p.options, time.Now())
	p.options.Origin, p.options.OwnOnly = origin(r), who != nil
	// What a person or a script has written by send is split, what call sends isn't.
	p.options.LateNote = p.options.LateNote || p.options.Origin == "cli" && p.options.Split
	if f := p.fallback; f != nil {
		f.method = cmp.Or(f.method, p.method)
		if own, _ := f.chatID(); !own {
			_, f.chat = p.chatID() // the chat of the first call
		}
		if err := a.place(bot, f); err != nil {
			return spool.NewJob{}, inside("fallback", err)
		}
		if err := who.check(f.method, f.params); err != nil {
			return spool.NewJob{}, inside("fallback", err)
		}
		p.options.Fallback = &outbox.Fallback{Method: f.method, Params: f.params}
	}
	job, err := outbox.New(p.method, p.params, p.options)
	if err == nil && len(job.Parts) > 0 { // all alike: the rest of a caption is a text
		err = who.check(job.Parts[0].Method, job.Parts[0].Params)
	}
	return job, err
}

// chatID is the chat_id of the parameters, as a name for place.
func (p *posted) chatID() (given bool, chat *string) {
	all, err := readObject(p.params)
	i := slices.IndexFunc(all, func(m member) bool { return m.name == "chat_id" && !m.null() })
	if err != nil || i < 0 {
		return false, nil
	}
	name := strings.Trim(string(all[i].value), `"`)
	return true, &name
}

// place puts the chat's id where a name of the settings stands: in "chat",
// which then becomes chat_id, or in chat_id itself.
func (a *api) place(bot string, p *posted) error {
	var all []member
	if len(p.params) > 0 {
		var err error
		if all, err = readObject(p.params); err != nil {
			return inside("params", err)
		}
	}
	i := slices.IndexFunc(all, func(m member) bool { return m.name == "chat_id" })
	if i >= 0 && !all[i].null() {
		if p.chat != nil {
			return problemf(http.StatusUnprocessableEntity, `"chat" and "chat_id" exclude each other`)
		}
		var name string // stays empty for a number, which needs no help
		_ = json.Unmarshal(all[i].value, &name)
		if chat, ok := a.bots.ResolveChat(bot, name); ok && name != "" && chat != name {
			from := all[i].end - int64(len(all[i].value))
			p.params = slices.Concat(p.params[:from], chatJSON(chat), p.params[all[i].end:])
		}
		return nil
	}
	if p.chat == nil {
		return nil
	}
	chat, err := a.resolveChat(bot, *p.chat)
	if err != nil {
		return err
	}
	return p.addChat(chat, all, i)
}

// addChat writes chat_id into parameters that have none, or null.
func (p *posted) addChat(chat string, all []member, null int) error {
	value := chatJSON(chat)
	switch {
	case null >= 0:
		m := all[null]
		p.params = slices.Concat(p.params[:m.end-int64(len(m.value))], value, p.params[m.end:])
	case len(all) == 0:
		p.params = slices.Concat([]byte(`{"chat_id":`), value, []byte("}"))
	default:
		rest := bytes.TrimLeft(p.params, " \t\r\n")[1:]
		p.params = slices.Concat([]byte(`{"chat_id":`), value, []byte(","), rest)
	}
	return nil
}

// chatJSON is an id as a number, an @name as a string.
func chatJSON(chat string) []byte {
	if _, err := strconv.ParseInt(chat, 10, 64); err == nil {
		return []byte(chat)
	}
	return []byte(strconv.Quote(chat))
}
