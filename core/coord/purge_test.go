package coord_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"jobq/core/coord"
	"jobq/core/fault"
	"jobq/core/msg"
	"jobq/core/port"
	"jobq/core/sched"
	"jobq/store/memory"
)

// held keeps the deletions of a process on their way: they arrive when arrive is
// called.
type held struct{ calls []func() error }

var errHeld = fault.New(fault.Unavailable, "no answer")

func (h *held) keep(f func() error) error {
	h.calls = append(h.calls, f)
	return errHeld
}

func (h *held) arrive(t *testing.T) {
	t.Helper()
	for _, call := range h.calls {
		if err := call(); err != nil {
			t.Errorf("a held deletion = %v", err)
		}
	}
}

type heldRecords struct {
	port.Records
	h *held
}

func (v heldRecords) DeleteAll(ctx context.Context, wf string, last uint32) error {
	return v.h.keep(func() error { return v.Records.DeleteAll(context.WithoutCancel(ctx), wf, last) })
}

type heldOutputs struct {
	port.Blobs
	h *held
}

func (v heldOutputs) DeletePrefix(ctx context.Context, prefix string, keep func(string) bool) error {
	return v.h.keep(func() error { return v.Blobs.DeletePrefix(context.WithoutCancel(ctx), prefix, keep) })
}

type heldLog struct {
	port.Log
	h *held
}

func (v heldLog) DeletePrefix(ctx context.Context, prefix string, keep func(string) bool) error {
	return v.h.keep(func() error { return v.Log.DeletePrefix(context.WithoutCancel(ctx), prefix, keep) })
}

type heldStates struct {
	port.States
	h *held
}

func (v heldStates) DeleteDefinition(ctx context.Context, key string) error {
	return v.h.keep(func() error { return v.States.DeleteDefinition(context.WithoutCancel(ctx), key) })
}

// A purge is held up in the middle, and its deletions arrive when the sweep has
// finished it and the id lives again. They take nothing of the new life.
func TestAPurgeThatWasHeldUpSparesTheNextLife(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		w := onMemory(t, memory.Options{})
		w.Scheduler = sched.Real{}
		one, two := graph("A"), graph("A", "B < A")
		w.Know(one)
		client := w.Start("client")
		mustSubmit(t, client, "w", one)
		w.Take(ctx)
		w.Report(ctx, failed("A"))
		if _, err := client.Drain(ctx, time.Minute, nil); err != nil {
			t.Fatal(err)
		}
		h := &held{}
		store := *w.Store
		store.Records, store.Outputs, store.States = heldRecords{store.Records, h}, heldOutputs{store.Outputs, h}, heldStates{store.States, h}
		store.Events, store.TaskLogs = heldLog{store.Events, h}, heldLog{store.TaskLogs, h}
		slow := coord.New(&store, sched.Real{}, w.Options)
		if _, err := slow.Purge(ctx, "w", coord.Command{ID: "p"}); !fault.Is(err, fault.Unavailable) {
			t.Fatalf("Purge = %v, want unavailable", err)
		}
		time.Sleep(2 * time.Minute)
		if _, err := client.Sweep(ctx); err != nil {
			t.Fatal(err)
		}
		w.Know(two)
		mustSubmit(t, client, "w", two)
		if n := w.Take(ctx); n != 1 {
			t.Fatalf("%d tasks were sent, want 1", n)
		}
		key := port.RecordKey{Workflow: "w", Task: "A", Attempt: 2}
		if _, err := w.Store.Records.Create(ctx, key, port.Record{Body: []byte("{}")}); err != nil {
			t.Fatal(err)
		}
		if err := w.Store.Outputs.Put(ctx, "w/__outputs/A/2.1.json", []byte("1")); err != nil {
			t.Fatal(err)
		}
		log := msg.LogName("w", "A", 2, 1)
		if err := w.Store.TaskLogs.Append(ctx, log, []byte("hello")); err != nil {
			t.Fatal(err)
		}
		if h.arrive(t); len(h.calls) < 5 {
			t.Fatalf("%d deletions were held, want five kinds", len(h.calls))
		}
		if n, err := w.Store.TaskLogs.Size(ctx, log); n != 5 || err != nil {
			t.Errorf("the log of the new life has %d bytes, %v", n, err)
		}
		history, err := client.History(ctx, "w")
		if err != nil || len(history) == 0 || history[0].Command != "submit" {
			t.Errorf("the history of the new life = %+v, %v, want it to begin with its submission", history, err)
		}
		for _, ev := range history {
			if ev.Command == "purge" || ev.Attempt == 1 {
				t.Errorf("the history of the new life has %+v of the life before", ev)
			}
		}
		if _, err := w.Store.Records.Read(ctx, key); err != nil {
			t.Errorf("the record of the new life: %v", err)
		}
		if _, err := w.Store.Outputs.Get(ctx, "w/__outputs/A/2.1.json"); err != nil {
			t.Errorf("the output of the new life: %v", err)
		}
		if _, err := w.Start("cold").Status(ctx, "w"); err != nil {
			t.Errorf("the status by a process that never met the definition: %v", err)
		}
	})
}
