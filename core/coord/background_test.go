package coord_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"jobq/core/dag"
	"jobq/core/fault"
	"jobq/core/msg"
	"jobq/core/sched"
	"jobq/internal/testkit"
	"jobq/store/memory"
	"jobq/store/wrap/faults"
)

// A store that asks for a pause gets it, also from what is stored in the background.
func TestMarksAndRowsHonourThePauseThatAStoreAsksFor(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"States.Save", "Index.Project"} {
		t.Run(op, func(t *testing.T) {
			t.Parallel()
			var down atomic.Bool
			var asked atomic.Int32
			plan := func(c faults.Call) faults.Fate {
				if !down.Load() || c.Op != op {
					return faults.Fate{}
				}
				asked.Add(1)
				return faults.Fate{Before: fault.New(fault.Throttled, "busy").WithRetryAfter(30 * time.Second)}
			}
			serving(t, []faults.Decide{plan}, func(t *testing.T, w *testkit.World, c *testkit.Node) {
				mustSubmit(t, c, "w", diamond())
				w.Take(t.Context())
				report(t, w, "w", "A")
				time.Sleep(500 * time.Millisecond) // B and C are sent, their marks are not stored
				down.Store(true)
				time.Sleep(2 * time.Minute)
				if got := asked.Load(); got == 0 || got > 8 {
					t.Errorf("%s was tried %d times in two minutes, though it asked for pauses of 30 s", op, got)
				}
				down.Store(false)
				time.Sleep(31 * time.Second)
				if row, err := w.Store.Index.Get(t.Context(), "w"); err != nil || row.Counts.Running != 2 {
					t.Errorf("row = %+v, %v; want B and C to be running", row, err)
				}
			})
		})
	}
}

// hangingTable keeps the calls of the index that are made while down is set.
func hangingTable(down *atomic.Bool) faults.Decide {
	return func(c faults.Call) faults.Fate {
		if down.Load() && strings.HasPrefix(c.Op, "Index.") {
			return faults.Fate{Delay: time.Hour}
		}
		return faults.Fate{}
	}
}

// The rows are derived: a table that hangs must not hold up the steps of a workflow.
func TestATableThatHangsDoesNotHoldUpSteps(t *testing.T) {
	t.Parallel()
	var down atomic.Bool
	synctest.Test(t, func(t *testing.T) {
		w := onMemory(t, memory.Options{})
		w.Scheduler = sched.Real{}
		d := chain()
		w.Know(d)
		c := w.Start("c", hangingTable(&down))
		mustSubmit(t, c, "w", d)
		stop := serve(t, c)
		time.Sleep(5 * time.Second)
		down.Store(true)
		if took := throughChain(t, w); took > 10*time.Second {
			t.Errorf("nine steps took %v while the table hung", took)
		}
		down.Store(false)
		time.Sleep(time.Minute)
		if row, err := w.Store.Index.Get(t.Context(), "w"); err != nil || row.Status != "completed" {
			t.Errorf("row = %+v, %v; want completed", row, err)
		}
		stop()
	})
}

// Nor is it asked at every step because the workflow became due earlier than its row
// says.
func TestATableThatHangsDoesNotHoldUpStepsBesideABackOff(t *testing.T) {
	t.Parallel()
	var down atomic.Bool
	synctest.Test(t, func(t *testing.T) {
		w := onMemory(t, memory.Options{})
		w.Scheduler = sched.Real{}
		d := chain()
		d.Tasks = append(d.Tasks, graph("F").Tasks...)
		w.Know(d)
		w.Outcome = func(m msg.Task) msg.Completion {
			return msg.Completion{Success: m.Name != "F", Reason: msg.Cancelled}
		}
		c := w.Start("c", hangingTable(&down))
		mustSubmit(t, c, "w", d)
		stop := serve(t, c)
		time.Sleep(5 * time.Second)
		down.Store(true)
		if took := throughChain(t, w); took > 8*time.Second {
			t.Errorf("nine steps took %v while the table hung", took)
		}
		down.Store(false)
		stop()
	})
}

// The event log is for people: one that hangs must not hold up the steps of a
// workflow.
func TestAnEventLogThatHangsDoesNotHoldUpSteps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := onMemory(t, memory.Options{})
		w.Scheduler = sched.Real{}
		d := chain()
		w.Know(d)
		c := w.Start("c", at("Events.Append", time.Hour))
		mustSubmit(t, c, "w", d)
		stop := serve(t, c)
		if took := throughChain(t, w); took > 10*time.Second {
			t.Errorf("nine steps took %v while the event log hung", took)
		}
		if got := c.Count()["released"]; got > 0 {
			t.Errorf("%d messages were given back", got)
		}
		stop()
	})
}

// The marks of a workflow whose saves hang do not keep those of others waiting.
func TestMarksOfOneDoNotWaitForThoseOfAnother(t *testing.T) {
	t.Parallel()
	var armed atomic.Bool
	plan := func(c faults.Call) faults.Fate {
		if armed.Load() {
			return slowSaves("slow", time.Hour)(c)
		}
		return faults.Fate{}
	}
	serving(t, []faults.Decide{plan}, func(t *testing.T, w *testkit.World, c *testkit.Node) {
		for _, wf := range []string{"slow", "w"} {
			mustSubmit(t, c, wf, diamond())
		}
		time.Sleep(10 * time.Second)
		report(t, w, "slow", "A")
		time.Sleep(100 * time.Millisecond)
		armed.Store(true)
		time.Sleep(1900 * time.Millisecond)
		report(t, w, "w", "A")
		time.Sleep(5 * time.Second)
		expect(t, w, "five seconds after the sends", "w running   A:completed B:running C:running D:pending")
		armed.Store(false)
	})
}

// A table that asks for a long pause is no reason for the marks of sends to wait:
// they are stored within five seconds.
func TestMarksDoNotWaitForTheTable(t *testing.T) {
	t.Parallel()
	var down atomic.Bool
	plan := func(c faults.Call) faults.Fate {
		if down.Load() && c.Op == "Index.Project" {
			return faults.Fate{Before: fault.New(fault.Throttled, "busy").WithRetryAfter(time.Minute)}
		}
		return faults.Fate{}
	}
	serving(t, []faults.Decide{plan}, func(t *testing.T, w *testkit.World, c *testkit.Node) {
		mustSubmit(t, c, "w", diamond())
		down.Store(true)
		report(t, w, "w", "A")
		// By then the rows were tried again, in the background.
		time.Sleep(70*time.Second + offBeat)
		report(t, w, "w", "B")
		report(t, w, "w", "C")
		time.Sleep(5500 * time.Millisecond)
		expect(t, w, "five seconds after D was sent", "w running   A:completed B:completed C:completed D:running")
	})
}

// Nor do the marks of what is sent while the rows are just being tried again.
func TestMarksThatComeWithTheRowsDoNotWaitForTheTable(t *testing.T) {
	t.Parallel()
	var tried atomic.Int32
	var down atomic.Bool
	plan := func(c faults.Call) faults.Fate {
		if !down.Load() || c.Op != "Index.Project" {
			return faults.Fate{}
		}
		tried.Add(1)
		return faults.Fate{Delay: 1500 * time.Millisecond, Before: fault.New(fault.Throttled, "busy").WithRetryAfter(time.Minute)}
	}
	serving(t, []faults.Decide{plan}, func(t *testing.T, w *testkit.World, c *testkit.Node) {
		mustSubmit(t, c, "w", diamond())
		down.Store(true)
		report(t, w, "w", "A")
		for tried.Load() < 2 { // with the report, and in the background
			time.Sleep(10 * time.Millisecond)
		}
		report(t, w, "w", "B")
		report(t, w, "w", "C")
		time.Sleep(5500 * time.Millisecond)
		expect(t, w, "five seconds after D was sent", "w running   A:completed B:completed C:completed D:running")
	})
}

// A table that is slow but answers gets the rows of a workflow that another process
// wrote before.
func TestASlowTableGetsTheRowsOfAnotherProcess(t *testing.T) {
	t.Parallel()
	plan := func(c faults.Call) faults.Fate {
		if strings.HasPrefix(c.Op, "Index.") {
			return faults.Fate{Delay: 900 * time.Millisecond}
		}
		return faults.Fate{}
	}
	serving(t, []faults.Decide{plan}, func(t *testing.T, w *testkit.World, _ *testkit.Node) {
		mustSubmit(t, w.Start("other"), "w", graph("A"))
		report(t, w, "w", "A")
		time.Sleep(20 * time.Second)
		if row, err := w.Store.Index.Get(t.Context(), "w"); err != nil || row.Status != "completed" {
			t.Errorf("row = %+v, %v; want completed", row, err)
		}
		if due, err := w.Store.Index.DueBefore(t.Context(), time.Now().Add(time.Hour), 10); err != nil || len(due) > 0 {
			t.Errorf("due = %+v, %v; want none of a workflow that ended", due, err)
		}
	})
}

// chain returns the tasks T0 to T9, each behind the one before.
func chain() *dag.Definition {
	lines := []string{"T0"}
	for i := range 9 {
		lines = append(lines, fmt.Sprintf("T%d < T%d", i+1, i))
	}
	return graph(lines...)
}

// throughChain completes what is sent until the last task of a chain in workflow w
// is, and returns how long that took.
func throughChain(t *testing.T, w *testkit.World) time.Duration {
	t.Helper()
	begun := time.Now()
	for w.Taken["w/T9#1"] == 0 && time.Since(begun) < 10*time.Minute {
		if w.Take(t.Context()) == 0 {
			time.Sleep(100 * time.Millisecond)
		}
		w.Finish(t.Context())
	}
	return time.Since(begun)
}
