package coord

import (
	"context"
	"errors"
	"time"

	"jobq/core/fault"
	"jobq/core/msg"
	"jobq/core/port"
	"jobq/core/state"
)

// purgeAgain is when the data of a purged workflow is removed once more: what a
// straggler wrote after the first time.
const purgeAgain = 24 * time.Hour

// purgeKey names the due row of the second removal. It is neither the workflow's own
// due row, which a late projection may write or delete, nor that of a claim, whose
// command has an id.
func purgeKey(wf string) string { return wf + "!" }

// tombstoneOf returns the tombstone of s. While it names a definition its data is
// being removed, and no new life of the id may begin: the names of the old data
// are those of the new.
func tombstoneOf(s *state.Workflow) *state.Workflow {
	t := s.Tombstone()
	t.Definition = s.Definition
	return t
}

// removing reports whether the data of a tombstone is being removed.
func removing(tombstone *state.Workflow) bool { return tombstone.Definition != "" }

// remove deletes what a purged workflow left and then opens its id for a new
// life. Stopping in the middle leaves the purge's claim or due row, by which the
// sweep goes on.
func (c *Coordinator) remove(ctx context.Context, t *state.Workflow, tag port.Tag) error {
	if err := c.writePurgedRow(ctx, t); err != nil {
		return err
	}
	if err := c.deleteAll(ctx, t); err != nil {
		return err
	}
	again := port.Due{Key: purgeKey(t.ID), Workflow: t.ID, DueAt: c.sched.Now().Add(purgeAgain), Note: kindPurge}
	if err := c.store.Index.PutDue(ctx, again); err != nil {
		return err
	}
	if err := c.store.Index.DeleteDue(ctx, t.ID, t.Version); err != nil {
		return err
	}
	_, err := c.saveTombstone(ctx, t, tag, "")
	return err
}

// saveTombstone writes t with what it is removing. A conflict means that another
// process did the same, or that a new life has begun after one had.
func (c *Coordinator) saveTombstone(ctx context.Context, t *state.Workflow, tag port.Tag, removing string) (port.Tag, error) {
	t.Version++
	t.Definition = removing
	t.UpdatedAt = c.sched.Now().UTC()
	doc, err := state.Encode(t)
	if err != nil {
		return "", err
	}
	return c.store.States.Save(ctx, t.ID, doc, tag)
}

func (c *Coordinator) writePurgedRow(ctx context.Context, t *state.Workflow) error {
	for range recordTries {
		stored, err := c.store.Index.Get(ctx, t.ID)
		row := stored.Row
		switch {
		case fault.Is(err, fault.NotFound):
			row = port.Row{Workflow: t.ID, CreatedAt: t.CreatedAt}
		case err != nil:
			return err
		}
		row.Status, row.UpdatedAt = t.Status.String(), t.UpdatedAt
		row.StateVersion, row.Epoch, row.BornEpoch = t.Version, t.Epoch, t.BornEpoch
		if err == nil && newer(stored.Row, row) {
			return nil
		}
		_, err = c.store.Index.Project(ctx, row, stored.Tag)
		if code := fault.CodeOf(err); err == nil || code != fault.Conflict && code != fault.Exists {
			return err
		}
	}
	return fault.New(fault.Unavailable, "the index row keeps changing")
}

// deleteAll removes what the lives up to that of t left below their names. A
// process that is held up in the middle may go on when others have finished and a
// later life has begun: what belongs to that one has names of its own, which it
// leaves alone. Only the outputs of workers without records have names that lives
// share.
func (c *Coordinator) deleteAll(ctx context.Context, t *state.Workflow) error {
	wf := t.ID
	later := func(attemptOf func(name string) (uint32, bool)) func(name string) bool {
		return func(name string) bool {
			attempt, ok := attemptOf(name)
			return ok && attempt > t.HighestAttempt
		}
	}
	return errors.Join(
		c.store.Records.DeleteAll(ctx, wf, t.HighestAttempt),
		c.store.Outputs.DeletePrefix(ctx, wf+"/", later(msg.AttemptOf)),
		c.store.Events.DeletePrefix(ctx, eventLogs(wf), func(name string) bool { return bornOf(name) > t.BornEpoch }),
		c.store.TaskLogs.DeletePrefix(ctx, "logs/"+wf+"/", later(msg.AttemptOfLog)),
		c.store.States.DeleteDefinition(ctx, state.DefinitionKey(wf, t.BornEpoch)),
	)
}

// purgeOnceMore removes what was written below the names of a tombstone after
// the first removal.
func (c *Coordinator) purgeOnceMore(ctx context.Context, d port.Due) error {
	_, err := c.read(ctx, d.Workflow)
	p, purged := errors.AsType[*purgedError](err)
	_, absent := errors.AsType[*absentError](err)
	switch {
	case err == nil || absent:
		// A new life has begun: what is there is its own.
		return c.store.Index.DeleteDue(ctx, d.Key, d.StateVersion)
	case !purged:
		return err
	}
	tag := p.tag
	if !removing(p.tombstone) {
		// Nobody may begin a new life while its names are being emptied.
		if tag, err = c.saveTombstone(ctx, p.tombstone, tag, kindPurge); err != nil {
			return err
		}
	}
	if err := c.deleteAll(ctx, p.tombstone); err != nil {
		return err
	}
	if _, err := c.saveTombstone(ctx, p.tombstone, tag, ""); err != nil {
		return err
	}
	return c.store.Index.DeleteDue(ctx, d.Key, d.StateVersion)
}
