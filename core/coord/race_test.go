package coord_test

import (
	"context"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"jobq/core/coord"
	"jobq/core/fault"
	"jobq/core/port"
	"jobq/core/sched"
	"jobq/internal/testkit"
	"jobq/store/memory"
	"jobq/store/wrap/faults"
)

// at delays the calls of one operation.
func at(op string, d time.Duration) faults.Decide {
	return func(c faults.Call) faults.Fate {
		if c.Op == op {
			return faults.Fate{Delay: d}
		}
		return faults.Fate{}
	}
}

// onTime runs f on virtual time with a diamond that was submitted as "w".
func onTime(t *testing.T, f func(ctx context.Context, w *testkit.World, client *testkit.Node)) {
	t.Helper()
	withSubmitted(t, "w", diamond(), f)
}

// Two coordinators that find the trace of one crash at the same time: one of them
// sends.
func TestOneOfTwoSendsForACrash(t *testing.T) {
	t.Parallel()
	onTime(t, func(ctx context.Context, w *testkit.World, _ *testkit.Node) {
		dead := w.Start("dead", func(c faults.Call) faults.Fate {
			return faults.Fate{Stop: c.Op == "Queue.Send"} // after the save
		})
		report(t, w, "w", "A")
		if _, err := dead.Drain(ctx, time.Minute, nil); err == nil {
			t.Fatal("the coordinator did not stop")
		}
		expect(t, w, "after the crash", "w running   A:completed B:ready C:ready D:pending")
		var wg sync.WaitGroup
		for _, name := range []string{"one", "two", "three"} {
			n := w.Start(name, faults.First(at("States.Save", 50*time.Millisecond), at("Queue.Send", 300*time.Millisecond)))
			wg.Go(func() {
				if err := n.Wake(ctx, "w"); err != nil {
					t.Errorf("Wake = %v", err)
				}
			})
		}
		wg.Wait()
		time.Sleep(5 * time.Second)
		if _, err := w.Start("last").Drain(ctx, time.Minute, nil); err != nil {
			t.Fatal(err)
		}
		w.Take(ctx)
		if w.Taken["w/B#1"] != 1 || w.Taken["w/C#1"] != 1 {
			t.Errorf("sent: %v, want B and C once", w.Taken)
		}
	})
}

// A cancel and a retry that run for the same epoch: the flag that workers poll says
// what the state says, although the loser wrote it last.
func TestTheFlagOfACancelIsNotWithdrawnByALoser(t *testing.T) {
	t.Parallel()
	onTime(t, func(ctx context.Context, w *testkit.World, client *testkit.Node) {
		report(t, w, "w", "A")
		if _, err := client.Drain(ctx, time.Minute, nil); err != nil {
			t.Fatal(err)
		}
		w.Outcome = nil
		w.Report(ctx, failed("B"))
		if _, err := client.Drain(ctx, time.Minute, nil); err != nil {
			t.Fatal(err)
		}
		// The cancel writes its flag at once and saves at 100 ms; the retry writes
		// at 50 ms and saves at 250 ms.
		canceller := w.Start("canceller", at("States.Save", 100*time.Millisecond))
		retrier := w.Start("retrier", faults.First(at("Index.Get", 50*time.Millisecond), at("States.Save", 200*time.Millisecond)))
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := canceller.Cancel(ctx, "w", coord.Command{ID: "c"}); err != nil {
				t.Errorf("Cancel = %v", err)
			}
		})
		wg.Go(func() {
			// Refused, or done after the cancel has ended everything.
			_, _ = retrier.Retry(ctx, "w", coord.Command{ID: "r"})
		})
		time.Sleep(180 * time.Millisecond)
		row, err := w.Store.Index.Get(ctx, "w")
		if err != nil || !row.Cancel.Requested {
			t.Errorf("the row says %+v after the cancel was saved, %v", row.Cancel, err)
		}
		wg.Wait()
	})
}

// The due row of a workflow that ended is removed late, by a process that is cut off
// right after: that of a retry that came in between stays.
func TestALateRemovalKeepsTheDueRowOfARetry(t *testing.T) {
	t.Parallel()
	onTime(t, func(ctx context.Context, w *testkit.World, client *testkit.Node) {
		removed := false
		slow := w.Start("slow", func(c faults.Call) faults.Fate {
			if removed {
				return faults.Fate{Before: fault.New(fault.Unavailable, "cut off")}
			}
			if removed = c.Op == "Index.DeleteDue"; removed {
				return faults.Fate{Delay: time.Second}
			}
			return faults.Fate{}
		})
		w.Report(ctx, failed("A"))
		var wg sync.WaitGroup
		wg.Go(func() {
			_, _ = slow.Drain(ctx, time.Minute, nil) // cut off
		})
		time.Sleep(300 * time.Millisecond)
		if _, err := client.Retry(ctx, "w", coord.Command{ID: "r"}); err != nil {
			t.Errorf("Retry = %v", err)
		}
		wg.Wait()
		due, err := w.Store.Index.DueBefore(ctx, time.Now().Add(time.Hour), 10)
		if err != nil || len(due) != 1 || due[0].Key != "w" {
			t.Errorf("due: %+v, %v, want the row of w", due, err)
		}
	})
}

// Messages that waited for a slow round until there was no time for them leave
// those that came later alone.
func TestOldMessagesDoNotTakeTheTimeOfNewOnes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := onMemory(t, memory.Options{})
		w.Scheduler = sched.Real{}
		three := graph("A", "B", "C")
		w.Know(three)
		mustSubmit(t, w.Start("client"), "w", three)
		slow := w.Start("slow", faults.First(once("States.Save", 14*time.Second), once("Queue.Acknowledge", 14*time.Second)))
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := slow.Serve(ctx); err != nil {
				t.Errorf("Serve = %v", err)
			}
		})
		report(t, w, "w", "A")
		time.Sleep(offBeat)
		report(t, w, "w", "B") // has waited for 27 s when its turn comes
		time.Sleep(24 * time.Second)
		report(t, w, "w", "C") // for 4 s
		time.Sleep(10 * time.Second)
		expect(t, w, "after the slow round", "w running   A:completed B:running C:completed")
		time.Sleep(30 * time.Second)
		expect(t, w, "once its lock has ended", "w completed   A:completed B:completed C:completed")
		stop()
		wg.Wait()
	})
}

// once delays the first call of one operation.
func once(op string, d time.Duration) faults.Decide {
	var met atomic.Bool
	return func(c faults.Call) faults.Fate {
		if c.Op == op && met.CompareAndSwap(false, true) {
			return faults.Fate{Delay: d}
		}
		return faults.Fate{}
	}
}

// A sweep that looks between a send and its mark leaves both to the coordinator
// that is at it.
func TestTheSweepDoesNotSendWhatIsAboutToBeMarked(t *testing.T) {
	t.Parallel()
	onTime(t, func(ctx context.Context, w *testkit.World, client *testkit.Node) {
		w.Take(ctx)
		report(t, w, "w", "A")
		serving, stop := context.WithCancel(ctx)
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := client.Serve(serving); err != nil {
				t.Errorf("Serve = %v", err)
			}
		})
		time.Sleep(600 * time.Millisecond)
		expect(t, w, "before the marks", "w running   A:completed B:ready C:ready D:pending")
		if err := w.Store.Index.PutDue(ctx, port.Due{Key: "w", Workflow: "w", DueAt: time.Now(), StateVersion: math.MaxInt64}); err != nil {
			t.Fatal(err)
		}
		if n, err := w.Start("sweeper").Sweep(ctx); n != 1 || err != nil {
			t.Errorf("Sweep = %d, %v, want one row", n, err)
		}
		stop()
		wg.Wait()
		w.Take(ctx)
		if w.Taken["w/B#1"] != 1 || w.Taken["w/C#1"] != 1 {
			t.Errorf("sent: %v, want B and C once", w.Taken)
		}
	})
}

// Who loses every race for the marks of a submission has been accepted all the
// same: nothing was refused, and the claim leads the sweep to the rest.
func TestALostRaceRefusesNoSubmission(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		w := onMemory(t, memory.Options{})
		w.Scheduler = sched.Real{}
		w.Know(diamond())
		loser := w.Start("loser", faults.Fail("States.Save", fault.Conflict, 10_000))
		if _, err := loser.Submit(ctx, coord.Submission{ID: "w", Definition: diamond()}); !fault.Is(err, fault.Unavailable) {
			t.Errorf("Submit = %v, want unavailable", err)
		}
		due, err := w.Store.Index.DueBefore(ctx, time.Now().Add(time.Hour), 10)
		if err != nil || len(due) == 0 || !strings.HasPrefix(due[0].Key, "w!submit-") {
			t.Errorf("due: %+v, %v, want the claim", due, err)
		}
		mustSubmit(t, w.Start("another"), "w", diamond())
	})
}
