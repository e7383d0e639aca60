package azbus_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"jobq/core/fault"
	"jobq/core/port"
	"jobq/core/sched"
	"jobq/internal/busstand"
	"jobq/store/azbus"
	"jobq/store/wrap"
)

// bench is one namespace with the queue cpu, on virtual time.
type bench struct {
	*busstand.Server
	*testing.T
	bus *azbus.Bus
	q   port.Queue
}

func onBench(t *testing.T, server busstand.Options, o azbus.Options, f func(b bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := busstand.New(server)
		t.Cleanup(s.Close)
		b := bench{Server: s, T: t, bus: openVirtual(t, s, o)}
		if err := b.bus.Ensure(t.Context(), "cpu"); err != nil {
			t.Fatalf("Ensure = error %v", err)
		}
		b.q = b.bus.Queue("cpu")
		f(b)
	})
}

func (b bench) send(ids ...string) {
	b.Helper()
	for _, id := range ids {
		b.ok("Send", first(b.q.Send(b.Context(), []port.Message{{ID: id, Body: []byte(id)}})))
	}
}

func (b bench) receive(q port.Queue, want int) []port.Delivery {
	b.Helper()
	var all []port.Delivery
	for len(all) < want {
		ds, err := q.Receive(b.Context(), port.ReceiveOptions{Max: want - len(all), Lock: time.Minute, Wait: 30 * time.Second})
		b.ok("Receive", err)
		if len(ds) == 0 {
			b.Fatalf("only %d of %d messages came", len(all), want)
		}
		all = append(all, ds...)
	}
	return all
}

func (b bench) ok(call string, err error) {
	b.Helper()
	if err != nil {
		b.Fatalf("%s = error %v (%v), want success", call, err, fault.CodeOf(err))
	}
}

func (b bench) fails(call string, err error, want fault.Code) {
	b.Helper()
	if !fault.Is(err, want) {
		b.Errorf("%s = error %v, want fault %v", call, err, want)
	}
}

func (b bench) count(want int) {
	b.Helper()
	n, err := b.q.Count(b.Context())
	b.ok("Count", err)
	if n != want {
		b.Errorf("the queue holds %d messages, want %d", n, want)
	}
}

// first is the result of a call about one message.
func first(errs []error) error {
	if errs == nil {
		return nil
	}
	return errs[0]
}

// operations are the calls of a queue about a message that is held.
func operations() map[string]func(b bench, d port.Delivery) error {
	return map[string]func(b bench, d port.Delivery) error{
		"Send": func(b bench, d port.Delivery) error {
			return first(b.q.Send(b.Context(), []port.Message{{ID: "new"}}))
		},
		"Send with a delay": func(b bench, d port.Delivery) error {
			return first(b.q.Send(b.Context(), []port.Message{{ID: "new", Delay: time.Minute}}))
		},
		"Receive": func(b bench, d port.Delivery) error {
			_, err := b.q.Receive(b.Context(), port.ReceiveOptions{Max: 1, Lock: time.Minute})
			return err
		},
		"Extend":      func(b bench, d port.Delivery) error { return b.q.Extend(b.Context(), &d, time.Minute) },
		"Acknowledge": func(b bench, d port.Delivery) error { return first(b.q.Acknowledge(b.Context(), []port.Delivery{d})) },
		"Release":     func(b bench, d port.Delivery) error { return b.q.Release(b.Context(), d, 0) },
		"Poison":      func(b bench, d port.Delivery) error { return b.q.Poison(b.Context(), d, "reason") },
		"Peek": func(b bench, d port.Delivery) error {
			_, err := b.q.Peek(b.Context(), 1)
			return err
		},
	}
}

// TestEveryCallRecovers breaks the connection under warm links: a call may fail
// once, with a code that says to try again, and works then. The receipt is good
// on the new connection.
func TestEveryCallRecovers(t *testing.T) {
	t.Parallel()
	for cause, breakIt := range map[string]func(b bench){
		"the connection is dropped": func(b bench) { b.DropConnections() },
		"the links are detached":    func(b bench) { b.DropLinks("cpu") },
	} {
		for name, call := range operations() {
			t.Run(name+" when "+cause, func(t *testing.T) {
				t.Parallel()
				onBench(t, busstand.Options{}, azbus.Options{}, func(b bench) {
					b.send("a", "b")
					d := b.receive(b.q, 2)[0]
					b.ok("Extend", b.q.Extend(b.Context(), &d, time.Minute))
					breakIt(b)
					synctest.Wait()
					if err := call(b, d); err != nil {
						b.fails(name+" on the broken connection", err, fault.Unavailable)
						b.ok(name+" on a new connection", call(b, d))
					}
				})
			})
		}
	}
}

// TestAWaitingReceiveTellsOfALoss wants an error, not an empty answer: callers
// that poll would poll as fast as they can.
func TestAWaitingReceiveTellsOfALoss(t *testing.T) {
	t.Parallel()
	onBench(t, busstand.Options{}, azbus.Options{}, func(b bench) {
		time.AfterFunc(time.Second, b.DropConnections)
		start := time.Now()
		_, err := b.q.Receive(b.Context(), port.ReceiveOptions{Max: 1, Lock: time.Minute, Wait: time.Minute})
		b.fails("Receive", err, fault.Unavailable)
		if took := time.Since(start); took > 2*time.Second {
			b.Errorf("the loss was told after %v", took)
		}
	})
}

// TestLostAnswers repeats calls whose answer was lost, as store/wrap does, and
// counts what is there then.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		op   busstand.Op
		call string
		// left is the number of messages in the queue afterwards.
		left int
	}{
		"a message sent twice is one":   {busstand.OpSend, "Send", 2},
		"a message is gone once":        {busstand.OpSettle, "Acknowledge", 0},
		"a release makes one copy":      {busstand.OpSend, "Release", 1},
		"a release completes once":      {busstand.OpSettle, "Release", 1},
		"a renewal is made again":       {busstand.OpRenew, "Extend", 1},
		"a look is taken again":         {busstand.OpPeek, "Peek", 1},
		"a delayed message is only one": {busstand.OpSend, "Send with a delay", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBench(t, busstand.Options{}, azbus.Options{}, func(b bench) {
				b.send("a")
				d := b.receive(b.q, 1)[0]
				retrying := wrap.Retry(&port.Store{Queues: b.bus}, sched.Real{}, wrap.RetryPolicy{})
				b.Inject(busstand.Rule{Op: tc.op, Queue: "cpu", Times: 1, LoseAnswer: true})
				again := b
				again.q = retrying.Queues.Queue("cpu")
				b.ok(tc.call, operations()[tc.call](again, d))
				b.count(tc.left)
			})
		})
	}
}

// TestCodes gives every refusal of the service its fault code.
func TestCodes(t *testing.T) {
	t.Parallel()
	for condition, want := range map[string]fault.Code{
		busstand.ServerBusy:               fault.Throttled,
		busstand.Unauthorized:             fault.Denied,
		busstand.Timeout:                  fault.Unavailable,
		"amqp:not-found":                  fault.NotFound,
		"amqp:resource-limit-exceeded":    fault.Throttled,
		"amqp:link:message-size-exceeded": fault.TooLarge,
		"amqp:internal-error":             fault.Unavailable,
		"com.microsoft:entity-disabled":   fault.Denied,
		"com.microsoft:argument-error":    fault.Unavailable, // the client hides it
	} {
		t.Run(condition, func(t *testing.T) {
			t.Parallel()
			onBench(t, busstand.Options{}, azbus.Options{}, func(b bench) {
				for _, op := range []busstand.Op{busstand.OpSend, busstand.OpAttach} {
					other := openVirtual(b.T, b.Server, azbus.Options{})
					b.Inject(busstand.Rule{Op: op, Queue: "cpu", Times: 1, Condition: condition})
					err := first(other.Queue("cpu").Send(b.Context(), []port.Message{{ID: "a"}}))
					if want == fault.Unavailable && err == nil {
						// The client tries a link again by itself.
						continue
					}
					b.fails(fmt.Sprintf("Send refused at %s", op), err, want)
					if want == fault.Throttled && fault.RetryAfter(err) <= 0 {
						b.Error("the error does not say how long to wait")
					}
				}
			})
		})
	}
}

func TestEveryCallHasABound(t *testing.T) {
	t.Parallel()
	for name, op := range map[string]busstand.Op{"Send": busstand.OpSend, "Extend": busstand.OpRenew, "Acknowledge": busstand.OpSettle, "Peek": busstand.OpPeek} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBench(t, busstand.Options{}, azbus.Options{}, func(b bench) {
				b.send("a")
				d := b.receive(b.q, 1)[0]
				b.Inject(busstand.Rule{Op: op, Queue: "cpu", Delay: time.Hour})
				start := time.Now()
				b.fails(name+" without an answer", operations()[name](b, d), fault.Unavailable)
				if took := time.Since(start); took > time.Minute {
					b.Errorf("%s waited %v for an answer", name, took)
				}
				ctx, cancel := context.WithTimeout(b.Context(), time.Second)
				defer cancel()
				stopped := b
				b.fails(name+" stopped by its caller", operations()[name](stopped.with(ctx), d), fault.Canceled)
				b.Heal()
				b.ok(name+" after that", operations()[name](b, d))
			})
		})
	}
}

// with is b whose calls are made under ctx.
func (b bench) with(ctx context.Context) bench {
	b.q = under{b.q, ctx}
	return b
}

// under makes calls under another context.
type under struct {
	port.Queue
	ctx context.Context
}

func (u under) Send(_ context.Context, m []port.Message) []error { return u.Queue.Send(u.ctx, m) }

func (u under) Extend(_ context.Context, d *port.Delivery, lock time.Duration) error {
	return u.Queue.Extend(u.ctx, d, lock)
}

func (u under) Acknowledge(_ context.Context, ds []port.Delivery) []error {
	return u.Queue.Acknowledge(u.ctx, ds)
}

func (u under) Peek(_ context.Context, most int) ([]port.Delivery, error) {
	return u.Queue.Peek(u.ctx, most)
}

// TestWithoutTheRightToManage counts by looking, keeps what is there, and says
// what is missing.
func TestWithoutTheRightToManage(t *testing.T) {
	t.Parallel()
	onBench(t, busstand.Options{}, azbus.Options{}, func(b bench) {
		b.Inject(busstand.Rule{Op: busstand.OpAdmin, Condition: busstand.Unauthorized})
		messages := make([]port.Message, 600)
		messages[0].Delay = time.Hour
		if errs := b.q.Send(b.Context(), messages); errs != nil {
			b.Fatalf("Send = error %v", errs)
		}
		b.count(len(messages))
		b.ok("Ensure of a queue that is there", b.bus.Ensure(b.Context(), "cpu"))
		err := b.bus.Ensure(b.Context(), "gpu")
		b.fails("Ensure of a queue that is not there", err, fault.Denied)
		if !strings.Contains(err.Error(), "queue gpu does not exist in stand-in.invalid") {
			b.Errorf("Ensure = %v, want it to name queue and namespace", err)
		}
		_, err = b.bus.Queue("gpu").Count(b.Context())
		b.fails("Count of a queue that is not there", err, fault.NotFound)
	})
}

// TestClocksThatDiffer has a service whose clock is ahead or behind.
func TestClocksThatDiffer(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ ahead, least, most time.Duration }{
		"ahead":      {time.Hour, 5*time.Minute - time.Second, 5 * time.Minute},
		"behind":     {-time.Minute, 4*time.Minute - time.Second, 4 * time.Minute},
		"far behind": {-time.Hour, 29 * time.Second, 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := func() time.Time { return time.Now().Add(tc.ahead) }
			onBench(t, busstand.Options{Now: clock}, azbus.Options{}, func(b bench) {
				b.send("a")
				d := b.receive(b.q, 1)[0]
				if left := time.Until(d.Until); left < tc.least || left > tc.most {
					b.Errorf("the lock ends in %v, want %v to %v", left, tc.least, tc.most)
				}
			})
		})
	}
}

// TestAnIdleReceiveLeavesLittleBehind sends a crowd after a receive that asked for
// many and got none. What it left open costs deliveries for nothing.
func TestAnIdleReceiveLeavesLittleBehind(t *testing.T) {
	t.Parallel()
	onBench(t, busstand.Options{CountReleased: true}, azbus.Options{}, func(b bench) {
		if ds, err := b.q.Receive(b.Context(), port.ReceiveOptions{Max: 32, Lock: time.Minute}); err != nil || len(ds) != 0 {
			b.Fatalf("Receive = %d messages, error %v; want none", len(ds), err)
		}
		for i := range 40 {
			b.send(fmt.Sprint(i))
		}
		synctest.Wait()
		for range 2 {
			extra := 0
			for _, d := range b.receive(b.q, 20) {
				extra += d.Count - 1
			}
			if extra > 2 {
				b.Errorf("20 messages had %d deliveries for nothing", extra)
			}
		}
	})
}

// TestWhatArrivesTooLateIsGivenBack sends between two receives: the client gives
// back what comes by credit that is left over, so it is not lost until its lock
// ends.
func TestWhatArrivesTooLateIsGivenBack(t *testing.T) {
	t.Parallel()
	for name, counted := range map[string]bool{"and not counted": false, "and counted": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBench(t, busstand.Options{CountReleased: counted}, azbus.Options{}, func(b bench) {
				b.send("a")
				b.receive(b.q, 1)
				b.send("b")
				synctest.Wait()
				ds, err := b.bus.Queue("cpu").Receive(b.Context(), port.ReceiveOptions{Max: 40, Lock: time.Minute})
				b.ok("Receive", err)
				if len(ds) != 1 || ds[0].ID != "b" {
					b.Errorf("Receive gave %d messages, want the one that came late", len(ds))
				}
			})
		})
	}
}
