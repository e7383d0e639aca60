package coord

import "sync/atomic"

// Stats counts what a coordinator did since it was made.
type Stats struct {
	received, saves, conflicts, cacheHits, conditionalReads atomic.Int64
	sent, resent, fenced, repeats, wakes, trailing          atomic.Int64
	released, poison, repairs                               atomic.Int64
}

// Count returns the counters by name.
func (c *Coordinator) Count() map[string]int64 {
	s := &c.stats
	return map[string]int64{
		"received": s.received.Load(), "saves": s.saves.Load(), "conflicts": s.conflicts.Load(),
		"cache_hits": s.cacheHits.Load(), "conditional_reads": s.conditionalReads.Load(),
		"sent": s.sent.Load(), "resent": s.resent.Load(), "fenced": s.fenced.Load(),
		"repeats": s.repeats.Load(), "wakes": s.wakes.Load(), "trailing_saves": s.trailing.Load(),
		"released": s.released.Load(), "poison": s.poison.Load(), "repairs": s.repairs.Load(),
	}
}
