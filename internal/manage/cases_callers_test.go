package manage_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tgspool/tgspool/internal/spool"
)

// A client that gives up after 5 s leaves its job behind and nobody who waits
// for it.
func TestPostJob_CallerHangsUpWhileItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		start := time.Now()
		r := httptest.NewRequestWithContext(ctx, "POST", "/v1/bots/home/jobs?wait=10m", strings.NewReader(`{"method":"sendMessage","params":{"chat_id":1,"text":"x"}}`))
		w.api.ServeHTTP(httptest.NewRecorder(), r) // the bubble ends with all that it has begun
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("the handler ended after %v", took)
		}
		if kept := into[list](t, w.get("/v1/bots/home/jobs?state=pending"), http.StatusOK); len(kept.Items) != 1 {
			t.Errorf("%d jobs are kept, want 1", len(kept.Items))
		}
		if job := w.attempt(spool.Verdict{State: spool.Done}); job.State != spool.Done {
			t.Errorf("job %+v", job)
		}
	})
}

// A burst of callers is queued whole: each hears of a job of its own.
func TestPostJob_TwoHundredAtOnce(t *testing.T) {
	w := newWorld(t)
	answers := make([]answer, 200)
	var callers sync.WaitGroup
	for i := range answers {
		callers.Go(func() {
			answers[i] = w.post("/v1/bots/home/jobs", fmt.Sprintf(`{"method":"sendMessage","params":{"chat_id":1,"text":"m%d"}}`, i))
		})
	}
	callers.Wait()
	ids := map[int64]bool{}
	for _, a := range answers {
		ids[into[spool.Job](t, a, http.StatusCreated).ID] = true
	}
	if len(ids) != 200 {
		t.Errorf("%d jobs, want 200", len(ids))
	}
	if all := into[list](t, w.get("/v1/bots/home/jobs?limit=1000"), http.StatusOK); len(all.Items) != 200 {
		t.Errorf("%d jobs are queued, want 200", len(all.Items))
	}
}
