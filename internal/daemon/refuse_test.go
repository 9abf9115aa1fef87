package daemon

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestWait(t *testing.T) {
	tests := []struct {
		name       string
		idle, most time.Duration
		every      time.Duration // between two clients; 0: none comes
		cancel     time.Duration // 0: never
		want       time.Duration
	}{
		{"nobody comes", 10 * time.Second, time.Minute, 0, 0, 10 * time.Second},
		{"clients keep coming", 10 * time.Second, time.Minute, 6 * time.Second, 0, time.Minute},
		{"clients come too seldom", 10 * time.Second, time.Minute, 11 * time.Second, 0, 10 * time.Second},
		{"a stop", 10 * time.Second, time.Minute, 0, 3 * time.Second, 3 * time.Second},
		{"no limit but the stop", 0, 0, 0, 3 * time.Hour, 3 * time.Hour},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tt.cancel > 0 {
					time.AfterFunc(tt.cancel, cancel)
				}
				came := make(chan struct{}, 1)
				if tt.every > 0 {
					go func() {
						for tick := time.NewTicker(tt.every); ; {
							select {
							case <-ctx.Done():
								tick.Stop()
								return
							case <-tick.C:
								came <- struct{}{}
							}
						}
					}()
				}
				begin := time.Now()
				wait(ctx, came, tt.idle, tt.most)
				if took := time.Since(begin); took != tt.want {
					t.Errorf("waited %s, want %s", took, tt.want)
				}
			})
		})
	}
}
