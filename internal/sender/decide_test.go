package sender

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/gate"
	"github.com/tgspool/tgspool/internal/spool"
)

var noon = time.Date(2031, 5, 6, 12, 0, 0, 0, time.UTC)

// send is a claim of a first attempt at a call that isn't safe to repeat.
func send(change ...func(*spool.Claim)) *spool.Claim {
	c := &spool.Claim{
		Job: spool.Job{
			ID: 1, Method: "sendMessage", ChatID: json.RawMessage("-5"), Attempts: 1, MaxAttempts: 3,
			Params: json.RawMessage(`{"chat_id":-5,"text":"hi"}`), OnUncertain: spool.PolicyHold,
		},
		Chat: "-5", Weight: 1,
	}
	for _, f := range change {
		f(c)
	}
	return c
}

func failed(class botapi.Class, ago time.Duration) func(*spool.Claim) {
	return func(c *spool.Claim) {
		c.LastError = &spool.JobError{Class: string(class), At: noon.Add(-ago)}
	}
}

func policy(p spool.Policy) func(*spool.Claim) { return func(c *spool.Claim) { c.OnUncertain = p } }

func spent(c *spool.Claim) { c.Attempts = c.MaxAttempts }

func safe(c *spool.Claim) { c.SafeToRepeat = true }

func maybe(c *spool.Claim) { c.MaybeSent = true }

func inChat(chat string) func(*spool.Claim) { return func(c *spool.Claim) { c.Chat = chat } }

// expectation is what matters of a verdict. Times are spans from noon.
type expectation struct {
	state     spool.State
	retry     time.Duration
	giveBack  bool
	reached   bool
	maybeSent bool
	noError   bool
	result    string
	heldBy    string
	release   time.Duration
	bot, chat time.Duration
	gone      string
	migrate   int64
}

func summary(v spool.Verdict) expectation {
	span := func(t time.Time) time.Duration {
		if t.IsZero() {
			return 0
		}
		return t.Sub(noon)
	}
	return expectation{
		state: v.State, retry: span(v.RetryAt), giveBack: v.GiveBack, reached: v.Reached, maybeSent: v.MaybeSent,
		noError: v.Error == nil, result: string(v.Result), heldBy: v.HeldBy,
		release: span(v.ReleaseAt), bot: span(v.BotCooldown), chat: span(v.ChatCooldown),
		gone: v.ChatGone, migrate: v.MigrateTo,
	}
}

func TestDecide(t *testing.T) {
	const half = 0.5
	accepted := situation{accepted: noon.Add(-time.Second), random: half}
	tests := []struct {
		name  string
		o     botapi.Outcome
		claim *spool.Claim
		s     situation
		want  expectation
	}{
		{
			"ok",
			botapi.Outcome{Class: botapi.ClassOK, Result: json.RawMessage(`{"message_id":7}`)},
			send(),
			situation{},
			expectation{state: spool.Done, noError: true, reached: true, result: `{"message_id":7}`},
		},
		{
			"ok, deleted before it could be returned",
			botapi.Outcome{Class: botapi.ClassOK},
			send(),
			situation{},
			expectation{state: spool.Done, noError: true, reached: true},
		},
		{
			"no_op keeps Telegram's words",
			botapi.Outcome{Class: botapi.ClassNoOp},
			send(safe),
			situation{},
			expectation{state: spool.Done, reached: true},
		},
		{
			"no_op after an unknown attempt is that one's success",
			botapi.Outcome{Class: botapi.ClassNoOp},
			send(safe, maybe),
			situation{},
			expectation{state: spool.Done, noError: true, reached: true, result: "true"},
		},
		{
			"flood of the bot",
			botapi.Outcome{Class: botapi.ClassFlood, RetryAfter: 3 * time.Second},
			send(),
			situation{floodsBot: true},
			expectation{state: spool.Pending, giveBack: true, reached: true, bot: 3 * time.Second, chat: 3 * time.Second},
		},
		{
			"flood of a chat, jitter only adds",
			botapi.Outcome{Class: botapi.ClassFlood, RetryAfter: 10072 * time.Second},
			send(),
			situation{random: half},
			expectation{state: spool.Pending, giveBack: true, reached: true, chat: 10074500 * time.Millisecond},
		},
		{
			"flood of a call without a chat",
			botapi.Outcome{Class: botapi.ClassFlood, RetryAfter: time.Hour},
			send(inChat("")),
			situation{floodsBot: true},
			expectation{state: spool.Pending, giveBack: true, reached: true, bot: time.Hour},
		},
		{
			"flood of an ephemeral call has no chat",
			botapi.Outcome{Class: botapi.ClassFlood, RetryAfter: time.Hour},
			send(inChat("once:sendChatAction:5")),
			situation{floodsBot: true},
			expectation{state: spool.Pending, giveBack: true, reached: true, bot: time.Hour},
		},
		{
			"flood without a date",
			botapi.Outcome{Class: botapi.ClassFloodUndated},
			send(),
			situation{pauseUntil: noon.Add(5 * time.Second)},
			expectation{state: spool.Held, heldBy: spool.HeldByFlood, giveBack: true, reached: true, release: 5 * time.Second, bot: 5 * time.Second},
		},
		{
			"flood with a lower bound",
			botapi.Outcome{Class: botapi.ClassFloodUndated, RetryAfter: time.Minute},
			send(),
			situation{pauseUntil: noon.Add(5 * time.Second)},
			expectation{state: spool.Held, heldBy: spool.HeldByFlood, giveBack: true, reached: true, release: time.Minute, bot: time.Minute},
		},
		{
			"transient",
			botapi.Outcome{Class: botapi.ClassTransient},
			send(),
			situation{random: half},
			expectation{state: spool.Pending, reached: true, retry: 3 * time.Second},
		},
		{
			"transient once too often",
			botapi.Outcome{Class: botapi.ClassTransient},
			send(spent),
			situation{},
			expectation{state: spool.Dead, reached: true},
		},
		{
			"offline",
			botapi.Outcome{Class: botapi.ClassOffline},
			send(spent),
			situation{},
			expectation{state: spool.Pending, giveBack: true, reached: true},
		},
		{
			"offline again in one outage",
			botapi.Outcome{Class: botapi.ClassOffline},
			send(failed(botapi.ClassOffline, time.Minute)),
			situation{},
			expectation{state: spool.Pending, giveBack: true, reached: true},
		},
		{
			"offline although a probe got through",
			botapi.Outcome{Class: botapi.ClassOffline},
			send(spent, failed(botapi.ClassOffline, time.Minute)), accepted,
			expectation{state: spool.Pending, giveBack: true, reached: true, retry: 17 * time.Second},
		},
		{
			"not Telegram: nothing has reached it",
			botapi.Outcome{Class: botapi.ClassNotTelegram},
			send(spent),
			situation{},
			expectation{state: spool.Pending, giveBack: true},
		},
		{
			"unknown, safe to repeat",
			botapi.Outcome{Class: botapi.ClassUnknownOutcome},
			send(safe, policy(spool.PolicyDrop)),
			situation{},
			expectation{state: spool.Pending, reached: true, maybeSent: true, retry: 2 * time.Second},
		},
		{
			"unknown, hold",
			botapi.Outcome{Class: botapi.ClassUnknownOutcome},
			send(),
			situation{},
			expectation{state: spool.Uncertain, reached: true, maybeSent: true},
		},
		{
			"unknown, resend",
			botapi.Outcome{Class: botapi.ClassUnknownOutcome},
			send(policy(spool.PolicyResend)),
			situation{},
			expectation{state: spool.Pending, reached: true, maybeSent: true, retry: 2 * time.Second},
		},
		{
			"unknown, resend once too often",
			botapi.Outcome{Class: botapi.ClassUnknownOutcome},
			send(policy(spool.PolicyResend), spent),
			situation{},
			expectation{state: spool.Dead, reached: true, maybeSent: true},
		},
		{
			"unknown, resend marked",
			botapi.Outcome{Class: botapi.ClassUnknownOutcome},
			send(policy(spool.PolicyResendMarked)),
			situation{},
			expectation{state: spool.Pending, reached: true, maybeSent: true, retry: 2 * time.Second},
		},
		{
			"unknown, drop",
			botapi.Outcome{Class: botapi.ClassUnknownOutcome},
			send(policy(spool.PolicyDrop)),
			situation{},
			expectation{state: spool.Cancelled, reached: true, maybeSent: true},
		},
		{
			"unknown, under a policy nobody knows",
			botapi.Outcome{Class: botapi.ClassUnknownOutcome},
			send(policy("guess")),
			situation{},
			expectation{state: spool.Uncertain, reached: true, maybeSent: true},
		},
		{
			"rejected",
			botapi.Outcome{Class: botapi.ClassRejected},
			send(),
			situation{},
			expectation{state: spool.Dead, reached: true},
		},
		{
			"chat gone",
			botapi.Outcome{Class: botapi.ClassChatGone, Description: "blocked"},
			send(),
			situation{},
			expectation{state: spool.Dead, reached: true, gone: "blocked"},
		},
		{
			"chat not found the first time",
			botapi.Outcome{Class: botapi.ClassChatGone, Description: "not found", Confirm: true},
			send(),
			situation{},
			expectation{state: spool.Pending, giveBack: true, reached: true, retry: time.Minute},
		},
		{
			"chat not found again too soon",
			botapi.Outcome{Class: botapi.ClassChatGone, Description: "not found", Confirm: true},
			send(failed(botapi.ClassChatGone, 20*time.Second)),
			situation{},
			expectation{state: spool.Pending, giveBack: true, reached: true, retry: 40 * time.Second},
		},
		{
			"chat not found the second time",
			botapi.Outcome{Class: botapi.ClassChatGone, Description: "not found", Confirm: true},
			send(failed(botapi.ClassChatGone, time.Minute)),
			situation{},
			expectation{state: spool.Dead, reached: true, gone: "not found"},
		},
		{
			"chat gone for a call with a queue of its own",
			botapi.Outcome{Class: botapi.ClassChatGone, Description: "blocked"},
			send(inChat("once:sendChatAction:5")),
			situation{},
			expectation{state: spool.Dead, reached: true},
		},
		{
			"migrated",
			botapi.Outcome{Class: botapi.ClassMigrated, MigrateTo: -1001557000000},
			send(spent),
			situation{},
			expectation{state: spool.Pending, giveBack: true, reached: true, migrate: -1001557000000},
		},
		{
			"migrated to where it is",
			botapi.Outcome{Class: botapi.ClassMigrated, MigrateTo: -5},
			send(),
			situation{},
			expectation{state: spool.Dead, reached: true},
		},
		{
			"too late",
			botapi.Outcome{Class: botapi.ClassTooLate},
			send(),
			situation{},
			expectation{state: spool.Expired, reached: true},
		},
		{
			"unauthorized",
			botapi.Outcome{Class: botapi.ClassUnauthorized},
			send(spent),
			situation{},
			expectation{state: spool.Pending, giveBack: true, reached: true, retry: 2 * time.Second},
		},
		{
			"unauthorized again, the token in doubt all the time",
			botapi.Outcome{Class: botapi.ClassUnauthorized},
			send(spent, failed(botapi.ClassUnauthorized, time.Minute)),
			situation{accepted: noon.Add(-time.Hour)},
			expectation{state: spool.Pending, giveBack: true, reached: true, retry: 2 * time.Second},
		},
		{
			"unauthorized again, the token accepted in between",
			botapi.Outcome{Class: botapi.ClassUnauthorized},
			send(spent, failed(botapi.ClassUnauthorized, time.Minute)), accepted,
			expectation{state: spool.Dead, reached: true},
		},
		{
			"frozen",
			botapi.Outcome{Class: botapi.ClassFrozen},
			send(spent),
			situation{pauseUntil: noon.Add(time.Hour)},
			expectation{state: spool.Pending, giveBack: true, reached: true, bot: time.Hour},
		},
	}
	classes := map[botapi.Class]bool{}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			classes[tt.o.Class] = true
			tt.s.now = noon
			seen := botapi.Seen{Phase: botapi.PhaseResponse, BytesWritten: 200}
			v := decide(tt.o, seen, tt.claim, tt.s)
			if got := summary(v); got != tt.want {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
			if v.Evidence == nil || v.Evidence.Phase != "response" || v.Evidence.BytesWritten != 200 || !v.Evidence.At.Equal(noon) {
				t.Errorf("evidence %+v", v.Evidence)
			}
			if v.Error != nil && (v.Error.Class != string(tt.o.Class) || v.Error.Description != tt.o.Description) {
				t.Errorf("error %+v", v.Error)
			}
		})
	}
	for _, class := range botapi.Classes() {
		if !classes[class] {
			t.Errorf("class %s has no row", class)
		}
	}
}

func TestDecide_SaysHowFarItGot(t *testing.T) {
	for _, phase := range []botapi.Phase{
		botapi.PhaseNone, botapi.PhaseResolved, botapi.PhaseConnected, botapi.PhaseTLS, botapi.PhaseWritten,
	} {
		v := decide(botapi.Outcome{Class: botapi.ClassOffline}, botapi.Seen{Phase: phase}, send(), situation{now: noon})
		if reached := phase == botapi.PhaseWritten; v.Reached != reached {
			t.Errorf("phase %q: reached %v", phase, v.Reached)
		}
		if (v.Evidence == nil) != (phase == botapi.PhaseNone) {
			t.Errorf("phase %q: evidence %+v", phase, v.Evidence)
		}
	}
}

func TestDecide_KeepsChatNotFoundFromTheFirstTime(t *testing.T) {
	o := botapi.Outcome{Class: botapi.ClassChatGone, Confirm: true}
	first := noon.Add(-20 * time.Second)
	v := decide(o, botapi.Seen{}, send(failed(botapi.ClassChatGone, 20*time.Second)), situation{now: noon})
	if !v.Error.At.Equal(first) {
		t.Errorf("the error is dated %v: an impatient retry would put the confirmation off for ever", v.Error.At)
	}
}

func TestDecide_LearnsTheChat(t *testing.T) {
	o := botapi.Outcome{Class: botapi.ClassOK, Chat: &botapi.ResultChat{ID: -100123, Type: "channel", Username: "c"}}
	v := decide(o, botapi.Seen{}, send(), situation{now: noon})
	if v.Chat == nil || *v.Chat != (spool.ChatSeen{ID: -100123, Type: "channel", Username: "c"}) {
		t.Errorf("chat %+v", v.Chat)
	}
}

func TestBackoff_FullJitterWithinItsBounds(t *testing.T) {
	for attempt, seconds := range map[int]int{
		0: 4, 1: 4, 2: 8, 3: 16, 4: 32, 5: 64, 6: 128, 7: 256, 8: 512, 9: 600, 40: 600, 1 << 30: 600,
	} {
		most := time.Duration(seconds) * time.Second
		if got := backoff(attempt, 0); got != 2*time.Second {
			t.Errorf("attempt %d: at least %v, want 2 s", attempt, got)
		}
		if got := backoff(attempt, 0.999999).Round(time.Second); got != most {
			t.Errorf("attempt %d: at most %v, want %v", attempt, got, most)
		}
	}
}

func TestFloods_WhoIsMeant(t *testing.T) {
	type flood struct {
		at    time.Duration
		chat  string
		delay time.Duration
		bot   bool
	}
	tests := []struct {
		name   string
		scope  FloodScope
		floods []flood
	}{
		{"a short one means the bot", FloodAuto, []flood{{0, "1", time.Second, true}, {0, "2", time.Minute, true}}},
		{"a long one means the chat", FloodAuto, []flood{{0, "1", 61 * time.Second, false}, {70 * time.Second, "2", time.Hour, false}}},
		{"the same chat twice is one chat", FloodAuto, []flood{{0, "1", time.Hour, false}, {time.Minute, "1", time.Hour, false}}},
		{"a second chat meanwhile means the bot", FloodAuto, []flood{{0, "1", time.Hour, false}, {time.Minute, "2", time.Hour, true}}},
		{"without a chat it means the bot", FloodAuto, []flood{{0, "", time.Hour, true}}},
		{"empty is auto", "", []flood{{0, "1", time.Second, true}, {0, "1", time.Hour, false}}},
		{"always the bot", FloodBot, []flood{{0, "1", time.Hour, true}}},
		{"always the chat", FloodChat, []flood{{0, "1", time.Second, false}, {0, "2", time.Hour, false}, {0, "", time.Second, true}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := floods{scope: tt.scope, until: map[string]time.Time{}}
			for i, fl := range tt.floods {
				if got := f.meansBot(fl.chat, fl.delay, noon.Add(fl.at)); got != fl.bot {
					t.Errorf("flood %d: the bot is meant: %v, want %v", i, got, fl.bot)
				}
			}
		})
	}
}

func TestTellGate_AnAcceptedCallProvesTheToken(t *testing.T) {
	for _, class := range botapi.Classes() {
		s := &Sender{gate: gate.New(gate.Config{})}
		s.tellGate(botapi.Outcome{Class: class}, botapi.Seen{}, spool.Verdict{})
		want := false
		switch class {
		case botapi.ClassOK, botapi.ClassNoOp, botapi.ClassRejected, botapi.ClassChatGone,
			botapi.ClassMigrated, botapi.ClassTooLate:
			want = true
		case botapi.ClassFlood, botapi.ClassFloodUndated, botapi.ClassTransient, botapi.ClassNotTelegram,
			botapi.ClassOffline, botapi.ClassUnknownOutcome, botapi.ClassUnauthorized, botapi.ClassFrozen:
		}
		if got := !s.prober.lastAccepted().IsZero(); got != want {
			t.Errorf("%s: a proof of the token: %v, want %v", class, got, want)
		}
	}
}
