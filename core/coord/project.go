package coord

import (
	"context"
	"slices"
	"time"

	"jobq/core/fault"
	"jobq/core/port"
	"jobq/core/state"
)

// project writes the index row of e where it is due: at once when urgent, else
// at most once in Options.ProjectInterval. Failure costs nothing but the age of
// a listing, and is tried again with the next change or sweep.
func (c *Coordinator) project(ctx context.Context, wf string, e *entry, urgent bool) {
	now := c.sched.Now()
	if !e.memo.stale || !urgent && now.Sub(e.memo.projected) < c.o.ProjectInterval {
		return
	}
	if err := c.projectRow(ctx, wf, e); err != nil {
		c.log.Warn("index row not written", "workflow", wf, "error", err)
		return
	}
	e.memo.stale, e.memo.projected = false, now
}

// projectRow writes the row and the due row, upward only.
func (c *Coordinator) projectRow(ctx context.Context, wf string, e *entry) error {
	if err := c.projectDue(ctx, wf, e); err != nil {
		return err
	}
	row := rowOf(e)
	for range recordTries {
		tag, err := c.store.Index.Project(ctx, row, e.memo.rowTag)
		if err == nil {
			e.memo.rowTag = tag
			return nil
		}
		if code := fault.CodeOf(err); code != fault.Exists && code != fault.Conflict {
			return err
		}
		stored, err := c.store.Index.Get(ctx, wf)
		switch {
		case fault.Is(err, fault.NotFound):
			e.memo.rowTag = ""
		case err != nil:
			return err
		case newer(stored.Row, row):
			e.memo.rowTag = ""
			return nil
		default:
			e.memo.rowTag = stored.Tag
		}
	}
	return fault.New(fault.Conflict, "the index row keeps changing")
}

// newer reports whether row a was made from a later state than b.
func newer(a, b port.Row) bool {
	if a.BornEpoch != b.BornEpoch {
		return a.BornEpoch > b.BornEpoch
	}
	return a.StateVersion > b.StateVersion
}

// projectDue keeps the row by which the sweep finds a workflow that has not
// ended, and removes it at the end.
func (c *Coordinator) projectDue(ctx context.Context, wf string, e *entry) error {
	s := e.run.State()
	now := c.sched.Now()
	if s.Status.Ended() {
		if err := c.store.Index.DeleteDue(ctx, wf); err != nil {
			return err
		}
		e.memo.dueAt = time.Time{}
		return nil
	}
	due := now.Add(c.o.RepairThreshold)
	if until := e.run.ParkedUntil(); !until.IsZero() && until.Before(due) {
		due = until
	}
	if e.run.Cancelling() {
		due = now.Add(min(c.o.RepairThreshold, time.Minute))
	}
	if !e.memo.dueAt.IsZero() && !due.Before(e.memo.dueAt) && e.memo.dueAt.Sub(now) > c.o.RepairThreshold/2 {
		return nil
	}
	if err := c.store.Index.PutDue(ctx, port.Due{Key: wf, Workflow: wf, DueAt: due, StateVersion: s.Version}); err != nil {
		return err
	}
	e.memo.dueAt = due
	return nil
}

func rowOf(e *entry) port.Row {
	s := e.run.State()
	d := e.plan.Definition()
	return port.Row{
		Workflow: s.ID, Name: d.Name, Status: s.Status.String(),
		StateVersion: s.Version, Epoch: s.Epoch, BornEpoch: s.BornEpoch,
		Counts: countsOf(e), DefaultQueue: d.DefaultQueue, Queues: e.plan.queues(),
		CreatedAt: s.CreatedAt, UpdatedAt: s.UpdatedAt, Error: s.Error,
	}
}

func countsOf(e *entry) port.Counts {
	n := e.run.Counts()
	return port.Counts{
		Total: n.Total(), Pending: n.Pending, Ready: n.Ready, Running: n.Running, Completed: n.Completed,
		Failed: n.Failed, UpstreamFailed: n.UpstreamFailed, Skipped: n.Skipped, Cancelled: n.Cancelled,
	}
}

// flagCancel writes the columns that workers poll. It only ever writes upward:
// a flag of a later epoch belongs to a later command.
func (c *Coordinator) flagCancel(ctx context.Context, wf string, e *entry, want port.CancelRequest) error {
	for range recordTries {
		stored, err := c.store.Index.Get(ctx, wf)
		switch {
		case fault.Is(err, fault.NotFound):
			e.memo.rowTag = ""
			row := rowOf(e)
			row.StateVersion = 0 // anything that is saved is newer
			if _, err := c.store.Index.Project(ctx, row, ""); err != nil && !fault.Is(err, fault.Exists) {
				return err
			}
			continue
		case err != nil:
			return err
		case stored.Cancel.Epoch > want.Epoch || stored.Cancel == want:
			return nil
		case !want.Requested && !stored.Cancel.Requested && stored.Cancel.Epoch == 0:
			return nil
		}
		tag, err := c.store.Index.SetCancel(ctx, wf, want, stored.Tag)
		if err == nil {
			e.memo.rowTag = tag
			return nil
		}
		if !fault.Is(err, fault.Conflict) {
			return err
		}
	}
	return fault.New(fault.Conflict, "the index row keeps changing")
}

// queues returns the queues of the plan's tasks, ascending.
func (p *plan) queues() []string {
	p.queuesOnce.Do(func() {
		for i := range p.Definition().Tasks {
			p.queueNames = append(p.queueNames, p.Definition().Tasks[i].Queue)
		}
		slices.Sort(p.queueNames)
		p.queueNames = slices.Compact(p.queueNames)
	})
	return p.queueNames
}

// ended reports whether a row speaks of a workflow that has ended.
func ended(status string) bool {
	for _, s := range state.WorkflowStatuses() {
		if s.String() == status {
			return s.Ended()
		}
	}
	return false
}
