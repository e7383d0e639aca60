package coord

import (
	"context"
	"errors"

	"jobq/core/engine"
	"jobq/core/fault"
	"jobq/core/port"
	"jobq/core/state"
)

// absentError is the verdict that a workflow does not exist: its very state was
// not found where it would be. No other not-found means that.
type absentError struct {
	wf    string
	cause error
}

func (e *absentError) Error() string { return "workflow " + e.wf + " does not exist" }
func (e *absentError) Unwrap() error { return fault.Wrap(fault.NotFound, e.cause, e.Error()) }

// Absent returns the error that workflow id does not exist, as its state, which was
// looked for and not found because of cause, says.
func Absent(id string, cause error) error { return &absentError{id, cause} }

// AbsentWorkflow returns the workflow of which err says that it does not exist.
func AbsentWorkflow(err error) (id string, ok bool) {
	if e, absent := errors.AsType[*absentError](err); absent {
		return e.wf, true
	}
	return "", false
}

// purgedError is the answer of a load that meets a tombstone.
type purgedError struct {
	tombstone *state.Workflow
	tag       port.Tag
}

func (e *purgedError) Error() string { return "workflow " + e.tombstone.ID + " was purged" }
func (e *purgedError) Unwrap() error { return fault.New(fault.NotFound, e.Error()) }

// gone reports whether err is the verdict that a workflow does not exist.
func gone(err error) bool {
	_, absent := errors.AsType[*absentError](err)
	_, purged := errors.AsType[*purgedError](err)
	return absent || purged
}

// errStale says that a cached state turned out not to be the stored one.
var errStale = fault.New(fault.Conflict, "the cached state was out of date")

// load returns wf ready to be stepped, from the cache unless fresh is asked for.
// Accepted sends that no stored state is known to have are applied again.
func (c *Coordinator) load(ctx context.Context, wf string, fresh bool) (*entry, error) {
	e := c.cache.take(wf)
	if e == nil || fresh {
		var err error
		if e, err = c.read(ctx, wf); err != nil {
			return nil, err
		}
		e.fresh = true
	} else {
		c.stats.cacheHits.Add(1)
		e.fresh = false
	}
	return e, c.remark(wf, e)
}

// read returns wf as it is stored.
func (c *Coordinator) read(ctx context.Context, wf string) (*entry, error) {
	doc, err := c.store.States.Load(ctx, wf, "")
	if fault.Is(err, fault.NotFound) {
		return nil, &absentError{wf, err}
	}
	if err != nil {
		return nil, err
	}
	s, err := state.Decode(doc.Body)
	if err != nil {
		return nil, err
	}
	if s.Status == state.WorkflowPurged {
		return nil, &purgedError{s, doc.Tag}
	}
	p, err := c.planOf(ctx, s)
	if err != nil {
		return nil, err
	}
	run, err := engine.NewRun(p.Plan, s)
	if err != nil {
		return nil, err
	}
	return &entry{run: run, plan: p, tag: doc.Tag, size: entrySize(len(doc.Body), p.Len())}, nil
}

// entrySize estimates the memory of an entry from the size of its document.
func entrySize(doc, tasks int) int { return 4*doc + 64*tasks + 1024 }

// confirm fails with errStale unless the stored state still is the one in e.
func (c *Coordinator) confirm(ctx context.Context, wf string, e *entry) error {
	c.stats.conditionalReads.Add(1)
	doc, err := c.store.States.Load(ctx, wf, e.tag)
	if err == nil && !doc.Unchanged || fault.Is(err, fault.NotFound) {
		return errStale
	}
	return err
}

// save writes the state of e, or the tombstone that it becomes. One attempt:
// only the loop in commit repeats it. After an error e must be thrown away.
func (c *Coordinator) save(ctx context.Context, wf string, e *entry, purge bool) error {
	s := e.run.State()
	s.Version++
	s.UpdatedAt = c.sched.Now().UTC()
	if purge {
		s = tombstoneOf(s)
	}
	doc, err := state.Encode(s)
	if err != nil {
		return err
	}
	c.stats.saves.Add(1)
	tag, err := e.tag, error(nil)
	if tag == "" {
		tag, err = c.store.States.Create(ctx, wf, doc)
	} else {
		tag, err = c.store.States.Save(ctx, wf, doc, tag)
	}
	if err != nil {
		return err
	}
	c.dropMarks(wf, e.marked)
	e.tag, e.size, e.marked, e.fresh = tag, entrySize(len(doc), e.plan.Len()), nil, true
	return nil
}
