package spool

import (
	"encoding/json"
	"time"
)

// Update is one update of the inbox as callers see it.
type Update struct {
	Seq           int64           `json:"seq"`
	UpdateID      *int64          `json:"update_id"` // null for a malformed one
	Kind          string          `json:"kind"`
	State         UpdateState     `json:"state"`
	Attempts      int             `json:"attempts"`
	ReceivedAt    time.Time       `json:"received_at"`
	Handler       *string         `json:"handler"`
	Error         *string         `json:"error"`
	Output        *string         `json:"output"`
	NextAttemptAt *time.Time      `json:"next_attempt_at"`
	Jobs          []int64         `json:"jobs"`
	Raw           json.RawMessage `json:"update"` // bytes as they came; a JSON string when they are no JSON
}

// NewUpdate is one update to be taken in.
type NewUpdate struct {
	ID       int64 // Telegram's update_id
	HasID    bool  // false for a malformed element: it is stored dead, once
	Kind     string
	Raw      []byte // kept as it came
	OrderKey string // updates of one key are handled one after the other
	Route    Route
	Error    string // why a malformed one is malformed

	UserID int64 // who caused it, 0 when unknown
	Chat   *ChatSeen
	// Active: the update shows that the chat can be written to.
	Active bool
	// Gone: the update shows that the bot was blocked or thrown out, in words.
	Gone string
	// MigrateTo, MigrateFrom: the service messages of a group's migration.
	MigrateTo, MigrateFrom int64
	// StaleAt: from then on the update is not handed out but expires.
	StaleAt time.Time
}

// Route says which handler an update goes to.
type Route struct {
	// Handler is the handler's name; PullRoute waits for a client.
	Handler string
	// Ignore, when not empty, is the reason why nobody gets it.
	Ignore string
	// Attempts is how often an update is leased over the API until it is dead; 0:
	// the default. Handlers of ours count by themselves.
	Attempts int
	// PerUser: its session is the chat's and the user's, not the chat's alone.
	PerUser bool
	// Also is what else happens when an update comes in; nil: nothing.
	Also *Also
}

// Also is what a route has done with an update that comes in, beside handing it
// over.
type Also struct {
	// Collapse names what counts once within Window: an update whose name has been
	// there is ignored. Empty: each counts.
	Collapse string
	Window   time.Duration
	At       time.Time // of the event; zero: when the update comes in
	// StaleAt is as NewUpdate's; the earlier of the two counts.
	StaleAt time.Time
	// Tell are calls for the one who isn't heard, queued when the update is ignored.
	Tell []NewJob
}

// PullRoute is the route of updates that clients take by themselves.
const PullRoute = ""

// Batch is what one call of getUpdates or one webhook request brought.
type Batch struct {
	Updates []NewUpdate
	// Offset is the next offset to ask for; it is committed together with the
	// updates. SetOffset is false for a webhook.
	Offset    int64
	SetOffset bool
}

// Taken counts what became of a batch.
type Taken struct {
	Stored     int // new ones
	Duplicates int // known already
	Malformed  int // kept as dead
}

// Lease is an update handed to a handler. Its attempt is counted on disk
// already: if we stop here, the update is open again at the next start.
type Lease struct {
	Update
	ChatID int64 // 0 when the update has none

	UserID   int64
	Replayed bool // a person has asked for this run
	Fresh    int  // how often a person has asked for new jobs, too
	// Waited is how long ago the update came in, by the clock of the store, which
	// never steps.
	Waited time.Duration

	Until   time.Time // when it runs out; zero: it holds as long as this process
	Session Session   // as it was then; without data and version 0 where there is none

	token uint64
	bot   *Bot
}

// Handling is how a handler's run ended well.
type Handling struct {
	Jobs   []NewJob // the calls it asked for, in order
	Output string   // kept with the update for inspection, bounded by the caller

	Session *SessionChange // nil: it stays as it is
}

// Failure is how a handler's run ended badly.
type Failure struct {
	State    UpdateState // UpdateOpen to try again, UpdateDead, UpdateIgnored or UpdateExpired
	Error    string
	Output   string
	RetryAt  time.Time // with UpdateOpen
	GiveBack bool      // with UpdateOpen: the attempt doesn't count
	Jobs     []NewJob  // queued all the same (a refusal, an apology)
}

// UpdateFilter selects updates of one bot.
type UpdateFilter struct {
	State UpdateState
	After int64 // seqs above this
	Limit int   // default 100, at most 1000
}

// UpdatePage is one page of a list, in ascending seq.
type UpdatePage struct {
	Items []Update
	Next  int64
}
