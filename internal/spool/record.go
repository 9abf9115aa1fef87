package spool

import (
	"encoding/json"
	"slices"
	"strconv"
)

// inlineMax is the size in bytes up to which a payload stands in its record.
// Bigger ones get a bucket of their own, so that a change of state doesn't
// write them again.
const inlineMax = 1024

// jobRec is a job on disk. Times are Unix nanoseconds, 0 for none.
type jobRec struct {
	ID          int64     `cbor:"1,keyasint"`
	Method      string    `cbor:"2,keyasint"`
	ChatNo      uint32    `cbor:"3,keyasint"`
	ChatRaw     []byte    `cbor:"4,keyasint,omitempty"` // chat_id as the caller wrote it
	SentChat    string    `cbor:"5,keyasint,omitempty"` // id or @name that the last attempt used
	Lane        byte      `cbor:"6,keyasint,omitempty"`
	Order       uint64    `cbor:"7,keyasint,omitempty"` // place in its chat's lane, 0 before it is due
	Weight      byte      `cbor:"8,keyasint,omitempty"`
	Safe        bool      `cbor:"9,keyasint,omitempty"` // safe to repeat
	Params      []byte    `cbor:"10,keyasint,omitempty"`
	InBody      bool      `cbor:"11,keyasint,omitempty"` // Params stand in body
	Files       []File    `cbor:"12,keyasint,omitempty"`
	Key         string    `cbor:"13,keyasint,omitempty"`
	KeyUntil    int64     `cbor:"14,keyasint,omitempty"` // the key outlives the record until then
	NotBefore   int64     `cbor:"15,keyasint,omitempty"`
	RetryAt     int64     `cbor:"16,keyasint,omitempty"`
	ExpiresAt   int64     `cbor:"17,keyasint,omitempty"`
	Attempts    int       `cbor:"18,keyasint,omitempty"`
	MaxAttempts int       `cbor:"19,keyasint,omitempty"`
	OnUncertain Policy    `cbor:"20,keyasint,omitempty"`
	HeldBy      string    `cbor:"21,keyasint,omitempty"`
	HeldAt      int64     `cbor:"22,keyasint,omitempty"` // since when the expiry clock stands
	Origin      string    `cbor:"23,keyasint,omitempty"`
	Created     int64     `cbor:"24,keyasint"`
	Updated     int64     `cbor:"25,keyasint"`
	DecideBy    int64     `cbor:"26,keyasint,omitempty"` // timer of an uncertain or flooded job
	Error       *JobError `cbor:"27,keyasint,omitempty"`
	Evidence    *Evidence `cbor:"28,keyasint,omitempty"`
	Result      []byte    `cbor:"29,keyasint,omitempty"`
	MaybeSent   bool      `cbor:"30,keyasint,omitempty"` // an attempt may have reached Telegram
	Force       bool      `cbor:"31,keyasint,omitempty"`
	Reply       bool      `cbor:"32,keyasint,omitempty"` // its key is held by the update, not by the key bucket
	Print       []byte    `cbor:"33,keyasint,omitempty"` // fingerprint of the call
	Asked       int64     `cbor:"50,keyasint,omitempty"` // when the update came in that it answers

	// 40 and on: what goes beyond one call to one chat.
	Fallback *fallbackRec `cbor:"40,keyasint,omitempty"`
	Refs     []refRec     `cbor:"41,keyasint,omitempty"` // results of other jobs in Params
	Edits    string       `cbor:"42,keyasint,omitempty"` // the message that it edits
	LateNote bool         `cbor:"46,keyasint,omitempty"`
	Tried    int64        `cbor:"45,keyasint,omitempty"` // when the attempt began whose outcome is unknown
	By       int64        `cbor:"43,keyasint,omitempty"` // the job that superseded it
	Folded   bool         `cbor:"44,keyasint,omitempty"` // By stands for it: whoever waits gets that one's end
	Part     *partRec     `cbor:"60,keyasint,omitempty"`

	state State // where it stands; not stored in the record
}

// runRec is an attempt under way.
type runRec struct {
	Attempt int    `cbor:"1,keyasint"`
	Started int64  `cbor:"2,keyasint"`
	ChatNo  uint32 `cbor:"3,keyasint"`
	Chat    string `cbor:"4,keyasint,omitempty"` // where it goes
}

// chatRec is a chat with its gates.
type chatRec struct {
	Name     string   `cbor:"1,keyasint"` // where calls go: newest id, or @name while no id is known
	Others   []string `cbor:"2,keyasint,omitempty"`
	Type     string   `cbor:"3,keyasint,omitempty"`
	Gone     string   `cbor:"4,keyasint,omitempty"` // why it is inactive
	GoneAt   int64    `cbor:"5,keyasint,omitempty"`
	Seen     int64    `cbor:"6,keyasint,omitempty"`
	Cooldown int64    `cbor:"7,keyasint,omitempty"`
	GapFree  int64    `cbor:"8,keyasint,omitempty"`  // the gap's theoretical arrival time (GCRA)
	Stamps   []int64  `cbor:"9,keyasint,omitempty"`  // ends of the messages of the last minute, groups only
	WakeAt   int64    `cbor:"10,keyasint,omitempty"` // a timer of the chat stands there
	Moved    uint32   `cbor:"12,keyasint,omitempty"` // an empty shell: its jobs stand under this number
	Migrated []string `cbor:"11,keyasint,omitempty"` // ids that it had, oldest first: a loop is refused
}

// botRec is what the store keeps of a bot itself.
type botRec struct {
	ID       int64      `cbor:"1,keyasint"`
	Name     string     `cbor:"2,keyasint"`
	Offset   int64      `cbor:"3,keyasint,omitempty"`
	Seq      int64      `cbor:"4,keyasint,omitempty"` // last seq given
	Order    uint64     `cbor:"5,keyasint,omitempty"` // last order given
	ChatNo   uint32     `cbor:"6,keyasint,omitempty"` // last chat number given
	Jobs     []int64    `cbor:"7,keyasint"`           // per state code
	Updates  []int64    `cbor:"8,keyasint"`           // per state code
	Cooldown int64      `cbor:"9,keyasint,omitempty"`
	DeadHour []int64    `cbor:"10,keyasint,omitempty"` // hour number, count, hour number, count, …
	Routes   string     `cbor:"11,keyasint,omitempty"` // fingerprint of the routes that inready was made by
	Turn     uint64     `cbor:"12,keyasint,omitempty"` // claims so far: every tenth goes to a lower lane
	Ended    int64      `cbor:"13,keyasint,omitempty"` // bytes of ended records and their bodies
	Loose    bool       `cbor:"16,keyasint,omitempty"` // keys or ids are remembered whose records are gone
	Erased   int64      `cbor:"17,keyasint,omitempty"` // highest version of a session that is gone
	Pauses   []pauseRec `cbor:"24,keyasint,omitempty"` // parts that a person has stopped
	Fence    int64      `cbor:"15,keyasint,omitempty"` // after a restore: lower update_ids of the next batch may have been handled
}

// updateRec is an update on disk.
type updateRec struct {
	Seq      int64   `cbor:"1,keyasint"`
	UpdateID int64   `cbor:"2,keyasint,omitempty"`
	HasID    bool    `cbor:"3,keyasint,omitempty"`
	Kind     string  `cbor:"4,keyasint,omitempty"`
	Raw      []byte  `cbor:"5,keyasint,omitempty"`
	InBody   bool    `cbor:"6,keyasint,omitempty"`
	OrderKey string  `cbor:"7,keyasint,omitempty"`
	Handler  string  `cbor:"8,keyasint,omitempty"`
	Received int64   `cbor:"9,keyasint"`
	Updated  int64   `cbor:"10,keyasint,omitempty"`
	StaleAt  int64   `cbor:"11,keyasint,omitempty"`
	NextAt   int64   `cbor:"12,keyasint,omitempty"`
	Attempts int     `cbor:"13,keyasint,omitempty"`
	Error    string  `cbor:"14,keyasint,omitempty"`
	Output   string  `cbor:"15,keyasint,omitempty"`
	Jobs     []int64 `cbor:"16,keyasint,omitempty"`
	ChatID   int64   `cbor:"17,keyasint,omitempty"`
	UserID   int64   `cbor:"18,keyasint,omitempty"`
	Fresh    int     `cbor:"19,keyasint,omitempty"` // replays that asked for new jobs
	Replays  int     `cbor:"20,keyasint,omitempty"`
	Most     int     `cbor:"21,keyasint,omitempty"` // attempts of its route, where leases need to know
	PerUser  bool    `cbor:"22,keyasint,omitempty"` // its session is the chat's and the user's
	Further  []int64 `cbor:"40,keyasint,omitempty"` // parts of long texts behind the jobs of Jobs, and what the user was told

	state    UpdateState
	leasedAt int64 // when the lease began under which it is looked at; not stored
}

// leaseRec is a handler's hold on an update.
type leaseRec struct {
	Token   uint64 `cbor:"1,keyasint"`
	Started int64  `cbor:"2,keyasint"`
	Attempt int    `cbor:"3,keyasint"`
	Until   int64  `cbor:"4,keyasint,omitempty"` // 0: it ends with the process
}

func textPtr(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func raw(b []byte) json.RawMessage {
	if len(b) == 0 {
		return nil
	}
	return append(json.RawMessage(nil), b...)
}

// chatJSON writes a queue's chat name as JSON: ids as numbers.
func chatJSON(name string) json.RawMessage {
	if name == "" {
		return nil
	}
	if _, err := strconv.ParseInt(name, 10, 64); err == nil {
		return json.RawMessage(name)
	}
	return must(json.Marshal(name))
}

// view makes the public form of a job.
func (r *jobRec) view(bot string, c *timeline) Job {
	policy := r.OnUncertain
	if policy == "" {
		policy = PolicyHold
	}
	return Job{
		ID: r.ID, Bot: bot, Method: r.Method,
		ChatID: raw(r.ChatRaw), SentChatID: chatJSON(r.SentChat),
		Lane: Lanes()[r.Lane], State: r.state,
		Params: raw(r.Params), Files: r.Files, DedupeKey: textPtr(r.Key),
		NotBefore: c.atPtr(r.NotBefore), RetryAt: c.atPtr(r.RetryAt), ExpiresAt: c.atPtr(r.ExpiresAt),
		Attempts: r.Attempts, MaxAttempts: r.MaxAttempts, OnUncertain: policy,
		HeldBy: textPtr(r.HeldBy), Origin: r.Origin,
		CreatedAt: c.at(r.Created), UpdatedAt: c.at(r.Updated),
		LastError: r.Error, Evidence: r.Evidence, Result: raw(r.Result), Fallback: r.Fallback.view(),
		Part: r.Part.view(),
	}
}

// view makes the public form of an update.
func (r *updateRec) view(c *timeline) Update {
	u := Update{
		Seq: r.Seq, Kind: r.Kind, State: r.state, Attempts: r.Attempts,
		ReceivedAt: c.at(r.Received), Handler: textPtr(r.Handler),
		Error: textPtr(r.Error), Output: textPtr(r.Output),
		NextAttemptAt: c.atPtr(r.NextAt), Jobs: slices.Sorted(slices.Values(slices.Concat([]int64{}, r.Jobs, r.Further))),
		Raw: raw(r.Raw),
	}
	if r.HasID {
		u.UpdateID = &r.UpdateID
	}
	if !json.Valid(u.Raw) {
		u.Raw = must(json.Marshal(string(r.Raw)))
	}
	return u
}
