package coord_test

import (
	"testing"
	"testing/synctest"
	"time"

	"jobq/core/fault"
	"jobq/core/port"
	"jobq/internal/testkit"
	"jobq/store/memory"
	"jobq/store/wrap/faults"
)

// A workflow that cannot be read for hours must not fill the inbox with copies and
// wakes of its messages.
func TestMessagesOfAHostThatCannotBeAppliedDoNotGrowInNumber(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		w := onMemory(t, memory.Options{})
		w.Options.Holder = "host" // another process has the lease: messages come by the trigger alone
		if err := w.Store.Leases.Acquire(ctx, "_coordinator.lock", "other", 24*time.Hour); err != nil {
			t.Fatal(err)
		}
		w.Know(diamond())
		w.Options.Holder = ""
		mustSubmit(t, w.Start("client"), "w", diamond())
		w.Options.Holder = "host"
		host := w.Start("host", func(c faults.Call) faults.Fate {
			if c.Op == "States.Load" {
				return faults.Fate{Before: fault.New(fault.TooNew, "written by a newer program")}
			}
			return faults.Fate{}
		})
		inbox := w.Store.Queues.Queue(testkit.Inbox)
		for _, task := range []string{"A", "B"} {
			w.Post(ctx, completionOf(t, "w", task))
		}
		for end := time.Now().Add(24 * time.Hour); time.Now().Before(end); time.Sleep(time.Second) {
			got, err := inbox.Receive(ctx, port.ReceiveOptions{Max: 100, Lock: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range got {
				hosted := d
				hosted.Receipt = ""
				if _, err := host.Drain(ctx, 0, []port.Delivery{hosted}); err != nil {
					t.Fatalf("Drain = %v", err)
				}
			}
			inbox.Acknowledge(ctx, got)
			if n, err := inbox.Count(ctx); err != nil || n > 8 {
				t.Fatalf("%v before the end of a day the inbox holds %d messages, %v; two came", time.Until(end), n, err)
			}
		}
	})
}

// A failure that several messages met makes them wait as long as one.
func TestMessagesOfAHostThatFailTogetherWaitAsLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		w := onMemory(t, memory.Options{})
		d := graph("A", "B", "C", "D", "E", "F", "G", "H")
		w.Know(d)
		mustSubmit(t, w.Start("client"), "w", d)
		var batch []port.Delivery
		for _, task := range d.Tasks {
			batch = append(batch, port.Delivery{ID: task.Name, Body: completionOf(t, "w", task.Name), Count: 1})
		}
		host := w.Start("host", faults.Fail("States.Save", fault.Throttled, 1))
		if _, err := host.Drain(ctx, 0, batch); err != nil {
			t.Fatalf("Drain = %v", err)
		}
		time.Sleep(2 * time.Second)
		if n, err := host.Drain(ctx, time.Second, nil); n < len(batch) || err != nil {
			t.Errorf("two seconds after a save that failed %d of %d messages were back, %v", n, len(batch), err)
		}
		expect(t, w, "then", "w completed   A:completed B:completed C:completed D:completed E:completed F:completed G:completed H:completed")
	})
}
