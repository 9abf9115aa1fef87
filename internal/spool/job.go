package spool

import (
	"encoding/json"
	"time"
)

// Job is one outgoing Bot API call as callers see it. The JSON names are part
// of the contract; every field is always there, null when empty.
type Job struct {
	ID          int64           `json:"id"`
	Bot         string          `json:"bot"`
	Method      string          `json:"method"`
	ChatID      json.RawMessage `json:"chat_id"`      // as the caller gave it
	SentChatID  json.RawMessage `json:"sent_chat_id"` // where the last attempt went
	Lane        Lane            `json:"lane"`
	State       State           `json:"state"`
	Params      json.RawMessage `json:"params"`
	Files       []File          `json:"files"`
	DedupeKey   *string         `json:"dedupe_key"`
	NotBefore   *time.Time      `json:"not_before"`
	RetryAt     *time.Time      `json:"retry_at"`
	ExpiresAt   *time.Time      `json:"expires_at"`
	Attempts    int             `json:"attempts"`
	MaxAttempts int             `json:"max_attempts"`
	OnUncertain Policy          `json:"on_uncertain"`
	HeldBy      *string         `json:"held_by"`
	Origin      string          `json:"origin"`
	CreatedAt   time.Time       `json:"created_at"`
	UpdatedAt   time.Time       `json:"updated_at"`
	LastError   *JobError       `json:"last_error"`
	Evidence    *Evidence       `json:"evidence"`
	Result      json.RawMessage `json:"result"`

	// Fallback stands only in jobs that have one, Part only in those of long texts.
	Fallback *Fallback `json:"fallback,omitempty"`
	Part     *PartOf   `json:"part,omitempty"`
}

// File is one upload of a job, kept beside the store until the job ends.
type File struct {
	Field string `json:"field" cbor:"1,keyasint"` // multipart field, or the name behind attach://
	Name  string `json:"name" cbor:"2,keyasint"`  // file name as the caller gave it
	Path  string `json:"path" cbor:"3,keyasint"`  // relative to the store's folder
	Size  int64  `json:"size" cbor:"4,keyasint"`  // bytes
}

// JobError is what went wrong with a job's last attempt.
type JobError struct {
	Class       string    `json:"class" cbor:"1,keyasint"`          // an outcome class, or the reason of an end without a call
	Code        int       `json:"code" cbor:"2,keyasint,omitempty"` // Telegram's error_code, 0 when there was none
	Description string    `json:"description" cbor:"3,keyasint"`    // Telegram's words, or ours
	At          time.Time `json:"at" cbor:"4,keyasint"`
}

// Evidence is how far the last attempt's request is known to have come.
type Evidence struct {
	Phase        string    `json:"phase" cbor:"1,keyasint"` // resolved | connected | tls | written | response
	BytesWritten int64     `json:"bytes_written" cbor:"2,keyasint,omitempty"`
	At           time.Time `json:"at" cbor:"3,keyasint"`
}

// NewJob is a call to be queued. Only Method is required.
type NewJob struct {
	Method string
	Params json.RawMessage // a JSON object, kept byte for byte; empty means {}
	Files  []File

	// Chat is the chat's id in decimal or its @name, the key of its queue.
	// Calls without a chat share the bot's queue for such calls (empty).
	Chat string
	// ChatRaw is chat_id as the caller wrote it; empty when there is none.
	ChatRaw json.RawMessage
	// Weight is the number of messages that the call puts into the chat: what
	// the gap and the group window count. 0 keeps the order but not the gap.
	Weight int
	// SafeToRepeat says that a second run of the call does no harm.
	SafeToRepeat bool

	// Fallback is made once, in the job's place, when the call is rejected; nil: none.
	Fallback *NewFallback
	// Parts are what follows when the call is the beginning of a long text, in its
	// order. They have no key, no files and no parts of their own; lane, times and
	// Force are those of this one.
	Parts []NewJob

	// Refs are the places in Params where results of other jobs go, in order. The
	// call waits for them.
	Refs []Ref
	// Edits names the message that the call edits, in whatever way is the same for
	// the same message; Deletes those that it deletes. See RefMark.
	Edits   string
	Deletes []string
	// LateNote: when it goes out late its text says when it was written.
	LateNote bool
	// Replace: a pending job that holds the dedupe key gives way to this one.
	Replace bool
	// OwnOnly: only one of the same origin does.
	OwnOnly bool

	Lane        Lane          // default Normal
	NotBefore   time.Time     // zero: at once
	ExpiresAt   time.Time     // zero: never
	MaxAttempts int           // default: the bot's
	OnUncertain Policy        // default: the bot's
	DedupeKey   string        // empty: none
	DedupeFor   time.Duration // 0: as long as the record is kept
	Origin      string        // who asked: "cli", "api", "handler:<name>", …
	Force       bool          // try an inactive chat all the same

	ID    int64  // as ReserveJob gave it out; 0: the next one
	Print []byte // fingerprint of the call, PrintSize bytes; empty: a repeat is a new call
	// Read are jobs of the bot whose ends have been read, as for MarkRead: stored
	// on the way, so that it costs no commit of its own.
	Read []Print
}

// Queued is the answer to a queued call.
type Queued struct {
	Job       Job
	Duplicate bool // the job that holds the dedupe key, not a new one
	// Parts are the ids of all parts of a long text, the job's first; nil otherwise.
	Parts []int64
}

// Claim is a job handed to a worker. Its attempt is already marked on disk:
// if we stop here, the job is an unknown outcome at the next start. Method and
// Params are those of the call to make, which may be the fallback's.
type Claim struct {
	Job
	// Chat is the queue's present chat id or @name: where the call must go,
	// which differs from ChatID after a migration. Empty when there is none.
	Chat string
	// Weight and SafeToRepeat are as given when the job was queued.
	Weight       int
	SafeToRepeat bool
	// MaybeSent: an earlier attempt may have reached Telegram.
	MaybeSent bool
	// LateNote is as given when the job was queued.
	LateNote bool
	// CanFallBack: a rejection leads to the job's second call, see Verdict.FallBack.
	CanFallBack bool
	ForMarkup   bool // but only one that is about the text's markup

	chatNo uint32
	bot    *Bot
}

// Verdict is the end of one attempt: what the sender makes of an outcome.
type Verdict struct {
	// State is where the job goes: Done, Dead, Uncertain, Held, Cancelled,
	// Expired, or back to Pending in its place.
	State State
	// Error is kept as last_error; nil leaves the old one, and Done clears it
	// unless one is given (the caller of a no_op hears Telegram's own words).
	Error    *JobError
	Evidence *Evidence
	Result   json.RawMessage

	RetryAt  time.Time // with Pending: not before this
	GiveBack bool      // with Pending or Held: the attempt doesn't count
	HeldBy   string    // with Held
	FallBack bool      // with Pending: the call was rejected, the job's fallback is next

	// Reached: request bytes may have reached Telegram, so that the chat's gap
	// and window count it.
	Reached bool
	// MaybeSent: the call may have taken effect; its key stays taken.
	MaybeSent bool

	BotCooldown  time.Time // the bot's deadline moves to this if later
	ChatCooldown time.Time // the chat's deadline moves to this if later
	ReleaseAt    time.Time // with Held by flood: goes back to Pending then

	// ChatGone marks the chat inactive with these words of Telegram's and ends
	// all that wait for it.
	ChatGone string
	// MigrateTo gives the chat a new id.
	MigrateTo int64
	// Chat is what Telegram's answer told about the chat.
	Chat *ChatSeen
}

// ChatSeen is what an update or an answer showed of a chat.
type ChatSeen struct {
	ID       int64
	Type     string // private | group | supergroup | channel; empty when unknown
	Username string // without @; empty when unknown
}

// Resolution is a person's decision on an uncertain job.
type Resolution struct {
	Outcome   string // "sent", "resend" or "drop"
	MessageID int64  // with "sent": the message that it became, 0 when unknown
}

// JobFilter selects jobs of one bot. Zero values select everything.
type JobFilter struct {
	State  State
	Chat   string // id in decimal or @name
	Lane   Lane
	Method string
	Key    string // dedupe key
	Origin string
	Older  time.Duration // created longer ago than this
	After  int64         // ids above this
	Limit  int           // default 100, at most 1000
}

// JobPage is one page of a list, in ascending id.
type JobPage struct {
	Items []Job
	Next  int64 // pass as After for the next page; 0 at the end
}

// Gate is one condition that a job waits for.
type Gate struct {
	Name    string     `json:"gate"`
	Open    bool       `json:"open"`
	OpensAt *time.Time `json:"opens_at"`
	Detail  string     `json:"detail"`
}

// Why explains a job's wait.
type Why struct {
	Job           Job        `json:"job"`
	Gates         []Gate     `json:"gates"`
	NextAttemptAt *time.Time `json:"next_attempt_at"`
}
