package coord_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"jobq/core/msg"
	"jobq/core/port"
	"jobq/core/sched"
	"jobq/store/memory"
	"jobq/store/wrap/faults"
)

// A sweep that ran out of time moves its rows all the same: left where they are,
// they would stand before the others at every turn.
func TestARowIsMovedThoughItsSweepHasNoTimeLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		w := onMemory(t, memory.Options{})
		w.Know(diamond())
		mustSubmit(t, w.Start("client"), "w", diamond())
		time.Sleep(6 * time.Minute)
		sweeper := w.Start("sweeper", at("States.Load", time.Hour))
		if n, err := sweeper.Sweep(ctx); n != 1 {
			t.Errorf("Sweep = %d, %v, want one row", n, err)
		}
		if due, err := w.Store.Index.DueBefore(ctx, time.Now(), 10); len(due) > 0 || err != nil {
			t.Errorf("due after the sweep: %v, %v; want none", due, err)
		}
	})
}

// Thousands of tasks that wait in a queue for hours are looked after within the
// time of a sweep, however slow the store is, a part at a time: an end that nobody
// heard of is found in the end.
func TestALongQueueIsLookedAfterInParts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const n = 30_000
		ctx := t.Context()
		var lines []string
		for i := range n {
			lines = append(lines, fmt.Sprintf("t%05d", i))
		}
		d := graph(lines...)
		w := onMemory(t, memory.Options{})
		w.Scheduler = sched.Real{}
		w.Know(d)
		mustSubmit(t, w.Start("client"), "w", d)
		last := d.Tasks[n-1].Name
		body, err := msg.EncodeRecord(msg.AttemptRecord{Start: 1, Ended: &msg.Ended{Completion: &msg.Completion{
			Workflow: "w", Task: last, Attempt: 1, Success: true,
		}}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Store.Records.Create(ctx, port.RecordKey{Workflow: "w", Task: last, Attempt: 1}, port.Record{Body: body}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Hour)
		reads := 0
		sweeper := w.Start("sweeper", func(c faults.Call) faults.Fate {
			if c.Op != "Records.Read" {
				return faults.Fate{}
			}
			reads++ // one call at a time is decided
			return faults.Fate{Delay: 200 * time.Millisecond}
		})
		ended := func() bool {
			s, err := sweeper.Status(ctx, "w")
			return err == nil && s.Counts.Completed == 1
		}
		turns := 0
		for ; turns < 100 && !ended(); turns++ {
			before := reads
			if _, err := sweeper.Sweep(ctx); err != nil {
				t.Fatalf("Sweep = %v", err)
			}
			if due, err := w.Store.Index.DueBefore(ctx, time.Now(), 10); len(due) > 0 || err != nil {
				t.Fatalf("due after a sweep: %v, %v; want none", due, err)
			}
			if got := reads - before; got > 6_000 {
				t.Fatalf("a sweep read %d records", got)
			}
			time.Sleep(5 * time.Minute)
		}
		if !ended() {
			t.Errorf("the end in the record of %s was not found in %d sweeps", last, turns)
		}
	})
}

// A flag on the row of a workflow that does not exist is met once, not at every
// turn: enough of them would leave no room for the others.
func TestAFlagOnNothingIsMetOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		w := onMemory(t, memory.Options{})
		index := w.Store.Index
		tag, err := index.Project(ctx, port.Row{Workflow: "nothing", Status: "running"}, "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := index.SetCancel(ctx, "nothing", port.CancelRequest{Requested: true}, tag); err != nil {
			t.Fatal(err)
		}
		sweeper := w.Start("sweeper")
		if _, err := sweeper.Sweep(ctx); err != nil {
			t.Errorf("Sweep = %v", err)
		}
		if rows, err := index.CancelRequests(ctx, 10); len(rows) > 0 || err != nil {
			t.Errorf("CancelRequests after a sweep = %v, %v; want none", rows, err)
		}
		if due, err := index.DueBefore(ctx, time.Now().Add(time.Hour), 10); len(due) > 0 || err != nil {
			t.Errorf("due after a sweep: %v, %v; want none", due, err)
		}
	})
}

// To know the oldest due rows Azure's index reads all of them.
func TestASweepReadsTheDueRowsOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const n = 400
		ctx := t.Context()
		w := onMemory(t, memory.Options{})
		w.Scheduler = sched.Real{}
		w.Know(graph("A"))
		client := w.Start("client")
		for i := range n {
			mustSubmit(t, client, fmt.Sprintf("w%04d", i), graph("A"))
		}
		time.Sleep(2 * time.Hour)
		var looks atomic.Int32
		sweeper := w.Start("sweeper", func(c faults.Call) faults.Fate {
			if c.Op == "Index.DueBefore" {
				looks.Add(1)
			}
			return faults.Fate{}
		})
		if rows, err := sweeper.Sweep(ctx); rows != n || err != nil {
			t.Fatalf("Sweep = %d rows, %v, want %d", rows, err, n)
		}
		if got := looks.Load(); got != 1 {
			t.Errorf("the due rows were read %d times, want once", got)
		}
	})
}

// The flag of a script is honoured though a workflow that cannot be read takes all
// the time of the due rows, at every turn.
func TestFlagsAreHonouredBesideARowThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		w := onMemory(t, memory.Options{})
		w.Know(diamond())
		client := w.Start("client")
		mustSubmit(t, client, "hangs", diamond())
		time.Sleep(6 * time.Minute)
		mustSubmit(t, client, "w", diamond())
		row, err := w.Store.Index.Get(ctx, "w")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Store.Index.SetCancel(ctx, "w", port.CancelRequest{Requested: true}, row.Tag); err != nil {
			t.Fatal(err)
		}
		sweeper := w.Start("sweeper", func(c faults.Call) faults.Fate {
			if c.Op == "States.Load" && c.Key == "hangs" {
				return faults.Fate{Delay: time.Hour}
			}
			return faults.Fate{}
		})
		if n, err := sweeper.Sweep(ctx); n != 1 {
			t.Errorf("Sweep = %d, %v, want one row", n, err)
		}
		if s, err := sweeper.Status(ctx, "w"); err != nil || s.Status != "cancelled" {
			t.Errorf("Status = %+v, %v, want cancelled", s, err)
		}
	})
}
