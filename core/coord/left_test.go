package coord_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"jobq/core/coord"
	"jobq/core/dag"
	"jobq/core/fault"
	"jobq/core/msg"
	"jobq/core/port"
	"jobq/core/sched"
	"jobq/core/state"
	"jobq/internal/testkit"
	"jobq/store/memory"
	"jobq/store/wrap/faults"
)

// withPair runs f on virtual time with two tasks in a chain that were submitted as
// "pair".
func withPair(t *testing.T, f func(ctx context.Context, w *testkit.World, client *testkit.Node)) {
	t.Helper()
	withSubmitted(t, "pair", graph("A", "B < A"), f)
}

// withSubmitted runs f on virtual time with d submitted as wf.
func withSubmitted(t *testing.T, wf string, d *dag.Definition, f func(ctx context.Context, w *testkit.World, client *testkit.Node)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := onMemory(t, memory.Options{})
		w.Scheduler = sched.Real{}
		w.Know(d)
		client := w.Start("client")
		mustSubmit(t, client, wf, d)
		f(t.Context(), w, client)
	})
}

// submitIn submits with the context of a bubble.
func submitIn(ctx context.Context, t *testing.T, n *testkit.Node, wf string, d *dag.Definition) {
	t.Helper()
	if _, err := n.Submit(ctx, coord.Submission{ID: wf, Definition: d}); err != nil {
		t.Fatal(err)
	}
}

// A caller who gives up a cancel that the store keeps from its save may have it carried
// out by a second call, and go on. Nothing of the first one comes later.
func TestAnInterruptedCancelDoesNotStopTheRetryAfterIt(t *testing.T) {
	t.Parallel()
	withPair(t, func(ctx context.Context, w *testkit.World, client *testkit.Node) {
		slow := w.Start("slow", once("Index.Get", 5*time.Second))
		patient, stop := context.WithTimeout(ctx, 2*time.Second)
		defer stop()
		if a, err := slow.Cancel(patient, "pair", coord.Command{}); err == nil {
			t.Fatalf("the cancel was not interrupted: %+v", a)
		}
		if _, err := client.Cancel(ctx, "pair", coord.Command{}); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Retry(ctx, "pair", coord.Command{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(61 * time.Second)
		if _, err := client.Sweep(ctx); err != nil {
			t.Fatal(err)
		}
		expect(t, w, "a minute after the retry", "pair running   A:running B:pending")
	})
}

// A cancel that loses against the end of its workflow takes its request back: it would
// stand through the next retry, whose epoch it names.
func TestTheRequestOfARefusedCancelDoesNotStand(t *testing.T) {
	t.Parallel()
	for name, loser := range map[string][]faults.Decide{
		"that was answered":        {once("States.Save", 100*time.Millisecond)},
		"whose process stopped on": {once("States.Save", 100*time.Millisecond), stopAfterFailed("States.Save")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onTime(t, func(ctx context.Context, w *testkit.World, client *testkit.Node) {
				canceller := w.Start("canceller", loser...)
				w.Report(ctx, failed("A"))
				var wg sync.WaitGroup
				wg.Go(func() {
					if a, err := canceller.Cancel(ctx, "w", coord.Command{ID: "c"}); err == nil {
						t.Errorf("the cancel was done: %+v", a)
					}
				})
				time.Sleep(50 * time.Millisecond)
				if _, err := client.Drain(ctx, time.Minute, nil); err != nil {
					t.Fatal(err)
				}
				wg.Wait()
				if row, err := w.Store.Index.Get(ctx, "w"); name == "that was answered" && (err != nil || row.Cancel.Requested) {
					t.Errorf("the row after the refusal: cancel %+v, %v", row.Cancel, err)
				}
				expect(t, w, "after the end", "w failed   A:failed B:upstream_failed C:upstream_failed D:upstream_failed")
				if _, err := client.Retry(ctx, "w", coord.Command{ID: "r"}); err != nil {
					t.Fatal(err)
				}
				row, err := w.Store.Index.Get(ctx, "w")
				if err != nil || row.Cancel.Requested {
					t.Errorf("the row of the retried workflow: cancel %+v, %v", row.Cancel, err)
				}
			})
		})
	}
}

// What neither the winner nor the loser withdrew the sweep does.
func TestTheSweepWithdrawsARequestThatLost(t *testing.T) {
	t.Parallel()
	withPair(t, func(ctx context.Context, w *testkit.World, client *testkit.Node) {
		if _, err := client.Mark(ctx, "pair", "B", state.Skipped, "", coord.Command{}); err != nil {
			t.Fatal(err)
		}
		row, err := w.Store.Index.Get(ctx, "pair")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Store.Index.SetCancel(ctx, "pair", port.CancelRequest{Requested: true, Epoch: row.Epoch}, row.Tag); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		if _, err := client.Sweep(ctx); err != nil {
			t.Fatal(err)
		}
		if row, err = w.Store.Index.Get(ctx, "pair"); err != nil || row.Cancel.Requested {
			t.Errorf("the row after the sweep: cancel %+v, %v", row.Cancel, err)
		}
		expect(t, w, "after the sweep", "pair running   A:running B:skipped")
	})
}

// stopAfterFailed stops a process when a call of op has failed.
func stopAfterFailed(op string) faults.Decide {
	calls := 0
	return func(c faults.Call) faults.Fate {
		if c.Op == op {
			calls++
		}
		return faults.Fate{Stop: calls > 0 && c.Op != op}
	}
}

// A flag that cannot be honoured for an hour leaves one claim, not one a sweep.
func TestClaimsOfOneFlagDoNotGrow(t *testing.T) {
	t.Parallel()
	withPair(t, func(ctx context.Context, w *testkit.World, _ *testkit.Node) {
		row, err := w.Store.Index.Get(ctx, "pair")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Store.Index.SetCancel(ctx, "pair", port.CancelRequest{Requested: true}, row.Tag); err != nil {
			t.Fatal(err)
		}
		old := w.Start("old", func(c faults.Call) faults.Fate {
			if c.Op == "States.Load" {
				return faults.Fate{Before: fault.New(fault.TooNew, "written by a newer program")}
			}
			return faults.Fate{}
		})
		for range 60 {
			if _, err := old.Sweep(ctx); !fault.Is(err, fault.TooNew) {
				t.Fatalf("Sweep = %v", err)
			}
			time.Sleep(time.Minute)
		}
		due, err := w.Store.Index.DueBefore(ctx, time.Now().Add(48*time.Hour), 1000)
		claims := 0
		for _, d := range due {
			if strings.HasPrefix(d.Key, "pair!") {
				claims++
			}
		}
		if err != nil || claims != 1 {
			t.Errorf("%d claims after an hour, %v: %+v", claims, err, due)
		}
	})
}

// A removal that was held up until the next life of the id has outputs leaves them
// alone, also where no task of its own life was ever sent.
func TestAHeldUpRemovalLeavesTheOutputsOfTheNextLife(t *testing.T) {
	t.Parallel()
	onTime(t, func(ctx context.Context, w *testkit.World, client *testkit.Node) {
		skipped := &dag.Definition{Name: "skipped", DefaultQueue: "cpu", Tasks: []dag.Task{{Name: "A", Queue: "cpu", Condition: "False"}}}
		next := graph("A", "B < A")
		w.Know(next)
		submitIn(ctx, t, client, "again", skipped)
		slow := w.Start("slow", once("Outputs.DeletePrefix", 5*time.Second))
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = slow.Purge(ctx, "again", coord.Command{ID: "p"}) })
		time.Sleep(time.Second)
		if _, err := client.Purge(ctx, "again", coord.Command{ID: "p"}); err != nil {
			t.Fatal(err)
		}
		submitIn(ctx, t, client, "again", next)
		sum, err := client.Tasks(ctx, "again", coord.TaskFilter{})
		if err != nil {
			t.Fatal(err)
		}
		w.Report(ctx, msg.Completion{
			Workflow: "again", Task: "A", Attempt: sum.Tasks[0].Attempt, Start: 1, Success: true,
			OutputRef: `"` + strings.Repeat("x", 2*state.MaxInlineOutput) + `"`,
		})
		if _, err := client.Drain(ctx, time.Minute, nil); err != nil {
			t.Fatal(err)
		}
		if sum, err = client.Tasks(ctx, "again", coord.TaskFilter{}); err != nil {
			t.Fatal(err)
		}
		ref, err := msg.ParseOutputRef(sum.Tasks[0].OutputRef)
		if err != nil || ref.Blob == "" {
			t.Fatalf("the output of A is %q, %v", sum.Tasks[0].OutputRef, err)
		}
		wg.Wait()
		if _, err := w.Store.Outputs.Get(ctx, ref.Blob); err != nil {
			t.Errorf("after the removal went on: %v", err)
		}
	})
}

// The due row of the second removal is not that of any claim.
func TestNoCommandTakesTheSecondRemovalAway(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"purge", "!", "!purge"} {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			onTime(t, func(ctx context.Context, w *testkit.World, client *testkit.Node) {
				report(t, w, "w", "A")
				if _, err := client.Cancel(ctx, "w", coord.Command{}); err != nil {
					t.Fatal(err)
				}
				if _, err := client.Drain(ctx, time.Minute, nil); err != nil {
					t.Fatal(err)
				}
				if _, err := client.Purge(ctx, "w", coord.Command{ID: id}); err != nil {
					t.Fatal(err)
				}
				due, err := w.Store.Index.DueBefore(ctx, time.Now().Add(48*time.Hour), 10)
				if err != nil || len(due) != 1 || due[0].Note != "purge" {
					t.Errorf("due: %+v, %v, want the second removal", due, err)
				}
			})
		})
	}
}

// A mark with another status is refused, by whatever way it comes.
func TestAMarkWithAnotherStatusIsRefused(t *testing.T) {
	t.Parallel()
	withPair(t, func(ctx context.Context, w *testkit.World, client *testkit.Node) {
		if a, err := client.Mark(ctx, "pair", "B", state.Failed, "", coord.Command{}); !fault.Is(err, fault.Invalid) || a.Done {
			t.Errorf("Mark = %+v, %v", a, err)
		}
		body, err := msg.EncodeCommand(msg.Command{ID: "x", Workflow: "pair", Kind: "mark", Args: []byte(`{"task":"B","to":"failed"}`)})
		if err != nil {
			t.Fatal(err)
		}
		w.Post(ctx, body)
		if _, err := client.Drain(ctx, time.Minute, nil); err != nil && !fault.Is(err, fault.TooNew) {
			t.Errorf("Drain = %v", err)
		}
		expect(t, w, "after it", "pair running   A:running B:pending")
	})
}

// An attempt that gets its number while the marks of others are applied is told of
// like any other.
func TestTheEventLogHasANumberThatIsGivenByTheWay(t *testing.T) {
	t.Parallel()
	onTime(t, func(ctx context.Context, w *testkit.World, _ *testkit.Node) {
		var mu sync.Mutex
		var told []coord.Move
		w.Options.OnChange = func(n coord.Notice) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, n.Moves...)
		}
		client := w.Start("client of its own")
		d := graph("A", "B", "C < A")
		w.Know(d)
		submitIn(ctx, t, client, "log", d)
		w.Report(ctx, msg.Completion{Workflow: "log", Task: "B", Attempt: 1, Reason: msg.Cancelled})
		if _, err := client.Drain(ctx, time.Minute, nil); err != nil {
			t.Fatal(err)
		}
		slow := w.Start("slow", once("Queue.Send", 2*time.Second))
		report(t, w, "log", "A")
		for _, settle := range []time.Duration{0, time.Minute} {
			if _, err := slow.Drain(ctx, settle, nil); err != nil {
				t.Fatal(err)
			}
		}
		expect(t, w, "then", "log running   A:completed B:running C:running")
		events, err := client.Events(ctx, "log")
		if err != nil {
			t.Fatal(err)
		}
		given := func(m coord.Move) bool { return m.Task == "B" && m.Attempt == 2 && m.Cause == state.CauseNumbered }
		logged, heard := 0, 0
		for _, m := range events {
			if given(m) {
				logged++
			}
		}
		for _, m := range told {
			if given(m) {
				heard++
			}
		}
		if logged != 1 || heard != 1 {
			t.Errorf("attempt 2 of B is %d times in the log and was told %d times, want once", logged, heard)
		}
	})
}
