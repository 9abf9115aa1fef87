package spool

import "slices"

// State is the state of a job. The names are part of the contract with users:
// they stand in JSON, on the command line and in logs.
type State string

// The job states. Every job is in exactly one of them.
const (
	Pending   State = "pending"   // waits for its turn and its gates
	Running   State = "running"   // an attempt is marked on disk and under way
	Done      State = "done"      // Telegram has answered for it
	Dead      State = "dead"      // given up: rejected, or out of attempts
	Uncertain State = "uncertain" // may or may not have reached Telegram; waits for a decision
	Held      State = "held"      // kept back by a person, a flood or a restore
	Cancelled State = "cancelled" // called off by a person or superseded
	Expired   State = "expired"   // its time ran out first
)

// States lists every job state in the order in which status shows them.
func States() []State {
	return []State{Pending, Running, Done, Dead, Uncertain, Held, Cancelled, Expired}
}

// transitions is the whole life of a job as data: what is not listed here
// can't happen. A test walks all pairs.
var transitions = map[State][]State{
	Pending:   {Running, Dead, Held, Cancelled, Expired},
	Running:   {Pending, Done, Dead, Uncertain, Held, Cancelled, Expired},
	Uncertain: {Pending, Done, Cancelled},
	Held:      {Pending, Cancelled, Dead},
	Dead:      {Pending},
	Cancelled: {Pending},
	Expired:   {Pending},
	Done:      {},
}

// canMove reports whether a job may go from one state to another.
func canMove(from, to State) bool { return slices.Contains(transitions[from], to) }

// Ended reports whether the job's life is over unless a person brings it back.
func (s State) Ended() bool {
	return s == Done || s == Dead || s == Cancelled || s == Expired
}

// Open reports whether the job is still on its way: pending or running.
func (s State) Open() bool { return s == Pending || s == Running }

// stateCode is the state's place in keys and counters on disk. Never reorder.
func (s State) code() byte { return byte(slices.Index(States(), s)) }

// Lane is a priority class of jobs.
type Lane string

// The lanes, most urgent first.
const (
	Interactive Lane = "interactive" // somebody waits for this answer
	Normal      Lane = "normal"      // commands and programs
	Bulk        Lane = "bulk"        // broadcasts
)

// Lanes lists the lanes, most urgent first.
func Lanes() []Lane { return []Lane{Interactive, Normal, Bulk} }

func (l Lane) code() byte { return byte(max(0, slices.Index(Lanes(), l))) }

// UpdateState is the state of an update in the inbox.
type UpdateState string

// The update states.
const (
	UpdateOpen    UpdateState = "open"    // waits for its handler
	UpdateLeased  UpdateState = "leased"  // a handler works on it
	UpdateHandled UpdateState = "handled" // its handler has finished; its jobs are queued
	UpdateIgnored UpdateState = "ignored" // not meant for any handler
	UpdateDead    UpdateState = "dead"    // given up on; kept with error and output
	UpdateExpired UpdateState = "expired" // too old to be of use
)

// UpdateStates lists every update state in the order in which status shows them.
func UpdateStates() []UpdateState {
	return []UpdateState{UpdateOpen, UpdateLeased, UpdateHandled, UpdateIgnored, UpdateDead, UpdateExpired}
}

// updateTransitions is the whole life of an update as data.
var updateTransitions = map[UpdateState][]UpdateState{
	UpdateOpen:    {UpdateLeased, UpdateHandled, UpdateIgnored, UpdateDead, UpdateExpired},
	UpdateLeased:  {UpdateOpen, UpdateHandled, UpdateIgnored, UpdateDead, UpdateExpired},
	UpdateHandled: {UpdateOpen},
	UpdateIgnored: {UpdateOpen},
	UpdateDead:    {UpdateOpen, UpdateIgnored},
	UpdateExpired: {UpdateOpen},
}

func canMoveUpdate(from, to UpdateState) bool { return slices.Contains(updateTransitions[from], to) }

// Ended reports whether the update's life is over unless it is replayed.
func (s UpdateState) Ended() bool { return s != UpdateOpen && s != UpdateLeased }

func (s UpdateState) code() byte { return byte(slices.Index(UpdateStates(), s)) }

// Policy says what becomes of a job whose outcome can't be known.
type Policy string

// The policies for an unknown outcome.
const (
	PolicyHold         Policy = "hold"          // wait for a decision in state uncertain
	PolicyResend       Policy = "resend"        // send again, at the risk of a double
	PolicyResendMarked Policy = "resend_marked" // send again, the text says that it may be a repeat
	PolicyDrop         Policy = "drop"          // never send again, at the risk of a loss
)

// Policies lists the policies for an unknown outcome.
func Policies() []Policy { return []Policy{PolicyHold, PolicyResend, PolicyResendMarked, PolicyDrop} }

// Who holds a held job.
const (
	HeldByUser    = "user"
	HeldByFlood   = "flood"
	HeldByRestore = "restore"
)
