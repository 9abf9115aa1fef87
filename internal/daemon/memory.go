package daemon

import (
	"os"
	"runtime/debug"
	"strconv"
	"strings"
)

const (
	// gcPercent spends some memory on less collecting: what lives is a few MiB,
	// and a fifth of the work at full speed would be the collector's.
	gcPercent = 200
	// memoryLimit keeps a box with little memory from swapping to its card.
	memoryLimit = 72 << 20
)

// TuneMemory sets the collector for a small box. GOGC and GOMEMLIMIT, where they
// are set, count instead.
func TuneMemory(getenv func(string) string) {
	if getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(min(memoryLimit, quarterOfMemory()))
	}
}

// quarterOfMemory is a quarter of the machine's memory in bytes, the whole limit
// where that can't be read.
func quarterOfMemory() int64 {
	raw, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return memoryLimit
	}
	for line := range strings.Lines(string(raw)) {
		rest, ok := strings.CutPrefix(line, "MemTotal:")
		if !ok {
			continue
		}
		if kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64); err == nil {
			return kib << 10 / 4
		}
	}
	return memoryLimit
}
