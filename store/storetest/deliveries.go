package storetest

import (
	"testing"
	"time"

	"jobq/core/fault"
	"jobq/core/port"
)

var deliveryCases = []testCase{
	{"a lock that ends delivers again and counts", func(t *testing.T, e env) {
		q := e.open(t, "cpu")
		send(t, q, texts("a")...)
		first := receiveOne(t, q, e.tick)
		e.lapse(q)
		second := receiveOne(t, q, longLock)
		same(t, []any{second.ID, second.Count}, []any{first.ID, 2}, "the second delivery")
	}},
	{"a stale receipt is refused everywhere", func(t *testing.T, e env) {
		ctx, q := t.Context(), e.open(t, "cpu")
		send(t, q, texts("a")...)
		stale := receiveOne(t, q, e.tick)
		e.lapse(q)
		current := receiveOne(t, q, longLock)
		lost(t, q, q.Acknowledge(ctx, []port.Delivery{stale}), "Acknowledge by a stale receipt")
		held := stale
		fails(t, q.Extend(ctx, &held, longLock), fault.LeaseLost, "Extend by a stale receipt")
		fails(t, q.Release(ctx, stale, 0), fault.LeaseLost, "Release by a stale receipt")
		fails(t, q.Poison(ctx, stale, "reason"), fault.LeaseLost, "Poison by a stale receipt")
		ok(t, q.Extend(ctx, &current, longLock), "Extend by the newest receipt")
		acknowledge(t, q, current)
	}},
	{"acknowledging twice is no error", func(t *testing.T, e env) {
		q := e.open(t, "cpu")
		send(t, q, texts("a", "b")...)
		ds := receive(t, q, 2, longLock)
		acknowledge(t, q, ds[0])
		acknowledge(t, q, ds...)
	}},
	{"one stale receipt in a batch does not stop the others", func(t *testing.T, e env) {
		q := e.open(t, "cpu")
		send(t, q, texts("a")...)
		stale := receiveOne(t, q, e.tick)
		e.lapse(q)
		receiveOne(t, q, longLock)
		send(t, q, texts("b")...)
		good := receiveOne(t, q, longLock)
		errs := q.Acknowledge(t.Context(), []port.Delivery{stale, good})
		lost(t, q, errs, "Acknowledge by a stale receipt")
		if errs != nil {
			same(t, len(errs), 2, "results of Acknowledge")
			ok(t, errs[1], "Acknowledge by a good receipt")
		}
	}},
	{"extending keeps the message hidden and changes the receipt in place", func(t *testing.T, e env) {
		ctx, q := t.Context(), e.open(t, "cpu")
		send(t, q, texts("a")...)
		d := receiveOne(t, q, 2*e.tick)
		until, lock := d.Until, e.lock(q, 2)
		time.Sleep(lock / 2)
		ok(t, q.Extend(ctx, &d, longLock), "Extend")
		if !d.Until.After(until) {
			t.Errorf("Extend left Until at %v", d.Until)
		}
		time.Sleep(lock / 4 * 3)
		same(t, len(receive(t, q, 1, longLock)), 0, "messages after the first lock would have ended")
		ok(t, q.Extend(ctx, &d, longLock), "Extend again")
		acknowledge(t, q, d)
	}},
	{"extending a message that is gone is a lost lease", func(t *testing.T, e env) {
		q := e.open(t, "cpu")
		send(t, q, texts("a")...)
		d := receiveOne(t, q, longLock)
		acknowledge(t, q, d)
		fails(t, q.Extend(t.Context(), &d, longLock), fault.LeaseLost, "Extend")
	}},
	{"a released message comes back at once and goes on counting", func(t *testing.T, e env) {
		ctx, q := t.Context(), e.open(t, "cpu")
		send(t, q, texts("a")...)
		d := receiveOne(t, q, longLock)
		ok(t, q.Release(ctx, d, 0), "Release")
		again := receiveOne(t, q, longLock)
		same(t, []any{string(again.Body), again.Count}, []any{"a", 2}, "the released message")
		if q.Props().NativeRelease {
			same(t, again.ID, d.ID, "the id of the released message")
		}
		if q.Props().CountReadable {
			same(t, count(t, q), 1, "Count")
		}
	}},
	{"a released message waits for its delay", func(t *testing.T, e env) {
		ctx, q := t.Context(), e.open(t, "cpu")
		send(t, q, texts("a")...)
		d := receiveOne(t, q, longLock)
		start := time.Now()
		ok(t, q.Release(ctx, d, 3*e.tick), "Release")
		same(t, string(e.receiveDue(t, q, start, 3*e.tick).Body), "a", "the message after the delay")
	}},
	{"a receipt from before a release is not the newest", func(t *testing.T, e env) {
		ctx, q := t.Context(), e.open(t, "cpu")
		if !q.Props().NativeRelease {
			t.Skip("a release of this driver makes another message")
		}
		send(t, q, texts("a")...)
		d := receiveOne(t, q, longLock)
		ok(t, q.Release(ctx, d, longLock), "Release")
		lost(t, q, q.Acknowledge(ctx, []port.Delivery{d}), "Acknowledge after Release")
		if q.Props().CountReadable {
			same(t, count(t, q), 1, "Count")
		}
	}},
	{"releasing without end never poisons", func(t *testing.T, e env) {
		ctx, q := t.Context(), e.open(t, "cpu")
		send(t, q, texts("a")...)
		for range q.Props().DeliveryLimit + 20 {
			ok(t, q.Release(ctx, receiveOne(t, q, longLock), 0), "Release")
		}
		same(t, string(receiveOne(t, q, longLock).Body), "a", "the message after many releases")
		same(t, len(receive(t, q.PoisonQueue(), 1, longLock)), 0, "messages of the poison queue")
	}},
	{"a poisoned message moves with its reason", func(t *testing.T, e env) {
		ctx, q := t.Context(), e.open(t, "cpu")
		send(t, q, texts("bad", "good")...)
		for _, d := range receive(t, q, 2, longLock) {
			if string(d.Body) == "bad" {
				ok(t, q.Poison(ctx, d, "cannot be decoded: \"é\""), "Poison")
				acknowledge(t, q, d)
			}
		}
		if q.Props().CountReadable {
			same(t, count(t, q), 1, "Count after Poison")
		}
		poison := q.PoisonQueue()
		peeked, err := poison.Peek(ctx, 10)
		ok(t, err, "Peek of the poison queue")
		same(t, bodies(peeked), []string{"bad"}, "Peek of the poison queue")
		d := receiveOne(t, poison, longLock)
		same(t, []any{string(d.Body), d.Reason}, []any{"bad", "cannot be decoded: \"é\""}, "the poisoned message")
		acknowledge(t, poison, d)
		same(t, len(receive(t, poison, 1, longLock)), 0, "messages of the poison queue after Acknowledge")
	}},
	{"the poison queue is there from the start", func(t *testing.T, e env) {
		poison := e.open(t, "cpu").PoisonQueue()
		if poison.Name() == "cpu" || poison.Name() == "" {
			t.Errorf("the poison queue of cpu is called %q", poison.Name())
		}
		peeked, err := poison.Peek(t.Context(), 1)
		ok(t, err, "Peek of the poison queue")
		same(t, len(peeked), 0, "messages of Peek")
	}},
	{"a lock of a killed process is free at once and counts", func(t *testing.T, e env) {
		if !e.KnowsOwners {
			t.Skip("the driver does not know which owners are alive")
		}
		q, other := e.open(t, "cpu"), e.Open()
		send(t, q, texts("a", "b")...)
		theirs := receiveOne(t, other.Queues.Queue("cpu"), longLock)
		mine := receiveOne(t, q, longLock)
		e.Kill(other)
		again := receiveOne(t, q, longLock)
		same(t, []any{again.ID, again.Count}, []any{theirs.ID, 2}, "the delivery after the death")
		same(t, len(receive(t, q, 1, longLock)), 0, "messages while the living one holds both")
		acknowledge(t, q, mine, again)
	}},
	{"a death frees locks also while others are visible", func(t *testing.T, e env) {
		if !e.KnowsOwners {
			t.Skip("the driver does not know which owners are alive")
		}
		q, other := e.open(t, "cpu"), e.Open()
		send(t, q, texts("a")...)
		receiveOne(t, other.Queues.Queue("cpu"), longLock)
		send(t, q, texts("b", "c")...)
		e.Kill(other)
		got := map[string]int{}
		for range 3 {
			d := receiveOne(t, q, longLock)
			got[string(d.Body)] = d.Count
		}
		same(t, got, map[string]int{"a": 2, "b": 1, "c": 1}, "deliveries by body")
	}},
}

var abilityCases = []testCase{
	{"a known id is dropped within the window, settled or not", func(t *testing.T, e env) {
		q := e.open(t, "cpu")
		if !q.Props().Deduplicates {
			send(t, q, port.Message{ID: "1", Body: []byte("a")}, port.Message{ID: "1", Body: []byte("b")})
			same(t, len(receive(t, q, 10, longLock)), 2, "messages with one id where nothing is dropped")
			return
		}
		send(t, q, port.Message{ID: "1", Body: []byte("a")}, port.Message{ID: "1", Body: []byte("b")})
		d := receiveOne(t, q, longLock)
		acknowledge(t, q, d)
		send(t, q, port.Message{ID: "1", Body: []byte("c")}, port.Message{ID: "2", Body: []byte("d")})
		same(t, bodies(receive(t, q, 10, longLock)), []string{"d"}, "messages after a repeat of a settled id")
	}},
	{"too many deliveries poison a message", func(t *testing.T, e env) {
		q := e.open(t, "cpu")
		limit := q.Props().DeliveryLimit
		if limit == 0 {
			send(t, q, texts("a")...)
			for i := range 12 {
				same(t, receiveOne(t, q, e.tick/4).Count, i+1, "Count")
			}
			same(t, len(receive(t, q.PoisonQueue(), 1, longLock)), 0, "messages of the poison queue")
			return
		}
		send(t, q, texts("a")...)
		for range limit {
			receiveOne(t, q, e.tick)
			e.lapse(q)
		}
		d := receiveOne(t, q.PoisonQueue(), longLock)
		if string(d.Body) != "a" || d.Reason == "" {
			t.Errorf("the poison queue gave %q with reason %q, want a and a reason", d.Body, d.Reason)
		}
		same(t, len(receive(t, q, 1, longLock)), 0, "messages of the queue after the limit")
	}},
	{"a delay above the limit is refused for that message alone", func(t *testing.T, e env) {
		q := e.open(t, "cpu")
		limit := q.Props().MaxDelay
		if limit == 0 {
			t.Skip("the driver declares no limit")
		}
		errs := q.Send(t.Context(), []port.Message{{ID: "1", Delay: limit + 1}, {ID: "2"}})
		if len(errs) != 2 {
			t.Fatalf("Send gave %d results, want one a message", len(errs))
		}
		fails(t, errs[0], fault.Invalid, "Send above the limit")
		ok(t, errs[1], "Send of its neighbour")
	}},
	{"a lock above the limit is cut", func(t *testing.T, e env) {
		q := e.open(t, "cpu")
		limit := q.Props().MaxLock
		if limit == 0 {
			t.Skip("the driver declares no limit")
		}
		send(t, q, texts("a")...)
		start := time.Now()
		d := receiveOne(t, q, 2*limit)
		if until := d.Until.Sub(start); until > limit+limit/4 {
			t.Errorf("a lock of %v was given for %v, want it cut to %v", 2*limit, until, limit)
		}
	}},
}
