package spool_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/tgspool/tgspool/internal/spool"
)

// wantWhole closes the store and looks at its file as the next start would.
func (f *fixture) wantWhole() {
	f.t.Helper()
	if err := f.store.Close(); err != nil {
		f.t.Fatal(err)
	}
	problems, err := spool.CheckFile(f.t.Context(), spool.Options{Path: filepath.Join(f.dir, "spool.db"), OnDamage: spool.OnDamageStop})
	if err != nil || len(problems) > 0 {
		f.t.Errorf("the file isn't whole: %v %v", problems, err)
	}
	f.open()
}

func TestGuard_WhatIsRememberedAfterEarlyRetentionIsNoDamage(t *testing.T) {
	bubble(t, limits(), func(t *testing.T, f *fixture) {
		f.openWith(spool.Options{KeepSize: 64 << 10})
		f.intake(text(500, 1), spool.NewUpdate{Raw: []byte("nonsense"), Error: "no update_id"})
		if _, err := f.bot.Handled(t.Context(), f.lease(time.Minute), spool.Handling{}); err != nil {
			t.Fatal(err)
		}
		j := message("1", "a")
		j.DedupeKey, j.DedupeFor = "k", 100*time.Hour
		f.enqueue(j)
		f.done(f.mustClaim())
		f.flood(400)
		waiting := f.send("3", "must still be there after the start")
		f.wantWhole()
		f.wantState(waiting, spool.Pending)
	})
}
