package storetest

import (
	"context"
	"iter"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"jobq/core/fault"
	"jobq/core/port"
)

// longLock outlives every case, so that only the case itself ends the lock.
const longLock = time.Hour

// ok fails the test at once when a call that must succeed did not.
func ok(t testing.TB, err error, call string) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s = error %v (%v), want success", call, err, fault.CodeOf(err))
	}
}

// fails checks the code of a call that must fail.
func fails(t testing.TB, err error, want fault.Code, call string) {
	t.Helper()
	if err == nil {
		t.Fatalf("%s succeeded, want fault %v", call, want)
	}
	if got := fault.CodeOf(err); got != want {
		t.Fatalf("%s = error %v with fault %v, want fault %v", call, err, got, want)
	}
}

// same compares what a call gave; nil and empty are equal.
func same(t testing.TB, got, want any, call string) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.EquateApproxTime(0)); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", call, diff)
	}
}

func collect(t testing.TB, names iter.Seq2[string, error], call string) []string {
	t.Helper()
	var all []string
	for name, err := range names {
		ok(t, err, call)
		all = append(all, name)
	}
	return all
}

// open ensures and opens a queue.
func (e env) open(t testing.TB, name string) port.Queue {
	t.Helper()
	ok(t, e.store.Queues.Ensure(t.Context(), name), "Ensure("+name+")")
	return e.store.Queues.Queue(name)
}

func send(t testing.TB, q port.Queue, messages ...port.Message) {
	t.Helper()
	for i, err := range q.Send(t.Context(), messages) {
		if err != nil {
			t.Fatalf("Send: message %d = error %v (%v), want success", i, err, fault.CodeOf(err))
		}
	}
}

func texts(bodies ...string) []port.Message {
	messages := make([]port.Message, len(bodies))
	for i, body := range bodies {
		messages[i] = port.Message{ID: "id-" + body, Body: []byte(body)}
	}
	return messages
}

// receive takes up to most messages without waiting.
func receive(t testing.TB, q port.Queue, most int, lock time.Duration) []port.Delivery {
	t.Helper()
	ds, err := q.Receive(t.Context(), port.ReceiveOptions{Max: most, Lock: lock})
	ok(t, err, "Receive")
	return ds
}

// receiveOne takes exactly one message, waiting for it within reason.
func receiveOne(t testing.TB, q port.Queue, lock time.Duration) port.Delivery {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		ds, err := q.Receive(ctx, port.ReceiveOptions{Max: 1, Lock: lock, Wait: 5 * time.Second})
		ok(t, err, "Receive")
		if len(ds) == 1 {
			return ds[0]
		}
		if !q.Props().CanWait {
			time.Sleep(time.Millisecond)
		}
	}
}

// receiveDue takes the message that may come from delay after start on. It looks at
// once: a machine may be so slow that the message is due even then, so it is the time
// of the answer that counts.
func (e env) receiveDue(t testing.TB, q port.Queue, start time.Time, delay time.Duration) port.Delivery {
	t.Helper()
	ds := receive(t, q, 1, longLock)
	if len(ds) == 0 {
		ds = append(ds, receiveOne(t, q, longLock))
	}
	if took := time.Since(start); took < delay-e.tick {
		t.Errorf("got %q after %v, want it after about %v", ds[0].Body, took, delay)
	}
	return ds[0]
}

func acknowledge(t testing.TB, q port.Queue, ds ...port.Delivery) {
	t.Helper()
	for _, err := range q.Acknowledge(t.Context(), ds) {
		ok(t, err, "Acknowledge")
	}
}

// lost checks the first result of an acknowledgement by a receipt that is not the
// newest.
func lost(t testing.TB, q port.Queue, errs []error, call string) {
	t.Helper()
	var err error
	if len(errs) > 0 {
		err = errs[0]
	}
	if err != nil || !q.Props().LostLooksGone {
		fails(t, err, fault.LeaseLost, call)
	}
}

func count(t testing.TB, q port.Queue) int {
	t.Helper()
	n, err := q.Count(t.Context())
	ok(t, err, "Count")
	return n
}

func bodies(ds []port.Delivery) []string {
	all := make([]string, len(ds))
	for i, d := range ds {
		all[i] = string(d.Body)
	}
	return all
}
