package coord

import (
	"context"
	"errors"
	"time"

	"jobq/core/fault"
	"jobq/core/port"
	"jobq/core/state"
)

// purgeAgain is when the data of a purged workflow is removed once more: what a
// straggler wrote after the first time.
const purgeAgain = 24 * time.Hour

// removeData deletes what a purged workflow leaves, after its tombstone is
// saved. Stopping in the middle leaves a due row by which the sweep goes on.
func (c *Coordinator) removeData(ctx context.Context, wf string, e *entry) error {
	s := e.run.State()
	due := port.Due{Key: wf, Workflow: wf, DueAt: c.sched.Now().Add(purgeAgain), StateVersion: s.Version, Note: kindPurge}
	if err := c.store.Index.PutDue(ctx, due); err != nil {
		return err
	}
	row := rowOf(e)
	row.Status = state.WorkflowPurged.String()
	if err := c.writePurgedRow(ctx, row); err != nil {
		return err
	}
	return c.deleteAll(ctx, wf)
}

func (c *Coordinator) writePurgedRow(ctx context.Context, row port.Row) error {
	for range recordTries {
		stored, err := c.store.Index.Get(ctx, row.Workflow)
		switch {
		case fault.Is(err, fault.NotFound):
			stored = port.StoredRow{}
		case err != nil:
			return err
		case newer(stored.Row, row):
			return nil
		}
		_, err = c.store.Index.Project(ctx, row, stored.Tag)
		if code := fault.CodeOf(err); err == nil || code != fault.Conflict && code != fault.Exists {
			return err
		}
	}
	return fault.New(fault.Conflict, "the index row keeps changing")
}

// deleteAll removes everything below the names of wf but its state.
func (c *Coordinator) deleteAll(ctx context.Context, wf string) error {
	return errors.Join(
		c.store.Records.DeleteAll(ctx, wf),
		c.store.Outputs.DeletePrefix(ctx, wf+"/"),
		c.store.Events.DeletePrefix(ctx, eventLog(wf)),
		c.store.TaskLogs.DeletePrefix(ctx, "logs/"+wf+"/"),
		c.store.States.DeleteDefinition(ctx, wf),
	)
}

// finishPurge removes the data of a tombstone once more and then its rows.
func (c *Coordinator) finishPurge(ctx context.Context, d port.Due) error {
	doc, err := c.store.States.Load(ctx, d.Workflow, "")
	if err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}
	if err == nil {
		s, err := state.Decode(doc.Body)
		if err != nil {
			return err
		}
		if s.Status != state.WorkflowPurged {
			// A new life has begun; its own due row replaces this one.
			return nil
		}
	}
	if err := c.deleteAll(ctx, d.Workflow); err != nil {
		return err
	}
	return errors.Join(c.store.Index.Delete(ctx, d.Workflow), c.store.Index.DeleteDue(ctx, d.Key))
}
