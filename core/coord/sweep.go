package coord

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"jobq/core/engine"
	"jobq/core/fault"
	"jobq/core/msg"
	"jobq/core/port"
)

// sweepBatch bounds the rows that are taken up at a time. To know the oldest an
// index may have to read all that are due, so that few turns are better than many.
const sweepBatch = 2048

// Sweep looks at every workflow and claim that is due, and does whatever the
// state still says. It returns how many rows it took up. Nothing depends on a
// single turn of it, and any number may run at once.
func (c *Coordinator) Sweep(ctx context.Context) (int, error) {
	total, err := c.sweepRows(ctx)
	return total, errors.Join(err, c.honourFlags(ctx))
}

// sweepRows takes up the rows that are due, in the time of two rounds.
func (c *Coordinator) sweepRows(ctx context.Context) (int, error) {
	ctx, cancel := c.sched.WithTimeout(ctx, 2*c.roundTime(), "a sweep")
	defer cancel()
	now := c.sched.Now()
	total := 0
	var errs []error
	for moved := true; moved && ctx.Err() == nil; {
		rows, err := c.store.Index.DueBefore(ctx, now, sweepBatch)
		if err != nil {
			return total, err
		}
		failed := make([]error, len(rows))
		c.sched.Parallel(ctx, len(rows), c.o.Parallel, func(ctx context.Context, i int) {
			if ctx.Err() == nil { // else the next sweep begins with it
				failed[i] = c.sweepRow(ctx, rows[i])
			}
		})
		total += len(rows)
		errs = append(errs, failed...)
		// What could not even be postponed would come again and again.
		moved = len(rows) == sweepBatch && errors.Join(failed...) == nil
	}
	return total, errors.Join(errs...)
}

// sweepRow does what a row asks for. A row that cannot be dealt with now is
// moved, so that it does not stand before the others for ever.
func (c *Coordinator) sweepRow(ctx context.Context, d port.Due) error {
	var err error
	switch {
	case d.Note == kindPurge:
		err = c.purgeOnceMore(ctx, d)
	case d.Note != "":
		err = c.finishClaim(ctx, d)
	default:
		err = c.sweepWorkflow(ctx, d)
	}
	if err == nil {
		return nil
	}
	c.log.Warn("row not swept", "key", d.Key, "error", err)
	// That the time of the sweep is over may be why.
	ctx, cancel := c.sched.WithTimeout(context.WithoutCancel(ctx), c.roundTime()/2, "moving a row of the sweep")
	defer cancel()
	d.DueAt = c.sched.Now().Add(min(c.o.RepairThreshold, c.o.SweepInterval))
	return c.store.Index.PutDue(ctx, d)
}

func (c *Coordinator) sweepWorkflow(ctx context.Context, d port.Due) error {
	look := &item{event: engine.Wake{}, trace: true}
	j := &job{wf: d.Workflow, sweep: true, items: []*item{look}}
	var lost []poisoned
	e, looked := c.read(ctx, d.Workflow)
	if looked == nil {
		lost, looked = c.lookAfter(ctx, j, e)
		if look.trace = c.standsStill(ctx, e); !look.trace {
			j.next = c.sched.Now().Add(c.o.SweepInterval)
		}
	}
	err := c.run(ctx, j)
	if gone(err) {
		return c.store.Index.DeleteDue(ctx, d.Key, d.StateVersion)
	}
	if err != nil {
		return err
	}
	c.dropPoisoned(ctx, lost, j.resent)
	return cmp.Or(looked, j.rows)
}

// standsStill reports whether nobody is about to mark the intents of e as sent: a
// coordinator that lives does so within Options.TrailingSave. Where the state
// changes meanwhile the next sweep looks again.
func (c *Coordinator) standsStill(ctx context.Context, e *entry) bool {
	if len(e.run.Outstanding().Send) == 0 {
		return true
	}
	return c.sched.Sleep(ctx, 2*c.o.TrailingSave) == nil && c.confirm(ctx, e.run.State().ID, e) == nil
}

// finishClaim applies a command that its caller may have left half done.
func (c *Coordinator) finishClaim(ctx context.Context, d port.Due) error {
	var m claimed
	if err := json.Unmarshal([]byte(d.Note), &m); err != nil {
		return fault.Wrapf(fault.Corrupt, err, "the claim row %s cannot be read", d.Key)
	}
	var rows, err error
	if m.Kind == kindPurge {
		// One that has begun has a tombstone. Else nothing of it is there, and the workflow
		// may be what a submission was told since: no epoch is the right one.
		m.Epoch = math.MaxUint64
	}
	if m.Kind == kindSubmit {
		rows, err = c.finishSubmit(ctx, m.Command)
	} else {
		_, rows, err = c.applyCommand(ctx, &item{inbox: msg.Inbox{Command: &m.Command}, epoch: m.Epoch}, c.sched.Now())
	}
	switch {
	case fault.Is(err, fault.NotFound), fault.Is(err, fault.Invalid):
	case err != nil:
		return err
	case rows != nil:
		return rows
	}
	c.repaired("claim", m.Workflow)
	return c.store.Index.DeleteDue(ctx, d.Key, d.StateVersion)
}

// honourFlags turns the cancel flags of scripts into commands. It has time of its
// own: one row that hangs may take all of the others'.
func (c *Coordinator) honourFlags(ctx context.Context) error {
	ctx, cancel := c.sched.WithTimeout(ctx, c.roundTime(), "honouring cancel flags")
	defer cancel()
	flagged, err := c.store.Index.CancelRequests(ctx, sweepBatch)
	if err != nil {
		return err
	}
	errs := make([]error, len(flagged))
	c.sched.Parallel(ctx, len(flagged), c.o.Parallel, func(ctx context.Context, i int) {
		if errs[i] = c.honourFlag(ctx, flagged[i]); errs[i] != nil {
			c.log.Warn("cancel flag not honoured", "workflow", flagged[i].Workflow, "error", errs[i])
		}
	})
	return errors.Join(errs...)
}

func (c *Coordinator) honourFlag(ctx context.Context, row port.StoredRow) error {
	// The id is the same for all that meet this flag: whoever comes second, or a minute
	// later, repeats what the first one did.
	m := msg.Command{
		ID:       fmt.Sprintf("flag-%d-%d", row.BornEpoch, row.Epoch),
		Workflow: row.Workflow, Kind: kindCancel, By: "cancel_requested column",
	}
	// The flag gets its epoch before the save. From then on workers obey it and no
	// listing shows it: should the save fail, only the claim leads back here.
	if err := c.claim(ctx, m, 0); err != nil {
		return err
	}
	answer, rows, err := c.applyCommand(ctx, &item{inbox: msg.Inbox{Command: &m}}, c.sched.Now())
	if gone(err) {
		err = nil // nothing is as little to cancel as what has ended
	}
	if err == nil && rows == nil {
		err = c.unclaim(ctx, m)
	}
	if err == nil && !answer.Done {
		// Nothing to cancel: the flag must not be met for ever.
		want := port.CancelRequest{Requested: row.Cancel.Requested, Epoch: max(row.Epoch, 1)}
		_, err = c.store.Index.SetCancel(ctx, row.Workflow, want, row.Tag)
	}
	if fault.Is(err, fault.Conflict) {
		return nil // somebody else was at it: the next sweep sees
	}
	return err
}

func (c *Coordinator) repaired(cause, wf string) {
	c.stats.repair(cause)
	c.log.Info("repaired", "cause", cause, "workflow", wf)
}
