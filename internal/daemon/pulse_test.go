package daemon

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tgspool/tgspool/internal/botapi"
	"github.com/tgspool/tgspool/internal/config"
)

func TestPulse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPulse()
		check := func(want string) {
			t.Helper()
			if got := p.stuck(time.Now()); (got == "") != (want == "") || !strings.Contains(got, want) {
				t.Errorf("stuck is %q, want %q", got, want)
			}
		}
		check("")
		poll := p.expect("getUpdates", 65*time.Second)
		send := p.expect("sendMessage", time.Hour)
		time.Sleep(65*time.Second + pulseSlack)
		check("") // late, but within the slack
		time.Sleep(time.Second)
		check("getUpdates should have ended 1m1s ago")
		poll()
		check("")
		send()
		time.Sleep(2 * time.Hour)
		check("")
		p.lost("sender of home")
		check("sender of home has ended")
	})
}

func TestCallBound(t *testing.T) {
	c := config.Bot{Sender: config.Sender{RequestTimeout: time.Minute, StallTimeout: 30 * time.Second}}
	for _, tt := range []struct {
		r    botapi.Request
		want time.Duration
	}{
		{botapi.Request{}, 150 * time.Second},
		{botapi.Request{Timeout: 5 * time.Minute}, 390 * time.Second},
		{botapi.Request{Files: make([]botapi.File, 1)}, uploadBound},
	} {
		if got := callBound(c, tt.r); got != tt.want {
			t.Errorf("bound of %+v is %s, want %s", tt.r, got, tt.want)
		}
	}
}
