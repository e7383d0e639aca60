package coord_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"jobq/core/coord"
	"jobq/core/dag"
	"jobq/core/fault"
	"jobq/core/msg"
	"jobq/core/sched"
	"jobq/internal/testkit"
	"jobq/store/memory"
	"jobq/store/wrap/faults"
)

// serving runs f against one coordinator that serves, on virtual time.
func serving(t *testing.T, plans []faults.Decide, f func(t *testing.T, w *testkit.World, c *testkit.Node)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := onMemory(t, memory.Options{})
		w.Scheduler = sched.Real{}
		w.Know(diamond())
		c := w.Start("c", plans...)
		stop := serve(t, c)
		f(t, w, c)
		stop()
	})
}

func mustSubmit(t *testing.T, c *testkit.Node, wf string, d *dag.Definition) {
	t.Helper()
	if _, err := c.Submit(t.Context(), coord.Submission{ID: wf, Definition: d}); err != nil {
		t.Fatalf("Submit(%s) = %v", wf, err)
	}
}

func report(t *testing.T, w *testkit.World, wf, task string) {
	t.Helper()
	w.Report(t.Context(), msg.Completion{Workflow: wf, Task: task, Attempt: 1, Success: true})
}

func expect(t *testing.T, w *testkit.World, when, want string) {
	t.Helper()
	wf, _, _ := strings.Cut(want, " ")
	if got := w.Status(t.Context(), wf); got != want {
		t.Errorf("%s:\ngot  %s\nwant %s", when, got, want)
	}
}

// slowSaves makes the saves of one workflow take their time.
func slowSaves(wf string, d time.Duration) faults.Decide {
	return func(c faults.Call) faults.Fate {
		if c.Op == "States.Save" && c.Key == wf {
			return faults.Fate{Delay: d}
		}
		return faults.Fate{}
	}
}

// offBeat is a pause after which a test shares no instant with what a coordinator does
// every second, or every quarter of one, from the start of Serve on.
const offBeat = 1100 * time.Millisecond

func TestASlowWorkflowHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	var armed atomic.Bool
	plan := func(c faults.Call) faults.Fate {
		if !armed.Load() {
			return faults.Fate{}
		}
		return slowSaves("slow", 12*time.Second)(c)
	}
	serving(t, []faults.Decide{plan}, func(t *testing.T, w *testkit.World, c *testkit.Node) {
		mustSubmit(t, c, "slow", diamond())
		mustSubmit(t, c, "fast", diamond())
		armed.Store(true)
		report(t, w, "slow", "A")
		report(t, w, "fast", "A")
		time.Sleep(offBeat)
		// The first round is still at the slow workflow.
		report(t, w, "fast", "B")
		report(t, w, "slow", "A")
		time.Sleep(offBeat)
		expect(t, w, "after two seconds", "fast running   A:completed B:completed C:running D:pending")
		report(t, w, "fast", "C")
		time.Sleep(500 * time.Millisecond)
		expect(t, w, "half a second after the last report", "fast running   A:completed B:completed C:completed D:ready")
		time.Sleep(5 * time.Second)
		expect(t, w, "marks are stored within five seconds", "fast running   A:completed B:completed C:completed D:running")
		expect(t, w, "meanwhile", "slow running   A:running B:pending C:pending D:pending")
		time.Sleep(25 * time.Second)
		expect(t, w, "at last", "slow running   A:completed B:running C:running D:pending")
	})
}

func TestMarksAreStoredInTime(t *testing.T) {
	t.Parallel()
	serving(t, nil, func(t *testing.T, w *testkit.World, c *testkit.Node) {
		mustSubmit(t, c, "w", diamond())
		report(t, w, "w", "A")
		synctest.Wait()
		expect(t, w, "at once", "w running   A:completed B:ready C:ready D:pending")
		time.Sleep(2500 * time.Millisecond)
		expect(t, w, "soon", "w running   A:completed B:running C:running D:pending")
		saves := c.Count()["saves"]
		time.Sleep(10 * time.Minute)
		if got := c.Count()["saves"]; got != saves {
			t.Errorf("%d more saves in ten quiet minutes", got-saves)
		}
	})
}

func TestWakesGrowRare(t *testing.T) {
	t.Parallel()
	var down atomic.Bool
	plan := func(c faults.Call) faults.Fate {
		if down.Load() && c.Op == "Queue.Send" && c.Key == "cpu" {
			return faults.Fate{Before: fault.New(fault.Unavailable, "down")}
		}
		return faults.Fate{}
	}
	serving(t, []faults.Decide{plan}, func(t *testing.T, w *testkit.World, c *testkit.Node) {
		mustSubmit(t, c, "w", diamond())
		down.Store(true)
		report(t, w, "w", "A")
		time.Sleep(time.Hour + offBeat)
		// 1 + 2 + 4 + ... + 256 s, then every five minutes.
		if got := c.Count()["wakes"]; got < 15 || got > 20 {
			t.Errorf("%d wakes in an hour, want about 20", got)
		}
		down.Store(false)
		time.Sleep(6 * time.Minute)
		w.Take(t.Context())
		if w.Taken["w/B#1"] != 1 || w.Taken["w/C#1"] != 1 {
			t.Errorf("after the outage %v was sent, want B and C once", w.Taken)
		}
	})
}

func TestStoppingFinishesTheRound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := onMemory(t, memory.Options{})
		w.Scheduler = sched.Real{}
		w.Options.Holder = "c"
		w.Know(diamond())
		var slow atomic.Bool
		c := w.Start("c", func(call faults.Call) faults.Fate {
			if slow.Load() && call.Op == "States.Save" {
				return faults.Fate{Delay: 3 * time.Second}
			}
			return faults.Fate{}
		})
		mustSubmit(t, c, "w", diamond())
		stop := serve(t, c)
		time.Sleep(offBeat)
		slow.Store(true)
		report(t, w, "w", "A")
		time.Sleep(time.Second)
		stop()
		expect(t, w, "after the stop", "w running   A:completed B:running C:running D:pending")
		if got := w.Queue(t.Context(), w.Store.Queues.Queue(testkit.Inbox)); got != "-" {
			t.Errorf("the inbox holds %s", got)
		}
		if holder, err := w.Store.Leases.Holder(t.Context(), "_coordinator.lock"); err != nil || holder != "" {
			t.Errorf("the lease is held by %q, %v", holder, err)
		}
	})
}

func TestTheLeaseHasOneHolder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		w := onMemory(t, memory.Options{})
		w.Scheduler = sched.Real{}
		w.Know(diamond())
		w.Options.Holder = "one"
		one := w.Start("one")
		w.Options.Holder = "two"
		two := w.Start("two")
		stopOne, stopTwo := serve(t, one), serve(t, two)
		mustSubmit(t, one, "w", diamond())
		time.Sleep(10*time.Minute + offBeat) // far longer than a lease
		report(t, w, "w", "A")
		time.Sleep(5 * time.Second)
		drained := map[string]int64{"one": one.Count()["received"], "two": two.Count()["received"]}
		if drained["one"]+drained["two"] != 1 {
			t.Errorf("received: %v, want one message in all", drained)
		}
		holder, err := w.Store.Leases.Holder(ctx, "_coordinator.lock")
		if err != nil || drained[holder] != 1 {
			t.Errorf("the lease is held by %q, %v; received: %v", holder, err, drained)
		}
		// Without its holder the other goes on.
		stops := map[string]func(){"one": stopOne, "two": stopTwo}
		stops[holder]()
		delete(stops, holder)
		time.Sleep(20 * time.Second)
		report(t, w, "w", "B")
		time.Sleep(5 * time.Second)
		expect(t, w, "after the take-over", "w running   A:completed B:completed C:running D:pending")
		for _, stop := range stops {
			stop()
		}
	})
}

// A process that never comes back leaves its messages to time, its claims and
// due rows to the sweep of another.
func TestServeRepairsWhatAnotherLeft(t *testing.T) {
	t.Parallel()
	serving(t, nil, func(t *testing.T, w *testkit.World, c *testkit.Node) {
		dead := w.Start("dead", faults.StopBefore(6)) // between the first save and the first send
		if _, err := dead.Submit(t.Context(), coord.Submission{ID: "w", Definition: diamond()}); err == nil {
			t.Fatal("the submission did not stop")
		}
		expect(t, w, "at first", "w pending   A:ready B:pending C:pending D:pending")
		time.Sleep(3*time.Minute + offBeat)
		expect(t, w, "after a sweep", "w running   A:running B:pending C:pending D:pending")
		if n := c.Count()["repairs_claim"]; n != 1 {
			t.Errorf("%d claims were repaired, want 1", n)
		}
	})
}

func failed(task string) msg.Completion {
	return msg.Completion{Workflow: "w", Task: task, Attempt: 1, Reason: msg.Exited, Error: "exit code 1"}
}

// While wakes help, the next one comes soon: only those in vain grow rare.
func TestWakesThatHelpStayFrequent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const n = 10_000
		d := fanOut(n)
		w := onMemory(t, memory.Options{})
		w.Scheduler = sched.Real{}
		w.Options.Parallel = 1
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
		// 100 s of sends, and a few seconds after every tenth of them.
		time.Sleep(140 * time.Second)
		w.Take(t.Context())
		stop()
		if len(w.Taken) != n+1 {
			t.Errorf("%d of %d tasks were sent", len(w.Taken), n+1)
		}
	})
}

// An inbox that can be made but not read, as one that is just being deleted, is not
// asked for as fast as the store answers.
func TestAnInboxThatIsNeverThereIsNotAskedAllTheTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := onMemory(t, memory.Options{})
		w.Scheduler = sched.Real{}
		const most = 10_000
		asked := 0
		c := w.Start("c", func(c faults.Call) faults.Fate {
			if c.Op == "Queue.Receive" {
				asked++
			}
			if c.Op == "Queue.Receive" && asked < most {
				return faults.Fate{Before: fault.New(fault.NotFound, "not there yet")}
			}
			return faults.Fate{}
		})
		stop := serve(t, c)
		time.Sleep(time.Minute)
		stop()
		if asked > 500 {
			t.Errorf("the inbox was asked %d times in a minute", asked)
		}
	})
}
