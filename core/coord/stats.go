package coord

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"
)

// Stats counts what a coordinator did since it was made.
type Stats struct {
	received, saves, conflicts, cacheHits, conditionalReads atomic.Int64
	sent, resent, fenced, repeats, wakes                    atomic.Int64
	released, poison                                        atomic.Int64

	mu      sync.Mutex
	repairs map[string]int64
}

// repair counts a repair by its cause.
func (s *Stats) repair(cause string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.repairs == nil {
		s.repairs = map[string]int64{}
	}
	s.repairs["repairs_"+strings.ReplaceAll(cause, " ", "_")]++
}

// Count returns the counters by name; those of repairs are there once they
// happened.
func (c *Coordinator) Count() map[string]int64 {
	s := &c.stats
	all := map[string]int64{
		"received": s.received.Load(), "saves": s.saves.Load(), "conflicts": s.conflicts.Load(),
		"cache_hits": s.cacheHits.Load(), "conditional_reads": s.conditionalReads.Load(),
		"sent": s.sent.Load(), "resent": s.resent.Load(), "fenced": s.fenced.Load(),
		"repeats": s.repeats.Load(), "wakes": s.wakes.Load(),
		"released": s.released.Load(), "poison": s.poison.Load(),
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.Copy(all, s.repairs)
	return all
}
