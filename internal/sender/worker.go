package sender

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/gate"
	"github.com/tgspool/tgspool/internal/spool"
)

// worker takes one job after the other until take ends.
func (s *Sender) worker(take, work context.Context) error {
	var pause pause
	claim, err := s.bot.Claim(take)
	for {
		switch {
		case claim != nil:
			pause.reset()
			claim, err = s.settle(take, work, claim, s.attempt(work, claim))
		case errors.Is(err, spool.ErrClosed):
			return err
		case take.Err() != nil:
			return nil //nolint:nilerr // what ended is take: that is how a worker stops
		default:
			// An attempt that can't be marked on disk isn't made.
			s.storeTrouble(take, 0, err)
			sleep(take, pause.next())
			claim, err = s.bot.Claim(take)
		}
	}
}

// attempt makes the call of a claimed job and says how the job goes on.
func (s *Sender) attempt(work context.Context, c *spool.Claim) spool.Verdict {
	if ok, _ := s.gate.Recheck(time.Now()); !ok || work.Err() != nil {
		// Closed since the claim: the job waits in its place like the others.
		s.gate.Refund()
		return spool.Verdict{State: spool.Pending, GiveBack: true}
	}
	seen := s.client.Call(work, s.request(c))
	outcome := botapi.Classify(botapi.MethodFor(c.Method), c.Params, seen)
	s.counted(outcome.Class)
	cutOff := work.Err() != nil
	if cutOff && outcome.Class == botapi.ClassOffline {
		// Our own stop was quicker than the first byte.
		return spool.Verdict{State: spool.Pending, GiveBack: true}
	}
	verdict := decide(outcome, seen, c, s.situation(c, outcome))
	if !cutOff || outcome.Class != botapi.ClassUnknownOutcome {
		s.tellGate(outcome, seen, verdict)
	}
	s.report(work, c, outcome, seen, verdict)
	return verdict
}

// request makes the call out of the job, with the chat's present id, and with a
// note that it may be a repeat where that was agreed.
func (s *Sender) request(c *spool.Claim) botapi.Request {
	r := botapi.Request{
		Method:  c.Method,
		Params:  addressed(c.Params, c.ChatID, c.Chat),
		Timeout: s.options.RequestTimeout,
	}
	if note := s.lateNote(c, time.Now()); note != "" {
		if params := noted(c.Method, r.Params, note, false); params != nil {
			r.Params = params
		}
	}
	// Here and not with the verdict, since the end of the process may have been
	// what made the first attempt's outcome unknown.
	if c.MaybeSent && c.OnUncertain == spool.PolicyResendMarked {
		if note := marked(c.Method, r.Params); note != nil {
			r.Params = note
		}
	}
	for _, f := range c.Files {
		if c.Fallback != nil && c.Fallback.Used && !bytes.Contains(c.Params, []byte("attach://"+f.Field)) {
			continue // it belongs to the first call alone
		}
		r.Files = append(r.Files, botapi.File{
			Field: f.Field, Name: f.Name, Path: filepath.Join(s.options.Dir, filepath.FromSlash(f.Path)),
		})
	}
	return r
}

// situation gathers what the decision needs beside outcome and job.
func (s *Sender) situation(c *spool.Claim, o botapi.Outcome) situation {
	now := time.Now()
	sit := situation{now: now, random: rand.Float64(), accepted: s.prober.lastAccepted()}
	switch o.Class { //nolint:exhaustive // the others need nothing more
	case botapi.ClassFlood:
		sit.floodsBot = s.floods.meansBot(chatOf(c), o.RetryAfter, now)
	case botapi.ClassFloodUndated:
		sit.pauseUntil = s.gate.UndatedFlood(now)
	case botapi.ClassFrozen:
		sit.pauseUntil = s.gate.Frozen(now)
	}
	return sit
}

// tellGate does at once what an outcome means for all calls of the bot.
func (s *Sender) tellGate(o botapi.Outcome, seen botapi.Seen, v spool.Verdict) {
	switch o.Class {
	case botapi.ClassOffline:
		s.gate.CloseLanes(gate.Offline, o.Description)
	case botapi.ClassNotTelegram:
		s.gate.CloseLanes(gate.Offline, "captive portal? "+o.Description)
	case botapi.ClassUnknownOutcome:
		s.gate.CloseLanes(gate.Probing, "the outcome of a call is unknown")
	case botapi.ClassUnauthorized:
		s.gate.CloseLanes(gate.Probing, "the token was refused")
	case botapi.ClassTransient:
		if seen.Status >= 500 {
			s.gate.CloseLanes(gate.Probing, "Telegram answers with errors of its own")
			return
		}
		s.gate.Success()
	case botapi.ClassFlood, botapi.ClassFloodUndated, botapi.ClassFrozen:
		// The deadline first: a success lets the next call through.
		if !v.BotCooldown.IsZero() {
			s.gate.ExtendCooldown(v.BotCooldown, string(o.Class))
		}
		s.gate.Success()
	case botapi.ClassOK, botapi.ClassNoOp, botapi.ClassRejected, botapi.ClassChatGone,
		botapi.ClassMigrated, botapi.ClassTooLate:
		s.prober.accept(time.Now())
		s.gate.EndStreaks()
		s.gate.Success()
	}
}

// settle stores a verdict and takes the next job.
func (s *Sender) settle(take, work context.Context, c *spool.Claim, v spool.Verdict) (*spool.Claim, error) {
	next, err := s.bot.SettleAndClaim(take, c, v)
	if v.MigrateTo != 0 && errors.Is(err, spool.ErrConflict) {
		// The chat would get back an id that it had: following it never ends.
		v = looped(v)
		next, err = s.bot.SettleAndClaim(take, c, v)
	}
	// What was seen of a call is worth more than a quick end: a store that can't
	// be written is tried again until it can, and once more when work ends. If we
	// stop before it can, the job is an unknown outcome at the next start.
	for pause := (pause{}); ; {
		switch {
		case err == nil:
			if s.trouble.CompareAndSwap(true, false) {
				s.log.LogAttrs(take, slog.LevelInfo, "the store can be written again")
			}
			return next, nil
		case take.Err() != nil && errors.Is(err, take.Err()), errors.Is(err, spool.ErrClosed):
			return nil, err // settled, only the claim was given up; or there is nothing to write to
		case errors.Is(err, spool.ErrConflict), errors.Is(err, spool.ErrNotFound):
			s.log.LogAttrs(take, slog.LevelWarn, "an attempt was settled by somebody else",
				slog.Int64("job_id", c.ID), slog.Any("err", err))
			return s.bot.Claim(take)
		}
		s.storeTrouble(work, c.ID, err)
		more := sleep(work, pause.next())
		next, err = s.bot.SettleAndClaim(take, c, v)
		if err != nil && !more {
			return nil, err
		}
	}
}

// storeTrouble logs the first of a series of failures of the store.
func (s *Sender) storeTrouble(ctx context.Context, job int64, err error) {
	if s.trouble.Swap(true) {
		return
	}
	s.log.LogAttrs(ctx, slog.LevelError, "the store can't be written",
		slog.Int64("job_id", job), slog.Any("err", err))
}
