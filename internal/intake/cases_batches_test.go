package intake_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/tgspool/tgspool/internal/gate"
	"github.com/tgspool/tgspool/internal/intake"
	"github.com/tgspool/tgspool/internal/telegramsim"
)

// More than Telegram hands over at once comes in its order, and each batch asks
// for what follows its last update.
func TestPoller_MoreThanOneBatchWaits(t *testing.T) {
	inBubble(t, func(t *testing.T, p *post) {
		var want []string
		var last int64
		for i := range 250 {
			want = append(want, fmt.Sprint("text ", i))
			last = p.text(want[i])
		}
		p.poll()
		after(time.Second)
		p.wantTexts(want...)
		if got := p.bot.Offset(); got != last+1 || p.sim.Pending(0) != 0 {
			t.Errorf("offset %d after update %d, %d still there", got, last, p.sim.Pending(0))
		}
		if n := len(p.sim.Polls()); n > 4 {
			t.Errorf("%d polls for three batches", n)
		}
	})
}

// Somebody else's polls are no reason to stop sending.
func TestPoller_ConflictHoldsNoCalls(t *testing.T) {
	inBubble(t, func(t *testing.T, p *post) {
		p.fault(telegramsim.Fault{Kind: telegramsim.FaultCode, Code: 409, Method: "getUpdates"})
		p.poll()
		after(time.Hour)
		p.wantState(intake.Conflict, "")
		if ok, at := p.gate.Admit(time.Now(), "normal"); !ok {
			t.Errorf("calls wait until %v", at)
		}
		if s := p.gate.Snapshot(); s.State != gate.StateOK {
			t.Errorf("the bot's state is %s: %s", s.State, s.Detail)
		}
	})
}
