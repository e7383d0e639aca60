package coord

import (
	"context"

	"jobq/core/engine"
	"jobq/core/fault"
	"jobq/core/port"
	"jobq/core/state"
)

// load returns wf ready to be stepped. fresh says that the state was read from
// the store after this call began. Accepted sends that no stored state is known
// to hold are applied again.
func (c *Coordinator) load(ctx context.Context, wf string, known memo) (e *entry, fresh bool, err error) {
	e, carry := c.cache.take(wf)
	if e != nil {
		c.stats.cacheHits.Add(1)
		e.accepted = c.remark(e.run, e.accepted, carry)
		return e, false, nil
	}
	defer func() {
		if err != nil {
			c.cache.keepMarks(wf, carry)
		}
	}()
	doc, err := c.store.States.Load(ctx, wf, "")
	if err != nil {
		return nil, false, err
	}
	if e, err = c.decode(ctx, wf, doc); err != nil {
		return nil, false, err
	}
	e.memo = known
	e.accepted = c.remark(e.run, nil, carry)
	return e, true, nil
}

func (c *Coordinator) decode(ctx context.Context, wf string, doc port.Document) (*entry, error) {
	s, err := state.Decode(doc.Body)
	if err != nil {
		return nil, err
	}
	if s.Status == state.WorkflowPurged {
		return nil, &purgedError{s, doc.Tag}
	}
	p, err := c.planOf(ctx, wf, s.Definition)
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

// remark applies accepted sends again whose marks the state does not hold and
// returns those that still are marks of this process alone.
func (c *Coordinator) remark(run *engine.Run, have, carry []engine.Attempt) []engine.Attempt {
	for _, a := range carry {
		out, err := run.Step(engine.Dispatched{Task: a.Task, Attempt: a.Attempt}, c.sched.Now())
		if err == nil && out.Changed {
			have = append(have, a)
		}
	}
	return have
}

// current reports whether the stored state still is the one in e.
func (c *Coordinator) current(ctx context.Context, wf string, e *entry) (bool, error) {
	c.stats.conditionalReads.Add(1)
	doc, err := c.store.States.Load(ctx, wf, e.tag)
	return err == nil && doc.Unchanged, err
}

// save writes the state of e, or its tombstone. One attempt: only the loop in
// commit repeats it.
func (c *Coordinator) save(ctx context.Context, wf string, e *entry, purge bool) (err error) {
	s := e.run.State()
	s.Version++
	defer func() {
		if err != nil {
			s.Version--
		}
	}()
	s.UpdatedAt = c.sched.Now().UTC()
	if purge {
		s = s.Tombstone()
	}
	doc, err := state.Encode(s)
	if err != nil {
		return err
	}
	c.stats.saves.Add(1)
	tag, err := c.store.States.Save(ctx, wf, doc, e.tag)
	if err != nil {
		if fault.Is(err, fault.Conflict) {
			c.stats.conflicts.Add(1)
		}
		return err
	}
	e.tag, e.size, e.accepted = tag, entrySize(len(doc), e.plan.Len()), nil
	return nil
}

// purgedError is the answer of load for a tombstone.
type purgedError struct {
	tombstone *state.Workflow
	tag       port.Tag
}

func (e *purgedError) Error() string { return "workflow " + e.tombstone.ID + " was purged" }
