package coord

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"jobq/core/dag"
	"jobq/core/engine"
	"jobq/core/fault"
	"jobq/core/msg"
	"jobq/core/port"
	"jobq/core/state"
)

// sweepBatch bounds the rows that one sweep takes up.
const sweepBatch = 256

// Sweep looks at every workflow and claim that is due, and does whatever the
// state still says. It returns how many rows it took up. Nothing depends on a
// single turn of it, and any number may run at once.
func (c *Coordinator) Sweep(ctx context.Context) (int, error) {
	rows, err := c.store.Index.DueBefore(ctx, c.sched.Now(), sweepBatch)
	if err != nil {
		return 0, err
	}
	errs := make([]error, len(rows))
	c.sched.Parallel(ctx, len(rows), c.o.Parallel, func(ctx context.Context, i int) {
		ctx, cancel := c.sched.WithTimeout(ctx, c.o.roundTime(), "a sweep of one workflow")
		defer cancel()
		errs[i] = c.sweepRow(ctx, rows[i])
	})
	flagged, err := c.store.Index.CancelRequests(ctx, sweepBatch)
	errs = append(errs, err)
	for _, row := range flagged {
		errs = append(errs, c.honourFlag(ctx, row))
	}
	for i, err := range errs {
		if err != nil && i < len(rows) {
			c.log.Warn("row not swept", "key", rows[i].Key, "error", err)
		}
	}
	return len(rows), errors.Join(errs...)
}

func (c *Coordinator) sweepRow(ctx context.Context, d port.Due) error {
	switch {
	case d.Note == kindPurge:
		return c.finishPurge(ctx, d)
	case d.Note != "":
		return c.finishClaim(ctx, d)
	}
	j := &job{wf: d.Workflow, items: []item{{event: engine.Wake{}, trace: true}}}
	err := c.update(ctx, j)
	_, purged := errors.AsType[*purgedError](err)
	if purged || fault.Is(err, fault.NotFound) {
		return c.store.Index.DeleteDue(ctx, d.Key)
	}
	if err != nil {
		return err
	}
	next, err := c.repairRunning(ctx, d.Workflow)
	if err != nil {
		return err
	}
	return c.dueAgain(ctx, d, next)
}

// dueAgain moves the due row of a workflow that was looked at.
func (c *Coordinator) dueAgain(ctx context.Context, d port.Due, next time.Time) error {
	e, marks := c.cache.take(d.Workflow)
	c.cache.keepMarks(d.Workflow, marks)
	if e == nil {
		return nil
	}
	defer c.cache.put(d.Workflow, e)
	if e.run.State().Status.Ended() {
		e.memo.stale = true
		c.project(ctx, d.Workflow, e, true)
		return nil
	}
	due := c.sched.Now().Add(c.o.RepairThreshold)
	if !next.IsZero() && next.Before(due) {
		due = next
	}
	d.DueAt, d.StateVersion = due, e.run.State().Version
	e.memo.dueAt = due
	return c.store.Index.PutDue(ctx, d)
}

// finishClaim applies a command that its caller may have left half done.
func (c *Coordinator) finishClaim(ctx context.Context, d port.Due) error {
	var m msg.Command
	if err := json.Unmarshal([]byte(d.Note), &m); err != nil {
		return fault.Wrapf(fault.Corrupt, err, "the claim row %s cannot be read", d.Key)
	}
	var err error
	if m.Kind == kindSubmit {
		err = c.finishSubmit(ctx, m)
	} else {
		_, err = c.applyCommand(ctx, m)
	}
	if err != nil && !fault.Is(err, fault.NotFound) && !fault.Is(err, fault.Invalid) {
		return err
	}
	c.repaired("claim")
	return c.store.Index.DeleteDue(ctx, d.Key)
}

// finishSubmit completes a submission whose definition is stored.
func (c *Coordinator) finishSubmit(ctx context.Context, m msg.Command) error {
	var args submitArgs
	if err := json.Unmarshal(m.Args, &args); err != nil {
		return fault.Wrap(fault.Invalid, err, "the claim of a submission cannot be read")
	}
	body, err := c.store.States.Definition(ctx, m.Workflow)
	if err != nil {
		return err
	}
	d, err := dag.Decode(body)
	if err != nil {
		return err
	}
	p, err := newPlan(d)
	if err != nil {
		return err
	}
	_, err = c.start(ctx, m.Workflow, p, args.Namespace)
	return err
}

// honourFlag turns the cancel flag of a script into a command.
func (c *Coordinator) honourFlag(ctx context.Context, row port.StoredRow) error {
	m := msg.Command{ID: "flag-" + c.newID(), Workflow: row.Workflow, Kind: kindCancel, By: "cancel_requested column"}
	answer, err := c.applyCommand(ctx, m)
	if err == nil && !answer.Done {
		// Nothing to cancel: the flag must not be met for ever.
		want := port.CancelRequest{Requested: row.Cancel.Requested, Epoch: max(row.Epoch, 1)}
		_, err = c.store.Index.SetCancel(ctx, row.Workflow, want, row.Tag)
	}
	return err
}

func (c *Coordinator) repaired(cause string) {
	c.stats.repairs.Add(1)
	c.log.Info("sweep repair", "cause", cause)
}

// foreverAfter is after how long a running task whose queue cannot be counted
// is sent again all the same.
const foreverAfter = 24 * time.Hour

// repairRunning looks after tasks that have been running for long: their record
// may hold an end that nobody heard of, or their message may be lost. It
// returns when it wants to look again.
func (c *Coordinator) repairRunning(ctx context.Context, wf string) (next time.Time, err error) {
	e, err := c.peek(ctx, wf)
	if err != nil || e.run.State().Status.Ended() || e.run.Cancelling() {
		return time.Time{}, err
	}
	s := e.run.State()
	var items []item
	var lost []engine.Attempt
	for t, status := range s.TaskStatus {
		if status != state.Running {
			continue
		}
		at := time.UnixMilli(s.StartedAt[t]).Add(c.o.RunningRepair)
		if at.After(c.sched.Now()) {
			if next.IsZero() || at.Before(next) {
				next = at
			}
			continue
		}
		a := engine.Attempt{Task: int32(t), Attempt: s.Attempt[t]}
		key := port.RecordKey{Workflow: wf, Task: e.plan.Name(a.Task), Attempt: a.Attempt}
		stored, record, err := c.readRecord(ctx, key)
		switch {
		case err == nil && record.Ended != nil:
			c.repaired("ended record")
			items = append(items, endedItem(a, *record.Ended))
		case fault.Is(err, fault.NotFound), err == nil && (record.Free || stored.Stale(record.TTL)):
			lost = append(lost, a)
		case err != nil:
			return next, err
		}
	}
	if len(items) > 0 {
		if err := c.update(ctx, &job{wf: wf, items: items}); err != nil {
			return next, err
		}
	}
	return next, c.resendLost(ctx, wf, e, lost)
}

// resendLost sends attempts again whose message is nowhere.
func (c *Coordinator) resendLost(ctx context.Context, wf string, e *entry, lost []engine.Attempt) error {
	for _, a := range lost {
		t := &e.plan.Definition().Tasks[a.Task]
		q := c.store.Queues.Queue(e.run.State().Namespace + t.Queue)
		gone, err := c.messageGone(ctx, q, e, a)
		if err != nil {
			return err
		}
		if !gone {
			continue
		}
		// The saved version makes the id of the new message unlike any before.
		if err := c.save(ctx, wf, e, false); err != nil {
			return err
		}
		body, err := c.taskMessage(ctx, e, a, q.Props().MaxMessage)
		if err != nil {
			return err
		}
		id := msg.RepairID(wf, t.Name, a.Attempt, e.run.State().Version)
		if err := firstError(q.Send(ctx, []port.Message{{ID: id, Body: body}})); err != nil {
			return err
		}
		c.repaired("lost message")
	}
	return nil
}

// messageGone reports whether the message of a running attempt that nobody
// holds is in no queue any more, as far as can be told.
func (c *Coordinator) messageGone(ctx context.Context, q port.Queue, e *entry, a engine.Attempt) (bool, error) {
	if c.o.ForeignWorkers {
		return false, nil
	}
	if q.Props().CountReadable {
		n, err := q.Count(ctx)
		if fault.Is(err, fault.NotFound) {
			return true, c.store.Queues.Ensure(ctx, q.Name())
		}
		if err != nil || n == 0 {
			return n == 0 && err == nil, err
		}
	}
	age := c.sched.Now().Sub(time.UnixMilli(e.run.State().StartedAt[a.Task]))
	return age >= foreverAfter, nil
}
