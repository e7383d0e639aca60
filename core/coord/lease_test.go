package coord_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"jobq/core/sched"
	"jobq/internal/testkit"
	"jobq/store/memory"
	"jobq/store/wrap/faults"
)

// TestALeaseWithoutAnAnswer has the store hang on one renewal: the marks of sends
// are stored in time all the same, and the next try comes before the lease ends.
func TestALeaseWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := onMemory(t, memory.Options{})
		w.Scheduler = sched.Real{}
		w.Options.Holder = "c"
		w.Know(diamond())
		var hang atomic.Bool
		c := w.Start("c", func(call faults.Call) faults.Fate {
			if call.Op == "Leases.Acquire" && hang.CompareAndSwap(true, false) {
				return faults.Fate{Delay: time.Hour}
			}
			return faults.Fate{}
		})
		mustSubmit(t, c, "w", diamond())
		stop := serve(t, c)
		time.Sleep(offBeat)
		hang.Store(true)
		for hang.Load() {
			time.Sleep(time.Second)
		}
		time.Sleep(500 * time.Millisecond)
		report(t, w, "w", "A")
		time.Sleep(5 * time.Second)
		expect(t, w, "five seconds after the sends", "w running   A:completed B:running C:running D:pending")
		for range 120 {
			time.Sleep(time.Second)
			holder, err := w.Store.Leases.Holder(t.Context(), "_coordinator.lock")
			if err != nil || holder != "c" {
				t.Fatalf("the lease is held by %q, %v", holder, err)
			}
		}
		stop()
		if got := w.Queue(t.Context(), w.Store.Queues.Queue(testkit.Inbox)); got != "-" {
			t.Errorf("the inbox holds %s", got)
		}
	})
}
