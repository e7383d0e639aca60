package coord_test

import (
	"testing"
	"testing/synctest"
	"time"

	"jobq/core/fault"
	"jobq/core/msg"
	"jobq/core/port"
	"jobq/internal/testkit"
	"jobq/store/memory"
	"jobq/store/wrap/faults"
)

// TestMessagesOfAHost gives Drain a message that a function host settles.
func TestMessagesOfAHost(t *testing.T) {
	t.Parallel()
	completion := func(wf string) []byte {
		body, err := msg.EncodeCompletion(msg.Completion{Workflow: wf, Task: "A", Attempt: 1, Success: true})
		if err != nil {
			t.Fatal(err)
		}
		return body
	}
	for name, tc := range map[string]struct {
		body          []byte
		plan          faults.Decide
		failed        bool
		inbox, poison string
		want          string
	}{
		"applied":               {body: completion("w"), inbox: "-", poison: "-", want: "w running   A:completed B:running C:running D:pending"},
		"undecodable":           {body: []byte("%%%"), inbox: "-", poison: "unreadable", want: "w running   A:running B:pending C:pending D:pending"},
		"of no workflow":        {body: completion("x"), inbox: "-", poison: "completion:A#1", want: "w running   A:running B:pending C:pending D:pending"},
		"not now":               {body: completion("w"), plan: faults.Fail("States.Save", fault.Throttled, 1), inbox: "completion:A#1 wake:w", poison: "-", want: "w running   A:running B:pending C:pending D:pending"},
		"not now, nor put back": {body: completion("w"), plan: faults.First(faults.Fail("States.Save", fault.Throttled, 1), faults.Fail("Queue.Send", fault.Unavailable, 1)), failed: true, inbox: "-", poison: "-", want: "w running   A:running B:pending C:pending D:pending"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				w := onMemory(t, memory.Options{})
				w.Options.Holder = "me"
				w.Know(diamond())
				mustSubmit(t, w.Start("client"), "w", diamond())
				w.Take(ctx)
				// Another process has the lease: the message is applied all the same.
				if err := w.Store.Leases.Acquire(ctx, "_coordinator.lock", "other", time.Minute); err != nil {
					t.Fatal(err)
				}
				var plans []faults.Decide
				if tc.plan != nil {
					plans = append(plans, tc.plan)
				}
				c := w.Start("host", plans...)
				n, err := c.Drain(ctx, time.Minute, []port.Delivery{{ID: "trigger", Body: tc.body, Count: 1}})
				if n != 1 || (err != nil) != tc.failed {
					t.Errorf("Drain = %d, %v, want 1 and an error: %t", n, err, tc.failed)
				}
				expect(t, w, "then", tc.want)
				time.Sleep(2 * time.Second)
				inbox := w.Store.Queues.Queue(testkit.Inbox)
				if got := w.Queue(ctx, inbox); got != tc.inbox {
					t.Errorf("the inbox holds %s, want %s", got, tc.inbox)
				}
				if got := w.Queue(ctx, inbox.PoisonQueue()); got != tc.poison {
					t.Errorf("the poison queue holds %s, want %s", got, tc.poison)
				}
			})
		})
	}
}
