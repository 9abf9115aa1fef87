package gate_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tgspool/tgspool/internal/gate"
)

// drive asks the gate as the spool's writer does, again exactly when it is told
// to, until the span is over, and returns when calls were admitted.
func drive(t *testing.T, g *gate.Gate, lane string, span time.Duration) []time.Time {
	t.Helper()
	var admitted []time.Time
	for end := time.Now().Add(span); ; {
		now := time.Now()
		if !now.Before(end) {
			return admitted
		}
		ok, at := g.Admit(now, lane)
		switch {
		case ok:
			admitted = append(admitted, now)
		case !at.After(now):
			t.Fatalf("asked to ask again at %v, which is not after %v: that would spin", at, now)
		default:
			time.Sleep(at.Sub(now))
		}
	}
}

func TestAdmit_KeepsTheRateAndUsesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate.New(gate.Config{Rate: 25, Burst: 50})
		n := len(drive(t, g, "normal", time.Minute))
		if most, least := 25*60+gate.MaxBurst, 25*60*98/100; n > most || n < least {
			t.Errorf("%d calls in 60 s, want between %d and %d", n, least, most)
		}
	})
}

func TestAdmit_BurstAfterIdleIsFive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate.New(gate.Config{Rate: 25})
		time.Sleep(time.Hour)
		n := 0
		for ; ; n++ {
			if ok, _ := g.Admit(time.Now(), "normal"); !ok {
				break
			}
		}
		if n != gate.MaxBurst {
			t.Errorf("%d calls at once, want %d", n, gate.MaxBurst)
		}
	})
}

func TestAdmit_RateZeroIsOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate.New(gate.Config{})
		for i := range 10_000 {
			if ok, at := g.Admit(time.Now(), "bulk"); !ok {
				t.Fatalf("call %d has to wait until %v", i, at)
			}
		}
	})
}

func TestAdmit_PaidLaneHasItsOwnRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate.New(gate.Config{Rate: 1, PaidRate: 100})
		if n := len(drive(t, g, gate.LanePaid, 10*time.Second)); n < 980 {
			t.Errorf("%d paid calls in 10 s, want about 1000", n)
		}
		if ok, _ := g.Admit(time.Now(), "bulk"); !ok {
			t.Error("paid calls took the tokens of the others")
		}
	})
}

func TestRefund_GivesTheTokenBackButNoMoreThanTheBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate.New(gate.Config{Rate: 1})
		for range 5 {
			g.Admit(time.Now(), "normal")
		}
		if ok, _ := g.Admit(time.Now(), "normal"); ok {
			t.Fatal("a sixth call at once was admitted")
		}
		time.Sleep(time.Millisecond) // later than the taking, as in a transaction
		g.Refund()
		if ok, _ := g.Admit(time.Now(), "normal"); !ok {
			t.Error("the token given back is not there")
		}
		time.Sleep(time.Minute)
		g.Refund()
		time.Sleep(time.Millisecond)
		n := 0
		for ; ; n++ {
			if ok, _ := g.Admit(time.Now(), "normal"); !ok {
				break
			}
		}
		if n > gate.MaxBurst {
			t.Errorf("%d calls at once after a refund to a full gate, want %d", n, gate.MaxBurst)
		}
	})
}

func TestExtendCooldown_OnlyLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate.New(gate.Config{Rate: 25})
		start := time.Now()
		if !g.ExtendCooldown(start.Add(10072*time.Second), "flood") {
			t.Fatal("the first deadline was not taken")
		}
		if g.ExtendCooldown(start.Add(time.Second), "flood") {
			t.Error("an earlier deadline moved it")
		}
		if got, want := g.Cooldown(), start.Add(10072*time.Second); !got.Equal(want) {
			t.Errorf("cooldown until %v, want %v", got, want)
		}
		if ok, at := g.Admit(start, "interactive"); ok || !at.Equal(g.Cooldown()) {
			t.Errorf("Admit = %v, %v; want no, until the deadline", ok, at)
		}
		if ok, after := g.TakeEphemeral(start); ok || after != 10072*time.Second {
			t.Errorf("TakeEphemeral = %v, %v; want no, 10072 s", ok, after)
		}
		if ok, reason := g.Recheck(start); ok || reason != "cooldown" {
			t.Errorf("Recheck = %v, %q; want no, cooldown", ok, reason)
		}
		time.Sleep(10072 * time.Second)
		if ok, _ := g.Admit(time.Now(), "interactive"); !ok {
			t.Error("still closed at the deadline")
		}
	})
}

func TestTakeEphemeral_RunsAheadOneSecondAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate.New(gate.Config{Rate: 10})
		n := 0
		for ; n < 1000; n++ {
			if ok, after := g.TakeEphemeral(time.Now()); !ok {
				if after <= 0 {
					t.Errorf("refused with a wait of %v", after)
				}
				break
			}
		}
		if n != gate.MaxBurst+10 {
			t.Errorf("%d calls at once, want the burst and one second's worth, %d", n, gate.MaxBurst+10)
		}
		if ok, at := g.Admit(time.Now(), "normal"); ok || time.Until(at) < time.Second {
			t.Error("those that wait don't make up for those that ran ahead")
		}
	})
}

func TestLanes_SeveralReasonsHoldAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate.New(gate.Config{Rate: 25})
		opened := 0
		g.OnOpen(func() {
			opened++
			g.Snapshot() // would deadlock if called under the lock
		})
		if !g.CloseLanes(gate.Offline, "dial") || g.CloseLanes(gate.Offline, "dial again") {
			t.Error("CloseLanes doesn't tell a new reason from a known one")
		}
		g.CloseLanes(gate.Paused, "")
		if ok, at := g.Admit(time.Now(), "normal"); ok || !at.IsZero() {
			t.Errorf("Admit = %v, %v while closed, want no and no time", ok, at)
		}
		g.Success()
		if opened != 0 {
			t.Error("a success opened a paused gate")
		}
		if ok, reason := g.Recheck(time.Now()); ok || reason != string(gate.Paused) {
			t.Errorf("Recheck = %v, %q; want no, paused", ok, reason)
		}
		g.OpenLanes(gate.Paused)
		if opened != 1 {
			t.Errorf("OnOpen ran %d times, want once", opened)
		}
		if g.OpenLanes(gate.Paused) || opened != 1 {
			t.Error("opening what was open counts")
		}
		if ok, _ := g.Admit(time.Now(), "normal"); !ok {
			t.Error("closed although no reason is left")
		}
	})
}

func TestSuccess_DoesNotBelieveInARefusedToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate.New(gate.Config{})
		g.CloseLanes(gate.Unauthorized, "401")
		g.Success()
		if held, _, _ := g.Held(gate.Unauthorized); !held {
			t.Error("the success of a call from before opened the lanes")
		}
	})
}

func TestSleepBackoff(t *testing.T) {
	ends := []struct {
		name string
		end  func(g *gate.Gate, cancel func())
		took time.Duration
		err  error
	}{
		{"runs its time", func(*gate.Gate, func()) {}, time.Minute, nil},
		{"ends at a success of anyone", func(g *gate.Gate, _ func()) { g.Success() }, time.Second, nil},
		{"ends when a reason is lifted", func(g *gate.Gate, _ func()) { g.OpenLanes(gate.Offline) }, time.Second, nil},
		{"ends with its context", func(_ *gate.Gate, cancel func()) { cancel() }, time.Second, context.Canceled},
	}
	for _, tt := range ends {
		synctest.Test(t, func(t *testing.T) {
			g := gate.New(gate.Config{})
			g.CloseLanes(gate.Offline, "")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			start := time.Now()
			var wg sync.WaitGroup
			wg.Go(func() {
				if err := g.SleepBackoff(ctx, time.Minute); !errors.Is(err, tt.err) {
					t.Errorf("%s: error %v, want %v", tt.name, err, tt.err)
				}
				if took := time.Since(start); took != tt.took {
					t.Errorf("%s: took %v, want %v", tt.name, took, tt.took)
				}
			})
			time.Sleep(time.Second)
			tt.end(g, cancel)
			wg.Wait()
		})
	}
}

func TestAwaitHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate.New(gate.Config{})
		g.CloseLanes(gate.Paused, "")
		start := time.Now()
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := g.AwaitHeld(t.Context(), gate.Probing, gate.Offline); err != nil {
				t.Error(err)
			}
			if took := time.Since(start); took != time.Minute {
				t.Errorf("woke up after %v, want a minute", took)
			}
			if held, since, detail := g.Held(gate.Offline); !held || since.Sub(start) != time.Minute || detail != "dial" {
				t.Errorf("offline %v since %v (%q)", held, since.Sub(start), detail)
			}
		})
		time.Sleep(time.Second)
		g.CloseLanes(gate.Unauthorized, "another reason")
		time.Sleep(59 * time.Second)
		g.CloseLanes(gate.Offline, "dial")
		wg.Wait()
		if err := g.AwaitHeld(t.Context(), gate.Offline); err != nil {
			t.Error("waits although the reason holds:", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := g.AwaitHeld(ctx, gate.Probing); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want the context's", err)
		}
	})
}

func TestUndatedFlood_DoublesToFiveMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate.New(gate.Config{})
		for _, seconds := range []int{5, 10, 20, 40, 80, 160, 300, 300} {
			want := time.Duration(seconds) * time.Second
			now := time.Now()
			until := g.UndatedFlood(now)
			if got := until.Sub(now); got != want {
				t.Errorf("pause %v, want %v", got, want)
			}
			if again := g.UndatedFlood(now.Add(time.Second)); !again.Equal(until) {
				t.Errorf("an answer during the pause moved it to %v", again)
			}
			time.Sleep(time.Until(until))
		}
		g.EndStreaks()
		if got := time.Until(g.UndatedFlood(time.Now())); got != 5*time.Second {
			t.Errorf("pause %v after a success, want 5 s", got)
		}
	})
}

func TestFrozen_GrowsFromOneHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate.New(gate.Config{})
		for _, hours := range []int{1, 2, 4, 8, 16, 24, 24} {
			want := time.Duration(hours) * time.Hour
			if got := time.Until(g.Frozen(time.Now())); got != want {
				t.Errorf("pause %v, want %v", got, want)
			}
			time.Sleep(want)
		}
	})
}

func TestSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate.New(gate.Config{})
		start := time.Now()
		want := func(state gate.State, since time.Duration, detail string) {
			t.Helper()
			s := g.Snapshot()
			if s.State != state || s.Since.Sub(start) != since || s.Detail != detail {
				t.Errorf("%s since %v (%q), want %s since %v (%q)", s.State, s.Since.Sub(start), s.Detail, state, since, detail)
			}
		}
		want(gate.StateOK, 0, "")
		time.Sleep(time.Second)
		g.ExtendCooldown(time.Now().Add(time.Hour), "flood")
		g.ExtendCooldown(time.Now().Add(2*time.Hour), "flood")
		want(gate.StateCooldown, time.Second, "flood")
		time.Sleep(time.Second)
		g.CloseLanes(gate.Offline, "captive portal?")
		want(gate.StateOffline, 2*time.Second, "captive portal?")
		if g.Snapshot().CooldownUntil.IsZero() {
			t.Error("the deadline is hidden while offline")
		}
		g.CloseLanes(gate.Paused, "")
		want(gate.StatePaused, 2*time.Second, "")
		g.CloseLanes(gate.Unauthorized, "401")
		want(gate.StateUnauthorized, 2*time.Second, "401")
		time.Sleep(3 * time.Hour)
		g.OpenLanes(gate.Unauthorized, gate.Paused, gate.Offline)
		want(gate.StateOK, 3*time.Hour+2*time.Second, "")
		g.CloseLanes(gate.Probing, "asking")
		want(gate.StateOK, 3*time.Hour+2*time.Second, "asking")
	})
}

func TestAwaitHeld_EndsWithItsContextAlthoughTheReasonStays(t *testing.T) {
	g := gate.New(gate.Config{})
	g.CloseLanes(gate.Offline, "no route to host")
	ctx, cancel := context.WithCancel(t.Context())
	if err := g.AwaitHeld(ctx, gate.Offline); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := g.AwaitHeld(ctx, gate.Offline); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v, so a loop over it would spin", err)
	}
}

func TestAwaitOpen_SignsDuringADoubtDontCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate.New(gate.Config{})
		g.CloseLanes(gate.Probing, "the token was refused")
		start := time.Now()
		ended := make(chan bool)
		go func() { ended <- g.AwaitOpen(t.Context(), time.Second, time.Hour) }()
		time.Sleep(time.Minute)
		g.CloseLanes(gate.Unauthorized, "Unauthorized")
		g.OpenLanes(gate.Probing) // a sign, but the token is refused now
		time.Sleep(time.Minute)
		g.OpenLanes(gate.Unauthorized)
		if early := <-ended; !early || time.Since(start) != 2*time.Minute {
			t.Errorf("early: %v, after %s", early, time.Since(start))
		}
	})
}

func TestAwaitOpen_ASignWithinTheLeastSpanCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate.New(gate.Config{})
		start := time.Now()
		ended := make(chan bool)
		go func() { ended <- g.AwaitOpen(t.Context(), time.Second, time.Hour) }()
		synctest.Wait()
		g.Success()
		if early := <-ended; !early || time.Since(start) != time.Second {
			t.Errorf("early: %v, after %s", early, time.Since(start))
		}
		if g.AwaitOpen(t.Context(), time.Second, time.Minute) {
			t.Error("an old sign counts again")
		}
	})
}
