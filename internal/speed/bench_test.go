package speed

import (
	"os"
	"slices"
	"strings"
	"testing"

	"jobq/core/port"
	"jobq/internal/azurite"
	"jobq/store"
)

var emulator azurite.Shared

func TestMain(m *testing.M) {
	code := m.Run()
	emulator.Close()
	os.Exit(code)
}

// bed opens a fresh store of one kind. most bounds the messages that wait in it at
// a time, so that a store whose calls grow dear with a long queue measures the
// coordinator and not the queue.
type bed struct {
	open func(tb testing.TB) *port.Store
	most int
}

func openStore(tb testing.TB, l store.Location, o store.Options) *port.Store {
	tb.Helper()
	s, err := store.Open(tb.Context(), l, o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

func onLocal(most int) bed {
	return bed{most: most, open: func(tb testing.TB) *port.Store {
		return openStore(tb, store.Location{Storage: store.Local, Prefix: "speed"}, store.Options{Home: tb.TempDir(), Kind: "coordinator"})
	}}
}

// onAzurite takes a fresh account for each store.
func onAzurite(most int) bed {
	return bed{most: most, open: func(tb testing.TB) *port.Store {
		connection := emulator.Account(tb)
		_, rest, _ := strings.Cut(connection, "AccountName=")
		name, _, _ := strings.Cut(rest, ";")
		getenv := func(key string) string {
			if key == "JOBQ_CONNECTION_STRING" {
				return connection
			}
			return ""
		}
		return openStore(tb, store.Location{Storage: name, Prefix: "Speed"}, store.Options{Kind: "coordinator", Getenv: getenv})
	}}
}

// BenchmarkFanIn drains completions that lead to no message.
//
//	go test ./internal/speed -run '^$' -bench FanIn -benchtime 1x
func BenchmarkFanIn(b *testing.B) {
	b.Run("local", func(b *testing.B) { compare(b, onLocal(20_000), fanIn(20_000)) })
	b.Run("azurite", func(b *testing.B) { compare(b, onAzurite(300), fanIn(600)) })
}

// BenchmarkPairs drains completions that lead to one message each. Those are taken
// away before the next completions come, so that a store holds at most twice as
// many messages as it is fed at a time.
//
//	go test ./internal/speed -run '^$' -bench Pairs -benchtime 1x
func BenchmarkPairs(b *testing.B) {
	b.Run("local", func(b *testing.B) { compare(b, onLocal(10_000), pairs(10_000)) })
	b.Run("azurite", func(b *testing.B) { compare(b, onAzurite(150), pairs(450)) })
}

const comparisons = 5

// compare runs coordinator and bare mix in turn and reports how much of the bare
// mix's speed the coordinator reaches: the median of the pairs, and the fastest run
// of one against the fastest of the other, which a busy machine disturbs less.
func compare(b *testing.B, on bed, w workload) {
	var ratios, rates, bare, saves []float64
	for b.Loop() {
		for range comparisons {
			c := runCoordinator(b, on, w)
			m := runBare(b, on, w, c)
			if c.calls != m.calls {
				b.Fatalf("the coordinator made the calls %+v, the bare mix %+v", c.calls, m.calls)
			}
			n := float64(w.reports)
			ratios = append(ratios, 100*m.took.Seconds()/c.took.Seconds())
			rates = append(rates, n/c.took.Seconds())
			bare = append(bare, n/m.took.Seconds())
			saves = append(saves, float64(c.saves)/n)
		}
	}
	b.Logf("percent of the bare mix: %.0f", ratios)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(ratios), "%-of-bare")
	b.ReportMetric(100*slices.Max(rates)/slices.Max(bare), "%-fastest")
	b.ReportMetric(median(rates), "completions/s")
	b.ReportMetric(median(bare), "bare/s")
	b.ReportMetric(median(saves), "saves/completion")
}

func median(all []float64) float64 {
	s := slices.Sorted(slices.Values(all))
	return s[len(s)/2]
}

// TestBothSidesMakeTheSameCalls runs the comparison on few messages.
func TestBothSidesMakeTheSameCalls(t *testing.T) {
	t.Parallel()
	for name, w := range map[string]workload{"fan-in": fanIn(90), "pairs": pairs(90)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			on := onLocal(40)
			c := runCoordinator(t, on, w)
			m := runBare(t, on, w, c)
			if c.calls != m.calls {
				t.Errorf("the coordinator made the calls %+v, the bare mix %+v", c.calls, m.calls)
			}
			if c.deleted != w.reports || c.sent != w.reports*w.sends {
				t.Errorf("%d messages were removed and %d sent, want %d and %d", c.deleted, c.sent, w.reports, w.reports*w.sends)
			}
			if c.saves >= w.reports/5 {
				t.Errorf("%d saves for %d completions, want far fewer", c.saves, w.reports)
			}
		})
	}
}
