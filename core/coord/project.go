package coord

import (
	"context"
	"slices"
	"time"

	"jobq/core/fault"
	"jobq/core/port"
)

// project writes the index row and the due row of e where that is due: at once
// for a caller who waits, at the end of a workflow, or where it became due earlier
// than its row says, else at most once in Options.ProjectInterval. After a failure
// the rows stay stale, and this process tries again until they are written.
//
// The messages of the job, and those that wait behind it, wait for the rows. So a
// table that hangs gets a short time, and then is left alone for longer.
func (c *Coordinator) project(ctx context.Context, j *job, e *entry) error {
	now := c.sched.Now()
	due := c.due(j, e)
	var n note
	c.note(j.wf, func(stored *note) {
		stored.stale = stored.stale || j.sweep || j.direct || j.traced
		n = *stored
	})
	rests, earlier := now.Before(n.rowsAgain), !n.dueAt.IsZero() && due.Before(n.dueAt)
	urgent := j.direct || j.sweep || j.settled || j.commanded || earlier && !rests
	if !n.stale {
		return nil
	}
	if !urgent && (rests || now.Sub(n.projected) < c.o.ProjectInterval) {
		c.noteTrailing(j.wf)
		return nil
	}
	if !j.direct && !j.sweep {
		var cancel context.CancelFunc
		ctx, cancel = c.sched.WithTimeout(ctx, min(rowsTime, c.roundTime()/4), "writing index rows")
		defer cancel()
	}
	if err := c.projectRows(ctx, j, e, n, due); err != nil {
		c.log.Warn("index rows not written", "workflow", j.wf, "error", err)
		rest := max(rowsRest, min(fault.RetryAfter(err), lastWake))
		c.note(j.wf, func(n *note) { n.rowsAgain = c.sched.Now().Add(rest) })
		c.noteTrailing(j.wf)
		return err
	}
	return nil
}

const (
	// rowsTime is how long the rows of a workflow that nobody waits for may take.
	rowsTime = 2 * time.Second
	// rowsRest is how long they rest when they could not be written.
	rowsRest = 5 * time.Second
)

// projectRows writes the due row of a workflow that goes on before its row, and
// removes that of one that ended after it: between the two the sweep finds it.
func (c *Coordinator) projectRows(ctx context.Context, j *job, e *entry, n note, due time.Time) error {
	now := c.sched.Now()
	s := e.run.State()
	if !s.Status.Ended() && (j.direct || j.sweep || j.commanded || n.dueEpoch != s.Epoch || due.Before(n.dueAt) || n.dueAt.Sub(now) < c.o.RepairThreshold/2) {
		if err := c.putDue(ctx, j.wf, e, due); err != nil {
			return err
		}
	}
	tag := n.rowTag
	if tag == "" || n.rowVersion <= s.Version {
		var err error
		if tag, err = c.projectRow(ctx, rowOf(e), tag); err != nil {
			return err
		}
	}
	if s.Status.Ended() {
		if err := c.dropDue(ctx, j.wf, e); err != nil {
			return err
		}
	}
	c.note(j.wf, func(n *note) {
		n.projected, n.rowsAgain = now, time.Time{}
		n.stale = n.stale && n.saved > s.Version
		n.atRow(tag, s.Version)
	})
	return nil
}

// atRow notes the tag of a row with the state of version, empty where there is a
// later one whose tag is not known.
func (n *note) atRow(tag port.Tag, version uint64) {
	if tag == "" || n.rowVersion <= version {
		n.rowTag, n.rowVersion = tag, version
	}
}

// due returns when the sweep must look at e if nothing happens.
func (c *Coordinator) due(j *job, e *entry) time.Time {
	now := c.sched.Now()
	due := now.Add(c.o.RepairThreshold)
	if e.run.Cancelling() {
		due = now.Add(min(c.o.RepairThreshold, time.Minute))
	}
	for _, t := range []time.Time{e.run.ParkedUntil(), j.next} {
		if !t.IsZero() && t.Before(due) {
			due = t
		}
	}
	return due
}

func (c *Coordinator) putDue(ctx context.Context, wf string, e *entry, due time.Time) error {
	s := e.run.State()
	err := c.store.Index.PutDue(ctx, port.Due{Key: wf, Workflow: wf, DueAt: due, StateVersion: s.Version})
	if err == nil {
		c.note(wf, func(n *note) { n.dueAt, n.dueEpoch = due, s.Epoch })
	}
	return err
}

// dropDue removes the due row of a workflow that ended, but not that of a retry: a
// command puts one of its own state before its claim goes.
func (c *Coordinator) dropDue(ctx context.Context, wf string, e *entry) error {
	err := c.store.Index.DeleteDue(ctx, wf, e.run.State().Version)
	if err == nil {
		c.note(wf, func(n *note) { n.dueAt = time.Time{} })
	}
	return err
}

// projectRow writes row, upward only, and returns its tag, or an empty one where
// the row of a later state is there. What it learns of the stored row is noted at
// once: of a slow table a job may have the time for one call and not for the next.
func (c *Coordinator) projectRow(ctx context.Context, row port.Row, tag port.Tag) (port.Tag, error) {
	for range recordTries {
		written, err := c.store.Index.Project(ctx, row, tag)
		if err == nil {
			c.note(row.Workflow, func(n *note) { n.atRow(written, row.StateVersion) })
		}
		if code := fault.CodeOf(err); err == nil || code != fault.Exists && code != fault.Conflict {
			return written, err
		}
		stored, err := c.store.Index.Get(ctx, row.Workflow)
		switch {
		case fault.Is(err, fault.NotFound):
			tag = ""
		case err != nil:
			return "", err
		case newer(stored.Row, row):
			return "", nil
		default:
			tag = stored.Tag
			c.note(row.Workflow, func(n *note) { n.rowTag, n.rowVersion = tag, min(stored.StateVersion, row.StateVersion) })
		}
	}
	return "", fault.New(fault.Unavailable, "the index row keeps changing")
}

// newer reports whether row a was made from a later state than b.
func newer(a, b port.Row) bool {
	if a.BornEpoch != b.BornEpoch {
		return a.BornEpoch > b.BornEpoch
	}
	return a.StateVersion > b.StateVersion
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

// flagCancel writes the columns that workers poll, only ever upward. A request
// carries the epoch of its command; its withdrawal is written as no request at
// all, so that the flag of a script, which has no epoch, is seen after it. Of two
// commands that run for the same epoch the state decides: a request is left
// standing, because the loser may be the one that withdraws it, and workers obey
// it only in messages of an earlier epoch. That of a script is left standing where
// honour says that there is something to cancel: the next sweep does.
func (c *Coordinator) flagCancel(ctx context.Context, wf string, e *entry, want port.CancelRequest, honour bool) (rival bool, err error) {
	epoch := want.Epoch
	if !want.Requested {
		want.Epoch = 0
	}
	for range recordTries {
		stored, err := c.store.Index.Get(ctx, wf)
		switch {
		case fault.Is(err, fault.NotFound):
			row := rowOf(e)
			row.StateVersion = 0 // anything that is saved is newer
			if _, err := c.store.Index.Project(ctx, row, ""); err != nil && !fault.Is(err, fault.Exists) {
				return false, err
			}
			continue
		case err != nil:
			return false, err
		case stored.Cancel.Epoch == epoch && !want.Requested:
			return stored.Cancel.Requested, nil
		case stored.Cancel == want, stored.Cancel.Epoch > epoch, honour && !want.Requested && ofScript(stored.Cancel):
			return false, nil
		}
		if err := c.setCancel(ctx, stored, want); err == nil || !fault.Is(err, fault.Conflict) {
			return false, err
		}
	}
	return false, fault.New(fault.Unavailable, "the index row keeps changing")
}

// ofScript reports whether r is the request of one that knows no epochs.
func ofScript(r port.CancelRequest) bool { return r.Requested && r.Epoch == 0 }

// setCancel changes the columns of a row that was just read.
func (c *Coordinator) setCancel(ctx context.Context, row port.StoredRow, to port.CancelRequest) error {
	tag, err := c.store.Index.SetCancel(ctx, row.Workflow, to, row.Tag)
	if err == nil {
		c.note(row.Workflow, func(n *note) { n.rowTag, n.rowVersion = tag, row.StateVersion })
	}
	return err
}

// dropRequest withdraws the request of a cancel that lost against what e tells: its
// epoch began without it, or can never begin with it since the workflow has ended
// first. Workers that know no epochs would go on obeying it.
func (c *Coordinator) dropRequest(ctx context.Context, e *entry) error {
	s := e.run.State()
	if s.CancelRequested {
		return nil
	}
	last := s.Epoch
	if s.Status.Ended() {
		last++
	}
	for range recordTries {
		stored, err := c.store.Index.Get(ctx, s.ID)
		switch r := stored.Cancel; {
		case fault.Is(err, fault.NotFound):
			return nil
		case err != nil:
			return err
		case !r.Requested || r.Epoch == 0 || r.Epoch > last:
			return nil
		}
		if err := c.setCancel(ctx, stored, port.CancelRequest{}); err == nil || !fault.Is(err, fault.Conflict) {
			return err
		}
	}
	return fault.New(fault.Unavailable, "the index row keeps changing")
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
