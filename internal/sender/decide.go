package sender

import (
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/spool"
)

const (
	// confirmAfter is how long "chat not found" waits for its confirmation: the
	// text also hides other failures of Telegram's look-up.
	confirmAfter = time.Minute
	// refusedPause keeps a job whose token was refused from asking again at once
	// when getMe is accepted meanwhile.
	refusedPause = 2 * time.Second
	// slowAttempt is the attempt whose back-off (2 s to 32 s) slows down a job that
	// doesn't get through where others do.
	slowAttempt = 4
	// maxDescription bounds what is kept of an error, in bytes.
	maxDescription = 1024
)

// situation is what the decision about a job needs to know beside the outcome
// of its call.
type situation struct {
	now        time.Time
	random     float64   // in [0, 1): jitter
	floodsBot  bool      // flood: the bot waits, not only the chat
	pauseUntil time.Time // flood_undated, frozen: the end of the bot's pause
	accepted   time.Time // when Telegram last accepted a call of the bot, zero for never
}

// decide says what becomes of a job after one call. It looks at nothing but its
// arguments, so the same outcome always means the same.
func decide(o botapi.Outcome, seen botapi.Seen, c *spool.Claim, s situation) spool.Verdict {
	v := spool.Verdict{
		State:    spool.Pending,
		Error:    jobError(o, s.now),
		Evidence: evidence(seen, s.now),
		Reached:  seen.Phase.Reached(botapi.PhaseWritten),
	}
	switch o.Class {
	case botapi.ClassOK:
		v.State, v.Error, v.Result, v.Chat = spool.Done, nil, o.Result, chatSeen(o.Chat)
	case botapi.ClassNoOp:
		v.State = spool.Done
		if c.MaybeSent {
			// What made it so was our own earlier attempt: the caller asked for
			// this end state and has it.
			v.Error, v.Result = nil, []byte("true")
		}
	case botapi.ClassFlood:
		flooded(&v, o, c, s)
	case botapi.ClassFloodUndated:
		until := later(s.pauseUntil, s.now.Add(o.RetryAfter))
		v.State, v.HeldBy, v.GiveBack = spool.Held, spool.HeldByFlood, true
		v.BotCooldown, v.ReleaseAt = until, until
	case botapi.ClassTransient:
		retry(&v, c, s)
	case botapi.ClassNotTelegram:
		v.Reached = false // it reached somebody else
		unreachable(&v, o, c, s)
	case botapi.ClassOffline:
		unreachable(&v, o, c, s)
	case botapi.ClassUnknownOutcome:
		unknown(&v, c, s)
	case botapi.ClassRejected:
		if v.FallBack = c.CanFallBack && (!c.ForMarkup || o.Unparsed()); !v.FallBack {
			v.State = spool.Dead
		}
	case botapi.ClassChatGone:
		chatGone(&v, o, c, s)
	case botapi.ClassMigrated:
		migrated(&v, o, c)
	case botapi.ClassTooLate:
		v.State = spool.Expired
	case botapi.ClassUnauthorized:
		unauthorized(&v, o, c, s)
	case botapi.ClassFrozen:
		v.GiveBack, v.BotCooldown = true, s.pauseUntil
	}
	return v
}

// flooded puts the job back and closes what Telegram meant. Jitter only adds.
func flooded(v *spool.Verdict, o botapi.Outcome, c *spool.Claim, s situation) {
	until := s.now.Add(o.RetryAfter + time.Duration(s.random*float64(min(o.RetryAfter/10, 5*time.Second))))
	v.GiveBack = true
	if s.floodsBot {
		v.BotCooldown = until
	}
	if chatOf(c) != "" {
		v.ChatCooldown = until
	}
}

// retry puts the job back for later, as long as it has attempts left.
func retry(v *spool.Verdict, c *spool.Claim, s situation) {
	if c.Attempts >= c.MaxAttempts {
		v.State = spool.Dead
		return
	}
	v.RetryAt = s.now.Add(backoff(c.Attempts, s.random))
}

// unreachable puts the job back as if it had never been tried. One that meets
// the same again although another call got through in between is slowed down: it may
// be the job itself that can't pass, and must not close the lanes all the time.
func unreachable(v *spool.Verdict, o botapi.Outcome, c *spool.Claim, s situation) {
	v.GiveBack = true
	if again(o, c, s) {
		v.RetryAt = s.now.Add(backoff(slowAttempt, s.random))
	}
}

// unknown applies what was agreed for calls that may have taken effect.
func unknown(v *spool.Verdict, c *spool.Claim, s situation) {
	v.MaybeSent = true
	if c.SafeToRepeat {
		retry(v, c, s)
		return
	}
	switch c.OnUncertain {
	case spool.PolicyResend, spool.PolicyResendMarked:
		retry(v, c, s) // the next attempt marks it
	case spool.PolicyDrop:
		v.State = spool.Cancelled
	case spool.PolicyHold:
		v.State = spool.Uncertain
	default:
		v.State = spool.Uncertain // whatever it is, it doesn't allow a second send
	}
}

// chatGone ends a job and, unless the answer needs confirmation, all that wait
// for its chat.
func chatGone(v *spool.Verdict, o botapi.Outcome, c *spool.Claim, s situation) {
	first := s.now
	if last := c.LastError; last != nil && last.Class == string(botapi.ClassChatGone) {
		first = last.At
	}
	if o.Confirm && s.now.Sub(first) < confirmAfter {
		v.GiveBack = true
		v.RetryAt = first.Add(confirmAfter)
		v.Error.At = first // counts from the first time
		return
	}
	v.State = spool.Dead
	if chatOf(c) != "" {
		v.ChatGone = v.Error.Description
	}
}

// migrated sends the job, and all that wait behind it, to the chat's new id.
func migrated(v *spool.Verdict, o botapi.Outcome, c *spool.Claim) {
	if id, ok := chatID(chatOf(c)); !ok || id == o.MigrateTo {
		*v = looped(*v)
		return
	}
	v.GiveBack, v.MigrateTo = true, o.MigrateTo
}

// looped is the verdict on a migration that can't be followed.
func looped(v spool.Verdict) spool.Verdict {
	v.State, v.GiveBack, v.MigrateTo = spool.Dead, false, 0
	return v
}

// unauthorized puts the job back: the token isn't its fault. But a job that is
// refused again although Telegram has accepted the token in between is the one
// to blame, and has only its attempts.
func unauthorized(v *spool.Verdict, o botapi.Outcome, c *spool.Claim, s situation) {
	if again(o, c, s) {
		retry(v, c, s)
		return
	}
	v.GiveBack, v.RetryAt = true, s.now.Add(refusedPause)
}

// again reports whether the job ended the same way last time, and Telegram has
// accepted another call of the bot since.
func again(o botapi.Outcome, c *spool.Claim, s situation) bool {
	last := c.LastError
	return last != nil && last.Class == string(o.Class) && !s.accepted.Before(last.At)
}

func jobError(o botapi.Outcome, now time.Time) *spool.JobError {
	return &spool.JobError{Class: string(o.Class), Code: o.Code, Description: clip(o.Description, maxDescription), At: now}
}

// evidence is nil when nothing at all was reached.
func evidence(seen botapi.Seen, now time.Time) *spool.Evidence {
	if seen.Phase == botapi.PhaseNone {
		return nil
	}
	return &spool.Evidence{Phase: string(seen.Phase), BytesWritten: seen.BytesWritten, At: now}
}

func chatSeen(c *botapi.ResultChat) *spool.ChatSeen {
	if c == nil {
		return nil
	}
	return &spool.ChatSeen{ID: c.ID, Type: c.Type, Username: c.Username}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
