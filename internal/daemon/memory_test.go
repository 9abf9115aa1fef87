package daemon

import (
	"runtime/debug"
	"testing"
)

func TestTuneMemory_LeavesWhatTheEnvironmentSets(t *testing.T) {
	percent, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetGCPercent(percent); debug.SetMemoryLimit(limit) })
	TuneMemory(func(string) string { return "given" })
	if got := debug.SetGCPercent(100); got != 100 {
		t.Errorf("GOGC was given, and the collector runs at %d", got)
	}
	TuneMemory(func(string) string { return "" })
	if got := debug.SetMemoryLimit(-1); got <= 0 || got > memoryLimit {
		t.Errorf("memory limit %d", got)
	}
	if got := debug.SetGCPercent(percent); got != gcPercent {
		t.Errorf("the collector runs at %d", got)
	}
}
