package coord_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"jobq/core/fault"
	"jobq/core/msg"
	"jobq/core/port"
	"jobq/core/sched"
	"jobq/internal/testkit"
	"jobq/store/memory"
	"jobq/store/wrap/faults"
)

// TestMessagesOfAHost gives Drain a message that a function host settles.
func TestMessagesOfAHost(t *testing.T) {
	t.Parallel()
	completion := func(wf string) []byte { return completionOf(t, wf, "A") }
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

// What follows the message of a host may fail without the host counting it.
func TestAnInboxThatCannotBeReadFailsNoAppliedMessage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := onMemory(t, memory.Options{})
		w.Know(diamond())
		mustSubmit(t, w.Start("client"), "w", diamond())
		host := w.Start("host", faults.Fail("Queue.Receive", fault.Unavailable, 1))
		if n, err := host.Drain(t.Context(), time.Minute, []port.Delivery{{ID: "trigger", Body: completionOf(t, "w", "A"), Count: 1}}); n != 1 || err != nil {
			t.Errorf("Drain = %d, %v, want 1 and no error", n, err)
		}
		expect(t, w, "then", "w running   A:completed B:running C:running D:pending")
		alone := w.Start("alone", faults.Fail("Queue.Receive", fault.Unavailable, 1))
		if _, err := alone.Drain(t.Context(), time.Minute, nil); !fault.Is(err, fault.Unavailable) {
			t.Errorf("Drain without a message = %v, want unavailable", err)
		}
	})
}

// A host removes what it hears no failure of: a message for which there was no
// time must be in the inbox again.
func TestMessagesOfAHostForWhichThereIsNoTimeArePutBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := onMemory(t, memory.Options{})
		w.Scheduler = sched.Real{}
		w.Know(diamond())
		client := w.Start("client")
		for _, id := range []string{"a", "b", "w"} {
			mustSubmit(t, client, id, diamond())
		}
		host := w.Start("host", at("States.Save", 14*time.Second))
		n, err := host.Drain(t.Context(), 0, []port.Delivery{
			{ID: "slow", Body: completionOf(t, "a", "A"), Count: 1}, {ID: "slow too", Body: completionOf(t, "b", "A"), Count: 1},
			{ID: "late", Body: completionOf(t, "w", "A"), Count: 1},
		})
		if n != 3 || err != nil {
			t.Errorf("Drain = %d, %v, want 3 and no error", n, err)
		}
		time.Sleep(2 * time.Second)
		if got := w.Queue(t.Context(), w.Store.Queues.Queue(testkit.Inbox)); !strings.Contains(got, "completion:A#1 wake:w") {
			t.Errorf("the inbox holds %s, want the completion of w and a wake", got)
		}
	})
}

// No count of a host is a verdict.
func TestPoisonOfAHostIsReconsidered(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		body    []byte
		plan    faults.Decide
		verdict bool
		code    fault.Code
		inbox   string
	}{
		"of a workflow that exists":  {body: completionOf(t, "w", "A"), inbox: "completion:A#1 wake:w"},
		"of one that cannot be read": {body: completionOf(t, "w", "A"), plan: faults.Fail("States.Load", fault.Corrupt, 1), inbox: "completion:A#1 wake:w"},
		"of none":                    {body: completionOf(t, "x", "A"), verdict: true, inbox: "-"},
		"undecodable":                {body: []byte("%%%"), verdict: true, inbox: "-"},
		"while nothing can be sent":  {body: completionOf(t, "w", "A"), plan: faults.Fail("Queue.Send", fault.Unavailable, 1), code: fault.Unavailable, inbox: "-"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := onMemory(t, memory.Options{})
				w.Know(diamond())
				mustSubmit(t, w.Start("client"), "w", diamond())
				var plans []faults.Decide
				if tc.plan != nil {
					plans = append(plans, tc.plan)
				}
				verdict, err := w.Start("host", plans...).Reconsider(t.Context(), port.Delivery{ID: "p", Body: tc.body, Count: 1})
				if (verdict != nil) != tc.verdict || fault.CodeOf(err) != tc.code {
					t.Errorf("Reconsider = %v, %v, want a verdict: %t, code %v", verdict, err, tc.verdict, tc.code)
				}
				time.Sleep(2 * time.Second)
				if got := w.Queue(t.Context(), w.Store.Queues.Queue(testkit.Inbox)); got != tc.inbox {
					t.Errorf("the inbox holds %s, want %s", got, tc.inbox)
				}
			})
		})
	}
}

func completionOf(t *testing.T, wf, task string) []byte {
	t.Helper()
	body, err := msg.EncodeCompletion(msg.Completion{Workflow: wf, Task: task, Attempt: 1, Success: true})
	if err != nil {
		t.Fatal(err)
	}
	return body
}
