package coord_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"jobq/core/sched"
	"jobq/store/memory"
	"jobq/store/wrap/faults"
)

// TestARoundKeepsWithinTheLockOfItsQueue has an inbox that locks for less than it is
// asked to, and a task queue that hangs: what was applied is acknowledged in time.
func TestARoundKeepsWithinTheLockOfItsQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		props := memory.DefaultQueue()
		props.MaxLock, props.FixedLock = 10*time.Second, true
		w := onMemory(t, memory.Options{Queue: &props})
		w.Scheduler = sched.Real{}
		w.Know(diamond())
		var hangs atomic.Bool
		c := w.Start("c", func(call faults.Call) faults.Fate {
			if hangs.Load() && call.Op == "Queue.Send" && call.Key == "cpu" {
				return faults.Fate{Delay: time.Hour}
			}
			return faults.Fate{}
		})
		mustSubmit(t, c, "w", diamond())
		stop := serve(t, c)
		time.Sleep(offBeat)
		hangs.Store(true)
		report(t, w, "w", "A")
		time.Sleep(20 * time.Second)
		stop()
		expect(t, w, "then", "w running   A:completed B:ready C:ready D:pending")
		if n := c.Count()["repeats"]; n != 0 {
			t.Errorf("%d messages were delivered again after they had been applied", n)
		}
	})
}

// TestAMessageIsTimedFromItsArrival: one that comes at the end of a long receive has
// its whole time before it, also where the round is short.
func TestAMessageIsTimedFromItsArrival(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := onMemory(t, memory.Options{})
		w.Scheduler = sched.Real{}
		w.Options.Visibility = 4 * time.Second
		w.Know(diamond())
		c := w.Start("c")
		mustSubmit(t, c, "w", diamond())
		stop := serve(t, c)
		for _, task := range []string{"A", "B", "C", "D"} {
			time.Sleep(4700 * time.Millisecond)
			report(t, w, "w", task)
			time.Sleep(100 * time.Millisecond)
		}
		expect(t, w, "at once", "w completed   A:completed B:completed C:completed D:completed")
		stop()
	})
}
