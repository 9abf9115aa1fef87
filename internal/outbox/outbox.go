// Package outbox is the one place where a call of the Bot API becomes a job of
// the spool. Commands, the local endpoints and the handlers' answers all come
// through here, so that the same call makes the same job whoever asked for it.
//
// It decides what the spool, which knows nothing of Telegram, has to be told of
// a call: the queue that it stands in, how many messages it puts into its chat,
// and whether a second run would do harm. It never changes the parameters, unless
// it is asked to split a long text.
package outbox

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/spool"
)

// EphemeralTTL is how long a call lives that is worthless later: answers to
// queries, chat actions, drafts.
const EphemeralTTL = 10 * time.Second

const (
	maxMethodLen = 64  // bytes; the longest known name has 38
	maxChatLen   = 128 // bytes; the longest @name has 33
)

// refused are the methods that would work against the spool itself, and why.
var refused = map[string]string{
	"getUpdates":     "the spool takes the updates itself and keeps them; read its inbox",
	"setWebhook":     "the spool owns the bot's intake; set it in [bots.….intake]",
	"deleteWebhook":  "the spool owns the bot's intake; set it in [bots.….intake]",
	"getWebhookInfo": "the spool owns the bot's intake; ask for its status",
	"logOut":         "it would lock the token out of Telegram's servers for 10 minutes",
	"close":          "it would close the bot's session under the spool's feet",
}

// Options is what may be said about a call beside its parameters. Zero values
// leave the choice to the bot's settings.
type Options struct {
	Files       []spool.File
	Lane        spool.Lane
	NotBefore   time.Time
	ExpiresAt   time.Time
	MaxAttempts int
	OnUncertain spool.Policy
	DedupeKey   string
	DedupeFor   time.Duration
	Origin      string
	Force       bool // try a chat that is inactive

	// LateNote: when the text goes out late its end says when it was written.
	LateNote bool
	// Replace: a pending job that holds the dedupe key gives way to this one.
	Replace bool
	// OwnOnly: it must be of the same origin.
	OwnOnly bool
	// Verbatim: nothing in the parameters is meant for tgspool.
	Verbatim bool
	// Fallback is made once, in the same place, when the call is rejected.
	Fallback *Fallback
	// PlainFallback makes the call once more without markup when that is refused.
	PlainFallback bool
	// Split makes several messages of a text that is longer than one may be.
	Split bool
}

// Fallback is the second call of a job. It goes to the same chat as the first.
type Fallback struct {
	Method string // empty: that of the first call
	Params json.RawMessage
}

// New makes the job of one call. The params are a JSON object, or empty for
// none. Every error wraps spool.ErrInvalid and says what is wrong in words that
// a caller may see.
func New(method string, params json.RawMessage, o Options) (spool.NewJob, error) {
	job, err := anyJob(method, params, o)
	if err == nil && o.LateNote {
		last := &job
		if n := len(job.Parts); n > 0 {
			last = &job.Parts[n-1]
		}
		last.LateNote = true
	}
	return job, err
}

// anyJob makes the job of a call, split or not.
func anyJob(method string, params json.RawMessage, o Options) (spool.NewJob, error) {
	m, err := Method(method)
	if err != nil {
		return spool.NewJob{}, err
	}
	fields, err := readFields(params)
	if err != nil {
		return spool.NewJob{}, err
	}
	if err := check(o); err != nil {
		return spool.NewJob{}, err
	}
	if o.Split || o.PlainFallback {
		return newText(m, params, fields, o)
	}
	return newJob(m, params, fields, o)
}

// newJob makes the job of a call that goes out as it is.
func newJob(m botapi.Method, params json.RawMessage, fields map[string]json.RawMessage, o Options) (spool.NewJob, error) {
	job := spool.NewJob{
		Method:       m.Name,
		Params:       params,
		Files:        o.Files,
		ChatRaw:      fields["chat_id"],
		Weight:       botapi.Weight(m, params),
		SafeToRepeat: m.SafeToRepeat(params),
		Lane:         o.Lane,
		NotBefore:    o.NotBefore,
		ExpiresAt:    o.ExpiresAt,
		MaxAttempts:  o.MaxAttempts,
		OnUncertain:  o.OnUncertain,
		DedupeKey:    o.DedupeKey,
		DedupeFor:    o.DedupeFor,
		Origin:       o.Origin,
		Force:        o.Force,
		Replace:      o.Replace,
		OwnOnly:      o.OwnOnly,
	}
	var err error
	if job.Chat, err = queueOf(m, params, fields); err != nil {
		return spool.NewJob{}, err
	}
	if !o.Verbatim {
		if job.Refs, err = refsOf(params); err != nil {
			return spool.NewJob{}, err
		}
	}
	touches(&job, fields)
	if m.Kind == botapi.KindEphemeral {
		hurry(&job)
	}
	job.Fallback, err = fallback(&job, o.Fallback)
	return job, err
}

// fallback makes the second call of a job.
func fallback(job *spool.NewJob, f *Fallback) (*spool.NewFallback, error) {
	if f == nil {
		return nil, nil
	}
	second, err := New(cmp.Or(f.Method, job.Method), f.Params, Options{})
	switch {
	case err != nil:
		return nil, fmt.Errorf("the fallback: %w", err)
	case second.Chat != job.Chat:
		return nil, invalid("the fallback must go to the same chat as the call")
	}
	return &spool.NewFallback{
		Method: second.Method, Params: second.Params, Weight: second.Weight, SafeToRepeat: second.SafeToRepeat, Refs: second.Refs,
	}, nil
}

// Method finds what is known of a method by its name in any case, and refuses
// names that can't be one and those that only the spool itself may call.
func Method(name string) (botapi.Method, error) {
	if name == "" || len(name) > maxMethodLen || strings.Trim(name, methodChars) != "" {
		return botapi.Method{}, invalid("%q can't be the name of a method", cut(name, maxMethodLen))
	}
	m := botapi.MethodFor(name)
	if why, ok := refused[m.Name]; ok {
		return botapi.Method{}, invalid("%s is refused: %s", m.Name, why)
	}
	return m, nil
}

const methodChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

// hurry puts a job that is worthless in a moment before all others.
func hurry(job *spool.NewJob) {
	job.Lane = spool.Interactive
	latest := time.Now().Add(EphemeralTTL)
	if job.ExpiresAt.IsZero() || job.ExpiresAt.After(latest) {
		job.ExpiresAt = latest
	}
}

// queueOf names the queue that a call stands in: its chat, the inline message
// that it edits, or for ephemeral calls one of their own, so that they are held
// up by nothing in the chat. It is empty for calls that concern no chat.
func queueOf(m botapi.Method, params json.RawMessage, fields map[string]json.RawMessage) (string, error) {
	chat, hasChat := botapi.ChatParam(m, params)
	switch {
	case m.Kind == botapi.KindEphemeral:
		what := chat
		if !hasChat {
			what = queryID(fields)
		}
		chat = "once:" + m.Name + ":" + what
	case !hasChat:
		inline := paramText(fields["inline_message_id"])
		if inline == "" {
			return "", nil
		}
		chat = "inline:" + inline
	default:
		chat = canonical(chat)
	}
	if len(chat) > maxChatLen {
		return "", invalid("%q can't be the name of a chat or query", cut(chat, maxChatLen))
	}
	return chat, nil
}

// canonical spells a chat so that one chat has one queue: ids as plain decimals,
// names in lower case.
func canonical(chat string) string {
	if id, err := strconv.ParseInt(chat, 10, 64); err == nil {
		return strconv.FormatInt(id, 10)
	}
	return strings.ToLower(chat)
}

// queryID finds the query that an ephemeral call answers. The parameter's name
// differs from method to method, its ending doesn't.
func queryID(fields map[string]json.RawMessage) string {
	for name, value := range fields {
		if strings.HasSuffix(name, "query_id") {
			return paramText(value)
		}
	}
	return ""
}

func check(o Options) error {
	if o.Lane != "" && !slices.Contains(spool.Lanes(), o.Lane) {
		return invalid("%q is no lane: interactive, normal or bulk", cut(string(o.Lane), 32))
	}
	if o.OnUncertain != "" && !slices.Contains(spool.Policies(), o.OnUncertain) {
		return invalid("%q is no policy: hold, resend, resend_marked or drop", cut(string(o.OnUncertain), 32))
	}
	if o.Replace && o.DedupeKey == "" {
		return invalid("only the holder of a dedupe key can be replaced: give one")
	}
	if o.MaxAttempts < 0 {
		return invalid("max_attempts is %d", o.MaxAttempts)
	}
	return nil
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{spool.ErrInvalid}, args...)...)
}

// cut bounds a stranger's text in an error.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
