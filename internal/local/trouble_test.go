package local

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"jobq/core/fault"
	"jobq/core/port"
	"jobq/store/memory"
	"jobq/worker/logs"
)

func TestTroubleIsToldOnceUntilItIsOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var told []error
		tr := trouble{tell: func(err error) { told = append(told, err) }}
		full := fault.New(fault.Unavailable, "the disk is full")
		lost := fault.New(fault.Conflict, "somebody else was faster")
		tr.note(nil)
		tr.note(lost)
		tr.note(full)
		tr.note(full)
		tr.note(lost)
		if len(told) != 1 || tr.present() != full {
			t.Fatalf("told = %v, present = %v, want the full disk once", told, tr.present())
		}
		time.Sleep(tellAgain)
		tr.note(full)
		tr.note(nil)
		tr.note(nil)
		if len(told) != 3 || told[1] != full || told[2] != nil || tr.present() != nil {
			t.Errorf("told = %v, present = %v, want it again after a while, then that it is over", told, tr.present())
		}
	})
}

func TestWritesAreWatched(t *testing.T) {
	t.Parallel()
	store := memory.New(memory.Options{}).Port()
	var tr trouble
	watched := tr.watch(store)
	stopped, stop := context.WithCancelCause(t.Context())
	stop(fault.New(fault.Unavailable, "the store is away"))
	if _, err := watched.Records.Create(t.Context(), port.RecordKey{Workflow: "w", Task: "t", Attempt: 1}, port.Record{}); err != nil {
		t.Fatal(err)
	}
	if err := watched.Outputs.Put(stopped, "a", nil); err == nil {
		t.Error("Put with an ended context = nil")
	}
	if err := watched.Outputs.Put(t.Context(), "a", nil); err != nil || tr.present() != nil {
		t.Errorf("Put = %v, trouble %v", err, tr.present())
	}
}

func TestAStopThatTheStoreHoldsUpIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		told := make(chan error, 1)
		full := fault.New(fault.Unavailable, "the disk is full")
		r := &run{o: Options{KillTimeout: time.Second, OnStuck: func(err error) { told <- err }}, trouble: &trouble{}}
		done := r.overdue(errWorkflowEnded)
		r.trouble.note(full)
		time.Sleep(time.Second + stuckAfter - time.Nanosecond)
		synctest.Wait()
		if len(told) > 0 {
			t.Error("told within the time that commands have")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if len(told) != 1 || !errors.Is(<-told, full) {
			t.Error("not told, or without the reason")
		}
		done()

		// In time, or without a limit, nothing is told.
		r.overdue(errWorkflowEnded)()
		r.o.KillTimeout = -1
		defer r.overdue(errWorkflowEnded)()
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		if len(told) > 0 {
			t.Error("told of a stop that is over")
		}
	})
}

// What the store refuses is known also while nobody reads what is told of it: a stop
// asks for it.
func TestTroubleIsKnownWhileItIsBeingTold(t *testing.T) {
	t.Parallel()
	told, read := make(chan error), make(chan struct{})
	tr := &trouble{tell: func(err error) { told <- err; <-read }}
	full := fault.New(fault.Unavailable, "the disk is full")
	var wg sync.WaitGroup
	wg.Go(func() { _ = tr.note(full) })
	if got := <-told; got != full {
		t.Errorf("told was %v, want %v", got, full)
	}
	if got := tr.present(); got != full {
		t.Errorf("present = %v while it is told, want %v", got, full)
	}
	close(read)
	wg.Wait()
}

// A stop is not called stuck for a log that the store does not take.
func TestAStopMayStoreTheEndOfALog(t *testing.T) {
	t.Parallel()
	if stuckAfter < logs.CloseBound+lastWords {
		t.Errorf("a stop may take %v, with the end of a log that may take %v", stuckAfter, logs.CloseBound)
	}
}
