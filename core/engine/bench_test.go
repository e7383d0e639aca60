package engine_test

import (
	"fmt"
	"testing"
	"time"

	"jobq/core/dag"
	"jobq/core/engine"
)

// shapes are graphs of n tasks with at most four dependencies a task, so that
// the cost of a change does not hide that of an edge.
var shapes = map[string]func(n int) *dag.Definition{
	"fan-out": func(n int) *dag.Definition { return shaped(n, func(i int) []int { return []int{0}[:min(i, 1)] }) },
	"chain": func(n int) *dag.Definition {
		return shaped(n, func(i int) []int { return []int{i - 1}[:min(i, 1)] })
	},
	"layered": func(n int) *dag.Definition {
		const width = 50
		return shaped(n, func(i int) []int {
			if i < width {
				return nil
			}
			above := (i/width - 1) * width
			return []int{above + i%width, above + (i+1)%width, above + (i+7)%width, above + (i+20)%width}
		})
	},
	"fan-in": func(n int) *dag.Definition {
		return shaped(n, func(i int) []int {
			if i < n-1 {
				return nil
			}
			all := make([]int, n-1)
			for p := range all {
				all[p] = p
			}
			return all
		})
	},
}

func shaped(n int, parents func(i int) []int) *dag.Definition {
	d := &dag.Definition{Name: "shaped", DefaultQueue: "q", Tasks: make([]dag.Task, n)}
	for i := range d.Tasks {
		d.Tasks[i].Name = fmt.Sprintf("task-%d", i)
		for _, p := range parents(i) {
			d.Tasks[i].DependsOn = append(d.Tasks[i].DependsOn, fmt.Sprintf("task-%d", p))
		}
	}
	return d
}

// runAll steps a whole workflow, dispatch and completion of every task, and
// returns how many statuses changed.
func runAll(tb testing.TB, p *engine.Plan) (changes int) {
	r := newRun(tb, p, engine.Begin(p, "w1", "hash", nil, epoch))
	step := func(ev engine.Event) []engine.Attempt {
		out, err := r.Step(ev, epoch)
		if err != nil {
			tb.Fatal(err)
		}
		changes += len(out.Changes)
		return out.Send
	}
	todo := step(engine.Activated{})
	for len(todo) > 0 {
		a := todo[0]
		todo = todo[1:]
		step(engine.Dispatched{Task: a.Task, Attempt: a.Attempt})
		todo = append(todo, step(engine.Completion{Task: p.Name(a.Task), Attempt: a.Attempt, Success: true})...)
	}
	if !r.State().Status.Ended() {
		tb.Fatalf("the workflow is %s", r.State().Status)
	}
	return changes
}

// BenchmarkChange gives the cost of one status change, loading the state
// included. DESIGN §12 allows 10 µs at every size, and at 100,000 tasks four
// times that at 100.
func BenchmarkChange(b *testing.B) {
	for _, shape := range []string{"fan-out", "chain", "layered", "fan-in"} {
		for _, n := range []int{100, 10_000, 100_000} {
			b.Run(fmt.Sprintf("%s/%d", shape, n), func(b *testing.B) {
				p := newPlan(b, shapes[shape](n))
				changes := 0
				start := time.Now()
				for b.Loop() {
					changes += runAll(b, p)
				}
				b.ReportMetric(float64(time.Since(start).Nanoseconds())/float64(changes), "ns/change")
			})
		}
	}
}

// TestChangeIsCheapAtEverySize has a bound of four times what DESIGN §12 wants,
// so that a busy machine does not fail it, and takes the best of several runs; work
// that grows with the number of tasks would exceed it many times.
func TestChangeIsCheapAtEverySize(t *testing.T) {
	t.Parallel()
	if raceDetector {
		t.Skip("not a measure under the race detector")
	}
	const limit = 40 * time.Microsecond
	for shape, define := range shapes {
		p := newPlan(t, define(50_000))
		best := time.Hour
		for began := time.Now(); best > limit && time.Since(began) < 20*time.Second; {
			start := time.Now()
			changes := runAll(t, p)
			best = min(best, time.Since(start)/time.Duration(changes))
		}
		t.Logf("%s: %s a change", shape, best)
		if best > limit {
			t.Errorf("%s: %s a change, want at most %s", shape, best, limit)
		}
	}
}
