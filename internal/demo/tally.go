package demo

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tgspool/tgspool/internal/spool"
	"github.com/tgspool/tgspool/internal/telegramsim"
)

// Record is all that is known at the end of a run.
type Record struct {
	Updates  []int64   // ids of the updates that the simulator was given
	Expected []Message // what had to be sent, each once

	Spool   Contents              // what the spool says
	Journal []telegramsim.Arrival // what the simulator says

	Kills       []Kill
	LostAnswers int // calls whose answers were made to get lost
	Floods      int // calls that were made to be answered 429
}

// Kill is one end of the daemon without warning.
type Kill struct {
	Running []int64 // the jobs that were in flight
}

// Result is the verdict, and what it rests on.
type Result struct {
	In               int `json:"in"`      // updates of the simulator that are in the inbox
	Handled          int `json:"handled"` // of them
	Sent             int `json:"sent"`    // expected messages that have arrived
	Lost             int `json:"lost"`    // expected messages that haven't, though nobody is in doubt about them
	Doubled          int `json:"doubled"` // arrivals above one of each message
	Uncertain        int `json:"uncertain"`
	UncertainArrived int `json:"uncertain_arrived"` // of them
	Kills            int `json:"kills"`

	Late     int      `json:"-"` // queries that were too old when their turn came: nobody waits for answers to them
	Expected int      `json:"-"` // messages
	Allowed  int      `json:"-"` // how many may be uncertain
	Doubts   []Doubt  `json:"-"` // one for each uncertain job
	Problems []string `json:"-"` // empty when all is well
}

// Doubt is one uncertain job with the evidence for it.
type Doubt struct {
	JobID   int64
	Method  string
	ChatID  int64
	Cause   string // what made it uncertain, by the record of the run; empty: nothing did
	Why     string // what the spool says
	Arrived bool
}

// OK tells whether the run was without fault.
func (r Result) OK() bool { return len(r.Problems) == 0 }

// Tally compares what was asked for with what the spool and the simulator say.
// It looks at nothing but the record.
func Tally(r Record) Result {
	t := tally{record: r, arrivals: map[string][]telegramsim.Arrival{}, jobs: map[string]spool.Job{}, late: map[int64]bool{}}
	t.Kills, t.Expected = len(r.Kills), len(r.Expected)
	t.index()
	t.updates()
	t.messages()
	t.uncertain()
	t.order()
	t.refusals()
	for _, fault := range r.Spool.Faults {
		t.problem("the spool doesn't fit together: %s", fault)
	}
	return t.Result
}

// tally is a Result in the making.
type tally struct {
	Result
	record   Record
	arrivals map[string][]telegramsim.Arrival // of texts that took effect
	jobs     map[string]spool.Job             // by text
	late     map[int64]bool                   // updates that were too old for a handler
}

func (t *tally) problem(format string, args ...any) {
	t.Problems = append(t.Problems, fmt.Sprintf(format, args...))
}

// index finds arrivals and jobs by their texts.
func (t *tally) index() {
	for _, a := range t.record.Journal {
		if a.Effect && strings.HasPrefix(a.Method, "send") {
			t.arrivals[a.Text] = append(t.arrivals[a.Text], a)
		}
	}
	for _, job := range t.record.Spool.Jobs {
		text := textOf(job)
		if other, ok := t.jobs[text]; ok {
			t.problem("jobs %d and %d are for one message, %q", other.ID, job.ID, text)
		}
		t.jobs[text] = job
	}
}

func textOf(job spool.Job) string {
	var params struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(job.Params, &params) != nil {
		return ""
	}
	return params.Text
}

// staleKinds are what Telegram takes no answer to after a while. On a machine
// that starts programs slowly one may have to wait too long, and is then rightly
// not handled.
var staleKinds = []string{"inline_query", "callback_query", "shipping_query", "pre_checkout_query"}

// updates looks for each update in the inbox.
func (t *tally) updates() {
	states := map[int64][]spool.UpdateState{}
	stale := map[int64]bool{}
	for _, u := range t.record.Spool.Updates {
		if u.UpdateID == nil {
			t.problem("update %d of the inbox is malformed", u.Seq)
			continue
		}
		states[*u.UpdateID] = append(states[*u.UpdateID], u.State)
		stale[*u.UpdateID] = slices.Contains(staleKinds, u.Kind)
	}
	for _, id := range t.record.Updates {
		switch found := states[id]; {
		case len(found) == 0:
			t.problem("update %d is not in the inbox", id)
		case len(found) > 1:
			t.problem("update %d is in the inbox %d times", id, len(found))
			fallthrough
		default:
			t.In++
			if found[0] == spool.UpdateExpired && stale[id] {
				t.late[id] = true
				t.Late++
				continue
			}
			if found[0] != spool.UpdateHandled {
				t.problem("update %d is %s", id, found[0])
				continue
			}
			t.Handled++
		}
	}
}

// messages counts the arrivals of each expected message, and looks for others.
func (t *tally) messages() {
	expected := map[string]bool{}
	for _, m := range t.record.Expected {
		if t.late[m.UpdateID] {
			t.Expected--
			continue
		}
		expected[m.Text] = true
		found, job := t.arrivals[m.Text], t.jobs[m.Text]
		switch {
		case len(found) > 0:
			t.Sent++
			t.Doubled += len(found) - 1
			if len(found) > 1 {
				t.problem("message %q to %d has arrived %d times", m.Text, m.ChatID, len(found))
			}
			if job.State != spool.Done && job.State != spool.Uncertain {
				t.problem("message %q to %d has arrived, but %s", m.Text, m.ChatID, fate(job))
			}
			if found[0].ChatID != m.ChatID {
				t.problem("message %q has gone to %d instead of %d", m.Text, found[0].ChatID, m.ChatID)
			}
		case job.State != spool.Uncertain:
			t.Lost++
			t.problem("message %q to %d is lost: %s", m.Text, m.ChatID, fate(job))
		}
		if m.JobID != 0 && m.JobID != job.ID {
			t.problem("message %q was queued as job %d, and is %s", m.Text, m.JobID, fate(job))
		}
	}
	for text, found := range t.arrivals {
		if !expected[text] {
			t.problem("message %q to %d has arrived, though nobody asked for it", text, found[0].ChatID)
		}
	}
}

// fate says what has become of a job.
func fate(job spool.Job) string {
	if job.ID == 0 {
		return "there is no job"
	}
	return fmt.Sprintf("job %d is %s%s", job.ID, job.State, reason(job))
}

func reason(job spool.Job) string {
	if job.LastError == nil {
		return ""
	}
	return fmt.Sprintf(" (%s: %s)", job.LastError.Class, job.LastError.Description)
}

// evidence says how far the request is known to have come.
func evidence(job spool.Job) string {
	if job.Evidence == nil {
		return ""
	}
	return fmt.Sprintf(" [%s, %d bytes]", job.Evidence.Phase, job.Evidence.BytesWritten)
}

// uncertain looks for the cause of each uncertain job. There may be as many as
// were in flight at the kills or lost their answers, and no others.
func (t *tally) uncertain() {
	inFlight := map[int64]int{} // job → number of the kill
	for n, kill := range t.record.Kills {
		for _, id := range kill.Running {
			inFlight[id] = n + 1 // a kill during the start meets those of the last one again
		}
	}
	t.Allowed = len(inFlight) + t.record.LostAnswers
	for _, job := range t.record.Spool.Jobs {
		if job.State != spool.Uncertain {
			continue
		}
		found := t.arrivals[textOf(job)]
		d := Doubt{JobID: job.ID, Method: job.Method, Arrived: len(found) > 0, Why: strings.TrimSpace(reason(job) + evidence(job))}
		_ = json.Unmarshal(job.ChatID, &d.ChatID) // an @name shows as 0
		switch kill, ok := inFlight[job.ID]; {
		case ok:
			d.Cause = fmt.Sprintf("in flight at kill %d", kill)
		case len(found) > 0 && !found[0].Answered:
			d.Cause = "its answer was lost"
		default:
			t.problem("job %d is uncertain without a cause: %s", job.ID, d.Why)
		}
		t.Doubts = append(t.Doubts, d)
		t.Uncertain++
		if d.Arrived {
			t.UncertainArrived++
		}
	}
	if t.Uncertain > t.Allowed {
		t.problem("%d jobs are uncertain, and only %d can be", t.Uncertain, t.Allowed)
	}
}

// order checks that the messages of a chat and lane have arrived in the order
// in which their jobs were accepted. Uncertain ones have given up their place.
func (t *tally) order() {
	type queue struct {
		chat int64
		lane spool.Lane
	}
	last := map[queue]int64{}
	arrived := slices.Clone(t.record.Journal)
	slices.SortFunc(arrived, func(a, b telegramsim.Arrival) int { return a.N - b.N })
	for _, a := range arrived {
		job, ok := t.jobs[a.Text]
		if !ok || !a.Effect || job.State == spool.Uncertain {
			continue
		}
		q := queue{a.ChatID, job.Lane}
		if job.ID < last[q] {
			t.problem("job %d has arrived in chat %d after job %d", job.ID, a.ChatID, last[q])
		}
		last[q] = max(last[q], job.ID)
	}
}

// refusals checks that the gates kept within the limits: no 429 but those that
// were asked for.
func (t *tally) refusals() {
	refused := 0
	for _, a := range t.record.Journal {
		switch {
		case a.Status == 429:
			refused++
		case a.Status >= 400:
			t.problem("the simulator refused %s to %d with %d", a.Method, a.ChatID, a.Status)
		}
	}
	if refused > t.record.Floods {
		t.problem("the simulator answered 429 %d times, and %d were asked for", refused, t.record.Floods)
	}
}
