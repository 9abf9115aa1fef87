package manage

import (
	"bytes"
	"encoding/json"
	"net/http"
	"time"

	"github.com/tgspool/tgspool/internal/spool"
)

// Status is the answer of GET /v1/status.
type Status struct {
	Version   string      `json:"version"`
	StartedAt time.Time   `json:"started_at"`
	Clock     string      `json:"clock"` // ok | unknown
	Store     StoreStatus `json:"store"`
	Bots      BotTable    `json:"bots"`
}

// StoreStatus is the spool's file.
type StoreStatus struct {
	Path      string `json:"path"`
	SizeBytes int64  `json:"size_bytes"`
	FreeBytes int64  `json:"free_bytes"` // of the file system
	Full      bool   `json:"full"`
	// Recovered is the last restore; only where there has been one.
	Recovered *spool.Recovery `json:"recovered,omitempty"`
	// BackupError is why the last daily snapshot failed; only where it has.
	BackupError string `json:"backup_error,omitempty"`
}

// BotStatus is one bot.
type BotStatus struct {
	ID       *int64                         `json:"id"`
	Username *string                        `json:"username"`
	Intake   IntakeStatus                   `json:"intake"`
	Sender   SenderStatus                   `json:"sender"`
	Jobs     StateCounts[spool.State]       `json:"jobs"`
	Updates  StateCounts[spool.UpdateState] `json:"updates"`

	QueueDepth        int64   `json:"queue_depth"`          // pending and running
	OldestPendingAgeS float64 `json:"oldest_pending_age_s"` // seconds since it was due
	DeadLast24h       int64   `json:"dead_last_24h"`
	InboxUnhandled    int64   `json:"inbox_unhandled"`

	// Paused are the parts that a person has stopped; absent where there are none.
	Paused []spool.Pause `json:"paused,omitempty"`
	// Handlers are those that have a program; absent where there are none.
	Handlers []HandlerStatus `json:"handlers,omitempty"`
	// Hint is what of the settings hardly is meant, seen at work.
	Hint string `json:"hint,omitempty"`
}

// HandlerStatus is one handler that has a program.
type HandlerStatus struct {
	Name   string `json:"name"`
	State  string `json:"state"`            // ok | unreachable: its updates wait
	Detail string `json:"detail,omitempty"` // why it is unreachable
}

// IntakeStatus is how updates come in.
type IntakeStatus struct {
	State  string     `json:"state"` // ok | offline | conflict | paused | unauthorized | full | unconfigured
	Since  *time.Time `json:"since"`
	Offset int64      `json:"offset"`
	Detail string     `json:"detail,omitempty"` // only where there is more to say
}

// SenderStatus is how jobs go out.
type SenderStatus struct {
	State         string     `json:"state"` // ok | offline | cooldown | paused | unauthorized | unconfigured
	Since         *time.Time `json:"since"`
	CooldownUntil *time.Time `json:"cooldown_until"`
	Detail        string     `json:"detail,omitempty"` // only where there is more to say
}

// The states of a handler.
const (
	handlerOK          = "ok"
	handlerUnreachable = "unreachable"
)

// stateUnconfigured is the state of a bot without a usable token.
const stateUnconfigured = "unconfigured"

// StateCounts counts records by state. Every state is present, in the order of
// their life.
type StateCounts[S ~string] map[S]int64

// MarshalJSON writes the states in their own order, zeros too.
func (c StateCounts[S]) MarshalJSON() ([]byte, error) {
	var order []S
	switch any(order).(type) {
	case []spool.State:
		for _, s := range spool.States() {
			order = append(order, S(s))
		}
	case []spool.UpdateState:
		for _, s := range spool.UpdateStates() {
			order = append(order, S(s))
		}
	}
	return marshalOrdered(order, func(s S) (any, error) { return c[s], nil })
}

// BotTable holds the bots in the order of the settings.
type BotTable struct {
	Names  []string
	ByName map[string]BotStatus
}

// MarshalJSON writes one object, a member for each bot.
func (t BotTable) MarshalJSON() ([]byte, error) {
	return marshalOrdered(t.Names, func(n string) (any, error) { return t.ByName[n], nil })
}

// UnmarshalJSON reads what MarshalJSON wrote, order included.
func (t *BotTable) UnmarshalJSON(data []byte) error {
	all, err := readObject(data)
	if err != nil {
		return err
	}
	*t = BotTable{ByName: map[string]BotStatus{}}
	for _, m := range all {
		var b BotStatus
		if err := json.Unmarshal(m.value, &b); err != nil {
			return err
		}
		t.Names = append(t.Names, m.name)
		t.ByName[m.name] = b
	}
	return nil
}

func marshalOrdered[S ~string](names []S, value func(S) (any, error)) ([]byte, error) {
	var buf bytes.Buffer
	buf.WriteByte('{')
	for i, name := range names {
		v, err := value(name)
		if err != nil {
			return nil, err
		}
		key, err := json.Marshal(string(name))
		if err != nil {
			return nil, err
		}
		data, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			buf.WriteByte(',')
		}
		buf.Write(key)
		buf.WriteByte(':')
		buf.Write(data)
	}
	buf.WriteByte('}')
	return buf.Bytes(), nil
}

// status answers with the whole of the daemon's state.
func (a *api) status(r *http.Request) (int, any, error) {
	if _, err := readQuery(r); err != nil {
		return 0, nil, err
	}
	return http.StatusOK, a.currentStatus(), nil
}

// currentStatus is the whole of the daemon's state. It reads counters, never the
// queue.
func (a *api) currentStatus() Status {
	kept := a.store.Status()
	out := Status{
		Version: a.version, StartedAt: a.startedAt.UTC(), Clock: a.clock(),
		Store: StoreStatus{
			Path: kept.Path, SizeBytes: kept.SizeBytes, FreeBytes: kept.FreeBytes, Full: kept.Full,
		},
		Bots: BotTable{Names: a.bots.Names(), ByName: map[string]BotStatus{}},
	}
	if r, ok := a.store.Recovered(); ok {
		out.Store.Recovered = &r
	}
	if a.backupError != nil {
		out.Store.BackupError = a.backupError()
	}
	inStore := map[string]spool.BotStatus{}
	for _, b := range kept.Bots {
		inStore[b.Name] = b
	}
	for _, name := range out.Bots.Names {
		view, _ := a.bots.View(name)
		out.Bots.ByName[name] = botStatus(view, inStore[name])
	}
	return out
}

// botStatus joins what the daemon and what the store know of a bot.
func botStatus(v View, kept spool.BotStatus) BotStatus {
	b := BotStatus{
		Intake: IntakeStatus{State: v.Intake.State, Since: utc(v.Intake.Since), Offset: kept.Offset, Detail: v.Intake.Detail},
		Sender: SenderStatus{
			State: string(v.Sender.State), Since: utc(v.Sender.Since),
			CooldownUntil: utc(v.Sender.CooldownUntil), Detail: v.Sender.Detail,
		},
		Jobs: kept.Jobs, Updates: kept.Updates,
		QueueDepth: kept.QueueDepth, OldestPendingAgeS: kept.OldestPendingAgeS,
		DeadLast24h: kept.DeadLast24h, InboxUnhandled: kept.InboxUnhandled,
	}
	if b.Sender.CooldownUntil == nil && kept.CooldownUntil != 0 {
		b.Sender.CooldownUntil = utc(time.Unix(0, kept.CooldownUntil))
	}
	b.Hint, b.Paused = v.Hint, kept.Paused
	for _, h := range v.Handlers {
		s := HandlerStatus{Name: h.Name, State: handlerOK, Detail: h.Trouble}
		if h.Trouble != "" {
			s.State = handlerUnreachable
		}
		b.Handlers = append(b.Handlers, s)
	}
	if v.ID != 0 {
		b.ID = &v.ID
	}
	if v.Username != "" {
		b.Username = &v.Username
	}
	if v.Unconfigured != "" {
		b.Intake.State, b.Intake.Detail = stateUnconfigured, v.Unconfigured
		b.Sender.State, b.Sender.Detail = stateUnconfigured, v.Unconfigured
	}
	return b
}
