package coord_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"jobq/core/coord"
	"jobq/core/dag"
	"jobq/core/sched"
	"jobq/internal/testkit"
	"jobq/store/memory"
	"jobq/store/wrap/faults"
)

// backlog returns a world whose inbox holds the completions of every task but the
// last of a fan-in.
func backlog(t testing.TB, ctx context.Context, d *dag.Definition, plans ...faults.Decide) (*testkit.World, *testkit.Node) {
	w := onMemory(t, memory.Options{})
	w.Scheduler = sched.Real{}
	w.Know(d)
	c := w.Start("c", plans...)
	if _, err := c.Submit(ctx, coord.Submission{ID: "w", Definition: d}); err != nil {
		t.Fatal(err)
	}
	w.Take(ctx)
	w.Finish(ctx)
	return w, c
}

// BenchmarkDrain drains 20,000 completions of one workflow from a store in memory.
func BenchmarkDrain(b *testing.B) {
	const n = 20_000
	d := fanIn(n)
	var saves, done float64
	for b.Loop() {
		b.StopTimer()
		_, c := backlog(b, b.Context(), d)
		before := c.Count()["saves"]
		b.StartTimer()
		got, err := c.Drain(b.Context(), time.Hour, nil)
		if err != nil || got != n {
			b.Fatalf("Drain = %d, %v", got, err)
		}
		saves += float64(c.Count()["saves"] - before)
		done += n
	}
	b.ReportMetric(done/b.Elapsed().Seconds(), "completions/s")
	b.ReportMetric(saves/done, "saves/completion")
}

// callTakes makes every call of the store take d.
func callTakes(d time.Duration, armed *atomic.Bool) faults.Decide {
	return func(faults.Call) faults.Fate {
		if !armed.Load() {
			return faults.Fate{}
		}
		return faults.Fate{Delay: d}
	}
}

// TestBacklogWithLatency holds DESIGN §12: with 10 ms a call, 20,000 completions of
// one workflow drain at 1,000 a second or more, the work of the processor apart.
func TestBacklogWithLatency(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const n = 20_000
		var armed atomic.Bool
		_, c := backlog(t, t.Context(), fanIn(n), callTakes(10*time.Millisecond, &armed))
		armed.Store(true)
		start := time.Now()
		if got, err := c.Drain(t.Context(), time.Hour, nil); err != nil || got != n {
			t.Fatalf("Drain = %d, %v", got, err)
		}
		took := time.Since(start)
		t.Logf("%d completions in %v of virtual time, %d saves", n, took, c.Count()["saves"])
		if rate := n / took.Seconds(); rate < 1000 {
			t.Errorf("%.0f completions a second, want 1,000", rate)
		}
	})
}

// TestLatencyOfOneCompletion holds DESIGN §12: alone, a completion needs at most
// three calls in a row and 20 ms until its last dependent is sent.
func TestLatencyOfOneCompletion(t *testing.T) {
	t.Parallel()
	var armed atomic.Bool
	serving(t, []faults.Decide{callTakes(10*time.Millisecond, &armed)}, func(t *testing.T, w *testkit.World, c *testkit.Node) {
		mustSubmit(t, c, "w", diamond())
		w.Take(t.Context())
		time.Sleep(time.Minute + offBeat)
		armed.Store(true)
		time.Sleep(10 * time.Second)
		report(t, w, "w", "A")
		start := time.Now()
		for w.Take(t.Context()) == 0 && time.Since(start) < time.Minute {
			time.Sleep(time.Millisecond)
		}
		if took := time.Since(start); took > 50*time.Millisecond || w.Taken["w/B#1"]+w.Taken["w/C#1"] != 2 {
			t.Errorf("after %v, want at most 50ms, these were sent: %v", took, w.Taken)
		}
	})
}

// TestHugeFanOutStopsAtTheDeadline sends 12,612 tasks through a queue that takes a
// second a call: sends stop in time, a wake goes on, each is sent once.
func TestHugeFanOutStopsAtTheDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const n = 12_612
		d := fanOut(n)
		ctx := t.Context()
		w := onMemory(t, memory.Options{})
		w.Scheduler = sched.Real{}
		w.Options.Parallel = 4
		w.Know(d)
		c := w.Start("c", func(c faults.Call) faults.Fate {
			if c.Op == "Queue.Send" && c.Key == "cpu" {
				return faults.Fate{Delay: time.Second}
			}
			return faults.Fate{}
		})
		mustSubmit(t, c, "w", d)
		stop := serve(t, c)
		report(t, w, "w", "root")
		for range 30 {
			time.Sleep(10 * time.Second)
			w.Take(ctx)
		}
		stop()
		if len(w.Taken) != n+1 {
			t.Errorf("%d of %d tasks were sent", len(w.Taken), n+1)
		}
		for attempt, times := range w.Taken {
			if times != 1 {
				t.Errorf("%s was sent %d times", attempt, times)
			}
		}
		if got := c.Count(); got["wakes"] == 0 || got["released"] != 0 {
			t.Errorf("%d wakes, %d messages given back; want the rest left to wakes", got["wakes"], got["released"])
		}
	})
}
