package storetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"jobq/core/fault"
	"jobq/core/port"
)

var queueCases = []testCase{
	{"a missing queue is not found on every method", func(t *testing.T, e env) {
		ctx, q := t.Context(), e.store.Queues.Queue("absent")
		d := port.Delivery{ID: "id", Receipt: "1.1"}
		for _, err := range q.Send(ctx, texts("a", "b")) {
			fails(t, err, fault.NotFound, "Send")
		}
		_, err := q.Receive(ctx, port.ReceiveOptions{Max: 1, Lock: longLock})
		fails(t, err, fault.NotFound, "Receive")
		fails(t, q.Extend(ctx, &d, longLock), fault.NotFound, "Extend")
		for _, err := range q.Acknowledge(ctx, []port.Delivery{d}) {
			fails(t, err, fault.NotFound, "Acknowledge")
		}
		fails(t, q.Release(ctx, d, 0), fault.NotFound, "Release")
		fails(t, q.Poison(ctx, d, "reason"), fault.NotFound, "Poison")
		_, err = q.Peek(ctx, 1)
		fails(t, err, fault.NotFound, "Peek")
		_, err = q.Clear(ctx)
		fails(t, err, fault.NotFound, "Clear")
		if q.Props().CountReadable {
			_, err = q.Count(ctx)
			fails(t, err, fault.NotFound, "Count")
		}
	}},
	{"ensuring twice keeps what is there", func(t *testing.T, e env) {
		q := e.open(t, "cpu")
		send(t, q, texts("a")...)
		same(t, e.open(t, "cpu").Name(), "cpu", "Name")
		same(t, bodies(receive(t, q, 10, longLock)), []string{"a"}, "Receive after the second Ensure")
	}},
	{"a message is delivered, acknowledged and gone", func(t *testing.T, e env) {
		q := e.open(t, "cpu")
		send(t, q, port.Message{ID: "w/a/1", Body: []byte("body")})
		ds := receive(t, q, 10, longLock)
		if len(ds) != 1 {
			t.Fatalf("Receive gave %d messages, want 1", len(ds))
		}
		d := ds[0]
		want := "w/a/1"
		if q.Props().AssignsID {
			want = d.ID
		}
		same(t, []any{d.ID, string(d.Body), d.Count, d.Reason}, []any{want, "body", 1, ""}, "the delivery")
		lock := longLock
		if limit := q.Props().MaxLock; limit > 0 {
			lock = min(lock, limit)
		}
		if left := time.Until(d.Until); d.Receipt == "" || left <= lock/2 || left > lock {
			t.Errorf("the delivery has receipt %q and is locked for %v, want a receipt and about %v", d.Receipt, left, lock)
		}
		same(t, len(receive(t, q, 10, longLock)), 0, "messages of a Receive while the only one is locked")
		acknowledge(t, q, d)
		same(t, len(receive(t, q, 10, longLock)), 0, "messages of a Receive after Acknowledge")
		if q.Props().CountReadable {
			same(t, count(t, q), 0, "Count")
		}
	}},
	{"an empty queue gives nothing and no error", func(t *testing.T, e env) {
		same(t, len(receive(t, e.open(t, "cpu"), 1, longLock)), 0, "messages of Receive")
	}},
	{"an empty body and a missing id are allowed", func(t *testing.T, e env) {
		q := e.open(t, "cpu")
		send(t, q, port.Message{}, port.Message{})
		ds := receive(t, q, 10, longLock)
		same(t, len(ds), 2, "messages of Receive")
		for _, d := range ds {
			same(t, len(d.Body), 0, "bytes of the body")
		}
	}},
	{"a batch is cut to what was asked for", func(t *testing.T, e env) {
		q := e.open(t, "cpu")
		send(t, q, texts("a", "b", "c", "d", "e")...)
		first, second := receive(t, q, 2, longLock), receive(t, q, 10, longLock)
		same(t, []int{len(first), len(second)}, []int{2, 3}, "messages of two receives")
		all := bodies(slices.Concat(first, second))
		slices.Sort(all)
		same(t, all, []string{"a", "b", "c", "d", "e"}, "messages of both receives")
	}},
	{"a crowd is sent and acknowledged whole", func(t *testing.T, e env) {
		crowd, q := e.crowd, e.open(t, "cpu")
		messages := make([]port.Message, crowd)
		for i := range messages {
			messages[i] = port.Message{ID: fmt.Sprint(i), Body: fmt.Append(nil, i)}
		}
		send(t, q, messages...)
		got := map[string]bool{}
		var all []port.Delivery
		for ds := receive(t, q, crowd, longLock); len(ds) > 0; ds = receive(t, q, crowd, longLock) {
			for _, d := range ds {
				got[string(d.Body)] = true
			}
			all = append(all, ds...)
		}
		same(t, []int{len(got), len(all)}, []int{crowd, crowd}, "messages received, different and in all")
		acknowledge(t, q, all...)
		peeked, err := q.Peek(t.Context(), 1)
		ok(t, err, "Peek")
		same(t, len(peeked), 0, "messages after Acknowledge")
	}},
	{"a wish above the largest batch is cut", func(t *testing.T, e env) {
		q := e.open(t, "cpu")
		most := q.Props().MaxBatch
		if most == 0 || most > 5000 {
			t.Skip("the driver declares no largest batch that a test can reach")
		}
		send(t, q, make([]port.Message, most+1)...)
		same(t, len(receive(t, q, most+1, longLock)), most, "messages of Receive")
	}},
	{"a receive without a number or a lock is refused", func(t *testing.T, e env) {
		q := e.open(t, "cpu")
		for _, o := range []port.ReceiveOptions{{Max: 0, Lock: longLock}, {Max: 1}, {Max: -1, Lock: longLock}} {
			_, err := q.Receive(t.Context(), o)
			fails(t, err, fault.Invalid, "Receive")
		}
	}},
	{"queues do not see each other", func(t *testing.T, e env) {
		cpu, gpu := e.open(t, "cpu"), e.open(t, "gpu")
		send(t, cpu, texts("a")...)
		same(t, len(receive(t, gpu, 10, longLock)), 0, "messages of the other queue")
		same(t, bodies(receive(t, cpu, 10, longLock)), []string{"a"}, "messages of the queue")
	}},
	{"another process receives and settles", func(t *testing.T, e env) {
		mine := e.open(t, "cpu")
		theirs := e.Open().Queues.Queue("cpu")
		send(t, mine, texts("a")...)
		d := receiveOne(t, theirs, longLock)
		same(t, len(receive(t, mine, 1, longLock)), 0, "messages while the other process has the only one")
		acknowledge(t, theirs, d)
	}},
	{"a message over the limit is refused, its neighbours are not", func(t *testing.T, e env) {
		q := e.open(t, "cpu")
		limit := q.Props().MaxMessage
		if limit == 0 {
			t.Skip("the driver declares no limit")
		}
		errs := q.Send(t.Context(), []port.Message{
			{ID: "1", Body: []byte("a")}, {ID: "2", Body: []byte(strings.Repeat("x", limit+1))}, {ID: "3", Body: []byte(strings.Repeat("x", limit))},
		})
		if len(errs) != 3 {
			t.Fatalf("Send gave %d results, want one a message", len(errs))
		}
		ok(t, errs[0], "Send of a small message")
		fails(t, errs[1], fault.TooLarge, "Send above the limit")
		ok(t, errs[2], "Send at the limit")
		same(t, len(receive(t, q, 3, longLock)), 2, "messages of Receive")
	}},
	{"a delayed message appears when it is due", func(t *testing.T, e env) {
		q := e.open(t, "cpu")
		start := time.Now()
		send(t, q, port.Message{ID: "1", Body: []byte("late"), Delay: 4 * e.tick}, port.Message{ID: "2", Body: []byte("never"), Delay: longLock})
		same(t, string(e.receiveDue(t, q, start, 4*e.tick).Body), "late", "the message after its delay")
		same(t, len(receive(t, q, 10, longLock)), 0, "messages whose delay is not over")
	}},
	{"the count has hidden messages too", func(t *testing.T, e env) {
		q := e.open(t, "cpu")
		if !q.Props().CountReadable {
			_, err := q.Count(t.Context())
			fails(t, err, fault.Invalid, "Count")
			return
		}
		send(t, q, texts("a", "b")...)
		send(t, q, port.Message{ID: "c", Delay: longLock})
		receive(t, q, 1, longLock)
		same(t, count(t, q), 3, "Count")
	}},
	{"a peek hides nothing and counts nothing", func(t *testing.T, e env) {
		q := e.open(t, "cpu")
		send(t, q, texts("a", "b", "c")...)
		ds, err := q.Peek(t.Context(), 2)
		ok(t, err, "Peek")
		same(t, len(ds), 2, "messages of Peek")
		for _, d := range ds {
			if !d.Until.IsZero() || d.Count != 0 {
				t.Errorf("Peek gave Until %v and Count %d, want none", d.Until, d.Count)
			}
		}
		for _, d := range receive(t, q, 3, longLock) {
			same(t, d.Count, 1, "Count of the first delivery after Peek")
		}
	}},
	{"clearing removes everything, hidden messages too", func(t *testing.T, e env) {
		q := e.open(t, "cpu")
		send(t, q, texts("a", "b")...)
		send(t, q, port.Message{ID: "c", Delay: longLock})
		d := receiveOne(t, q, longLock)
		n, err := q.Clear(t.Context())
		ok(t, err, "Clear")
		left := 0
		if q.Props().ClearLeavesLocked {
			left = 1
		}
		if q.Props().CountReadable {
			same(t, n, 3-left, "Clear")
			same(t, count(t, q), left, "Count")
		}
		acknowledge(t, q, d)
		send(t, q, texts("d")...)
		same(t, bodies(receive(t, q, 10, longLock)), []string{"d"}, "messages after Clear")
	}},
	{"bytes are owned by the caller on both ways", func(t *testing.T, e env) {
		q := e.open(t, "cpu")
		body := []byte("one")
		send(t, q, port.Message{ID: "1", Body: body})
		copy(body, "bad")
		ds, err := q.Peek(t.Context(), 1)
		ok(t, err, "Peek")
		copy(ds[0].Body, "bad")
		d := receiveOne(t, q, longLock)
		same(t, string(d.Body), "one", "the body after the caller changed its slices")
	}},
	{"a waiting receive ends with its time", func(t *testing.T, e env) {
		q := e.open(t, "cpu")
		if !q.Props().CanWait {
			t.Skip("the driver cannot wait")
		}
		start := time.Now()
		ds, err := q.Receive(t.Context(), port.ReceiveOptions{Max: 1, Lock: longLock, Wait: 2 * e.tick})
		ok(t, err, "Receive")
		if took := time.Since(start); len(ds) != 0 || took < 2*e.tick {
			t.Errorf("Receive gave %d messages after %v, want none after %v", len(ds), took, 2*e.tick)
		}
	}},
	{"a waiting receive ends with its context", func(t *testing.T, e env) {
		q := e.open(t, "cpu")
		if !q.Props().CanWait {
			t.Skip("the driver cannot wait")
		}
		ctx, cancel := context.WithTimeout(t.Context(), e.tick)
		defer cancel()
		_, err := q.Receive(ctx, port.ReceiveOptions{Max: 1, Lock: longLock, Wait: longLock})
		fails(t, err, fault.Canceled, "Receive")
	}},
	{"a waiting receive wakes for a message of any process", func(t *testing.T, e env) {
		q := e.open(t, "cpu")
		if !q.Props().CanWait {
			t.Skip("the driver cannot wait")
		}
		for name, sender := range map[string]port.Queue{"its own": q, "another": e.Open().Queues.Queue("cpu")} {
			got := make(chan string, 1)
			go func() {
				ds, err := q.Receive(t.Context(), port.ReceiveOptions{Max: 1, Lock: longLock, Wait: 20 * time.Second})
				if err != nil || len(ds) != 1 {
					got <- "no message"
					return
				}
				got <- string(ds[0].Body)
			}()
			e.pass(1)
			start := time.Now()
			send(t, sender, texts(name)...)
			same(t, <-got, name, "message of the waiting Receive")
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("a message of %s process woke the Receive after %v", name, took)
			}
		}
	}},
}
