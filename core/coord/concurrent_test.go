package coord_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"jobq/core/coord"
	"jobq/core/dag"
	"jobq/core/fault"
	"jobq/core/sched"
	"jobq/internal/testkit"
	"jobq/store/memory"
	"jobq/store/wrap/faults"
)

// fanIn returns a definition of n tasks and one that needs them all.
func fanIn(n int) *dag.Definition {
	var lines []string
	join := "join <"
	for i := range n {
		lines = append(lines, fmt.Sprintf("p%04d", i))
		join += fmt.Sprintf(" p%04d", i)
	}
	return graph(append(lines, join)...)
}

// serve runs coordinators side by side until stop is called.
func serve(t *testing.T, nodes ...*testkit.Node) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for _, n := range nodes {
		wg.Go(func() {
			if err := n.Serve(ctx); err != nil {
				t.Errorf("Serve = %v", err)
			}
		})
	}
	return func() { cancel(); wg.Wait() }
}

// TestTwoCoordinatorsShareAFanIn has two coordinators, and then three with slow
// stores, drain one inbox (C09): all increments arrive, the join is sent once.
func TestTwoCoordinatorsShareAFanIn(t *testing.T) {
	t.Parallel()
	for name, delays := range map[string][]time.Duration{
		"equal":    {time.Millisecond, time.Millisecond},
		"one slow": {time.Millisecond, 20 * time.Millisecond},
		"all slow": {7 * time.Millisecond, 20 * time.Millisecond, 90 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const parents = 1100
				ctx := t.Context()
				d := fanIn(parents)
				w := onMemory(t, memory.Options{})
				w.Scheduler = sched.Real{}
				// None may take a whole burst before the others have run.
				w.Options.BatchSize, w.Options.MaxReceives = 5, 1
				w.Know(d)
				var nodes []*testkit.Node
				for i, delay := range delays {
					nodes = append(nodes, w.Start(fmt.Sprintf("c%d", i), func(faults.Call) faults.Fate { return faults.Fate{Delay: delay} }))
				}
				if _, err := nodes[0].Submit(ctx, coord.Submission{ID: "w", Definition: d}); err != nil {
					t.Fatal(err)
				}
				stop := serve(t, nodes...)
				// Reports come in bursts, so that both have work at any time.
				w.Take(ctx)
				for w.FinishSome(ctx, 37) > 0 {
					time.Sleep(15 * time.Millisecond)
				}
				for range 600 {
					time.Sleep(time.Second)
					w.Take(ctx)
					w.Finish(ctx)
					if s, err := w.View().Status(ctx, "w"); err != nil || ended(s) {
						break
					}
				}
				time.Sleep(2 * time.Minute)
				stop()
				s, err := w.View().Status(ctx, "w")
				if err != nil || s.Counts.Completed != parents+1 {
					t.Errorf("%d of %d tasks completed, %v", s.Counts.Completed, parents+1, err)
				}
				for attempt, n := range w.Taken {
					if n != 1 {
						t.Errorf("%s was sent %d times", attempt, n)
					}
				}
				if err := w.Leftovers(ctx, "w"); err != nil {
					t.Errorf("at rest: %v", err)
				}
				for i, n := range nodes {
					if got := n.Count()["saves"]; got == 0 {
						t.Errorf("coordinator %d saved nothing: the test shows no race", i)
					}
				}
			})
		})
	}
}

// TestCommandsRaceABusyCoordinator cancels and retries while completions pour in.
func TestCommandsRaceABusyCoordinator(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		d := fanIn(300)
		w := onMemory(t, memory.Options{})
		w.Scheduler = sched.Real{}
		w.Know(d)
		slow := func(faults.Call) faults.Fate { return faults.Fate{Delay: 5 * time.Millisecond} }
		busy, other := w.Start("busy", slow), w.Start("other", slow)
		if _, err := busy.Submit(ctx, coord.Submission{ID: "w", Definition: d}); err != nil {
			t.Fatal(err)
		}
		stop := serve(t, busy)
		w.Take(ctx)
		for i := 0; w.FinishSome(ctx, 10) > 0; i++ {
			time.Sleep(5 * time.Millisecond)
			if i == 12 {
				if _, err := other.Cancel(ctx, "w", coord.Command{ID: "c"}); err != nil {
					t.Errorf("Cancel = %v", err)
				}
			}
		}
		time.Sleep(time.Minute)
		if s, err := w.View().Status(ctx, "w"); err != nil || s.Status != "cancelled" || s.Counts.Open() != 0 {
			t.Errorf("after the cancel: %+v, %v", s, err)
		}
		if _, err := other.Retry(ctx, "w", coord.Command{ID: "r"}); err != nil {
			t.Errorf("Retry = %v", err)
		}
		for range 60 {
			w.Take(ctx)
			w.Finish(ctx)
			time.Sleep(time.Second)
		}
		stop()
		if s, err := w.View().Status(ctx, "w"); err != nil || s.Status != "completed" {
			t.Errorf("after the retry: %+v, %v", s, err)
		}
		for attempt, n := range w.Taken {
			if n != 1 {
				t.Errorf("%s was sent %d times", attempt, n)
			}
		}
		if err := w.Leftovers(ctx, "w"); err != nil {
			t.Errorf("at rest: %v", err)
		}
	})
}

// TestOneProcessDoesNotRaceItself has one coordinator called from many sides at
// once, as a function host does: nothing is sent twice.
func TestOneProcessDoesNotRaceItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		var lines []string
		for i := range 200 {
			lines = append(lines, fmt.Sprintf("p%03d", i), fmt.Sprintf("q%03d < p%03d", i, i))
		}
		d := graph(lines...)
		w := onMemory(t, memory.Options{})
		w.Scheduler = sched.Real{}
		w.Know(d)
		c := w.Start("host", func(c faults.Call) faults.Fate {
			if c.Op == "Queue.Send" && c.Key == "cpu" {
				return faults.Fate{Delay: 40 * time.Millisecond}
			}
			return faults.Fate{Delay: time.Duration(c.N%7) * time.Millisecond}
		})
		if _, err := c.Submit(ctx, coord.Submission{ID: "w", Definition: d}); err != nil {
			t.Fatal(err)
		}
		w.Take(ctx)
		for w.FinishSome(ctx, 20) > 0 {
			var wg sync.WaitGroup
			for i := range 6 {
				wg.Go(func() {
					var err error
					switch i {
					case 0:
						time.Sleep(25 * time.Millisecond) // while others are sending
						err = c.Wake(ctx, "w")
					case 1:
						_, err = c.Submit(ctx, coord.Submission{ID: "w", Definition: d})
					default:
						_, err = c.Drain(ctx, time.Minute, nil)
					}
					if err != nil && !fault.Is(err, fault.Conflict) {
						t.Errorf("call %d: %v", i, err)
					}
				})
			}
			wg.Wait()
		}
		for range 20 {
			time.Sleep(time.Second)
			if _, err := c.Drain(ctx, time.Minute, nil); err != nil {
				t.Fatal(err)
			}
			w.Take(ctx)
			w.Finish(ctx)
		}
		if s, err := c.Status(ctx, "w"); err != nil || s.Status != "completed" {
			t.Errorf("Status = %+v, %v", s, err)
		}
		var twice []string
		for attempt, n := range w.Taken {
			if n != 1 {
				twice = append(twice, fmt.Sprintf("%s:%d", attempt, n))
			}
		}
		slices.Sort(twice)
		if len(twice) > 0 {
			t.Errorf("sent more than once: %s", strings.Join(twice, " "))
		}
	})
}
