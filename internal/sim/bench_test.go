package sim

import (
	"testing"
	"time"
)

// BenchmarkRandomHistories reports how many store calls are simulated a second.
func BenchmarkRandomHistories(b *testing.B) {
	p := &pool{}
	defer p.close()
	calls, seed := 0, uint64(0)
	began := time.Now()
	for b.Loop() {
		seed++
		calls += run(Draw(seed, Personality(seed%2), AllFaults), p).calls
	}
	b.ReportMetric(float64(calls)/time.Since(began).Seconds(), "calls/s")
}

// BenchmarkCrashHistories is the same for the short ones of the exhaustive part.
func BenchmarkCrashHistories(b *testing.B) {
	c := Crashes(4)[0]
	calls := 0
	began := time.Now()
	p := &pool{}
	defer p.close()
	diamond := edges(1<<1 | 1<<2 | 1<<(4+3) | 1<<(8+3))
	for b.Loop() {
		calls += run(c.config(Storage, diamond.small(4, smallPolicies()[0], 0)), p).calls
	}
	b.ReportMetric(float64(calls)/time.Since(began).Seconds(), "calls/s")
}
