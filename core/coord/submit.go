package coord

import (
	"context"
	"encoding/json"
	"errors"

	"jobq/core/dag"
	"jobq/core/engine"
	"jobq/core/fault"
	"jobq/core/msg"
	"jobq/core/port"
	"jobq/core/state"
)

// Submission is a workflow to be accepted.
type Submission struct {
	// ID is chosen by the caller and repeated with every try.
	ID         string
	Definition *dag.Definition
	// Namespace separates the queues of runs of one machine; empty elsewhere.
	Namespace string
	By        string
}

// Submitted is the answer to an accepted submission.
type Submitted struct {
	ID string `json:"workflow_id"`
	// Already says that the same definition was submitted under this id before.
	Already bool `json:"already_submitted,omitempty"`
}

// submitArgs is what a claim of a submission keeps.
type submitArgs struct {
	Namespace string `json:"namespace,omitempty"`
}

// Submit accepts a workflow: when it returns nil, it runs, whoever stops. A
// repeat under the same id with the same definition completes what is missing
// and says Already; another definition is fault.Conflict.
func (c *Coordinator) Submit(ctx context.Context, s Submission) (Submitted, error) {
	if err := dag.CheckWorkflowID(s.ID); err != nil {
		return Submitted{}, err
	}
	p, err := newPlan(s.Definition)
	if err != nil {
		return Submitted{}, err
	}
	args, err := json.Marshal(submitArgs{s.Namespace})
	if err != nil {
		return Submitted{}, fault.Wrap(fault.Internal, err, "the submission cannot be encoded")
	}
	m := msg.Command{ID: kindSubmit + "-" + p.hash[:16], Workflow: s.ID, Kind: kindSubmit, By: s.By, Args: args}
	if err := c.store.Queues.Ensure(ctx, s.Namespace+c.o.Inbox); err != nil {
		return Submitted{}, err
	}
	if err := c.claim(ctx, m); err != nil {
		return Submitted{}, err
	}
	if err := c.storeDefinition(ctx, s.ID, s.Definition, p); err != nil {
		if fault.Is(err, fault.Conflict) {
			err = errors.Join(err, c.unclaim(ctx, m))
		}
		return Submitted{}, err
	}
	c.plans.put(p)
	already, err := c.start(ctx, s.ID, p, s.Namespace)
	if err != nil {
		return Submitted{}, err
	}
	if err := c.unclaim(ctx, m); err != nil {
		c.log.Warn("claim row stays until the sweep", "workflow", s.ID, "error", err)
	}
	return Submitted{ID: s.ID, Already: already}, nil
}

// storeDefinition writes the definition of wf, or finds the same one there.
func (c *Coordinator) storeDefinition(ctx context.Context, wf string, d *dag.Definition, p *plan) error {
	body, err := dag.Encode(d)
	if err != nil {
		return err
	}
	for range 3 {
		err := c.store.States.CreateDefinition(ctx, wf, body)
		if err == nil || !fault.Is(err, fault.Exists) {
			return err
		}
		stored, err := c.store.States.Definition(ctx, wf)
		if fault.Is(err, fault.NotFound) {
			continue
		}
		if err != nil {
			return err
		}
		other, err := dag.Decode(stored)
		if err == nil && dag.Hash(other) == p.hash {
			return nil
		}
		gone, err := c.leftByPurge(ctx, wf)
		if err != nil {
			return err
		}
		if !gone {
			return fault.Newf(fault.Conflict, "workflow %s exists with another definition", wf).
				WithRemedy("choose another id, or purge the old workflow first")
		}
		if err := c.store.States.DeleteDefinition(ctx, wf); err != nil {
			return err
		}
	}
	return fault.Newf(fault.Conflict, "workflow %s is being submitted and purged at the same time", wf)
}

// leftByPurge reports whether the definition of wf is a remainder: its state is
// a tombstone.
func (c *Coordinator) leftByPurge(ctx context.Context, wf string) (bool, error) {
	doc, err := c.store.States.Load(ctx, wf, "")
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	s, err := state.Decode(doc.Body)
	return err == nil && s.Status == state.WorkflowPurged, err
}

// start creates the state of wf if there is none and sends what is ready.
func (c *Coordinator) start(ctx context.Context, wf string, p *plan, namespace string) (already bool, err error) {
	for range 3 {
		doc, err := c.store.States.Load(ctx, wf, "")
		var previous *state.Workflow
		switch {
		case fault.Is(err, fault.NotFound):
		case err != nil:
			return false, err
		default:
			_, err := c.decode(ctx, wf, doc)
			purged, gone := errors.AsType[*purgedError](err)
			if !gone {
				return true, c.update(ctx, &job{wf: wf, items: []item{{trace: true, event: engine.Wake{}}}})
			}
			previous = purged.tombstone
		}
		err = c.create(ctx, wf, p, namespace, previous, doc.Tag)
		if code := fault.CodeOf(err); err == nil || code != fault.Exists && code != fault.Conflict {
			return false, err
		}
	}
	return false, fault.Newf(fault.Conflict, "the state of workflow %s keeps changing", wf)
}

// create makes the first state of a life of wf: activated and judged, so that
// whoever loads it finds its intents.
func (c *Coordinator) create(ctx context.Context, wf string, p *plan, namespace string, previous *state.Workflow, tag port.Tag) error {
	now := c.sched.Now().UTC()
	s := engine.Begin(p.Plan, wf, p.hash, previous, now)
	s.Namespace = namespace
	run, err := engine.NewRun(p.Plan, s)
	if err != nil {
		return err
	}
	e := &entry{run: run, plan: p, tag: tag}
	j := &job{wf: wf}
	var b batch
	if _, err := c.apply(e, &b, engine.Activated{}, j); err != nil {
		return err
	}
	if err := c.evaluate(ctx, e, &b); err != nil {
		return err
	}
	if previous != nil {
		err = c.save(ctx, wf, e, false)
	} else {
		err = c.createState(ctx, wf, e)
	}
	if err != nil {
		return err
	}
	if next := c.perform(ctx, j, e, b); len(next) > 0 {
		c.cache.put(wf, e)
		j.items = next
		return c.update(ctx, j)
	}
	e.memo.stale = true
	err = c.finish(ctx, j, e, batch{command: true, unavailable: b.unavailable})
	c.cache.put(wf, e)
	return err
}

func (c *Coordinator) createState(ctx context.Context, wf string, e *entry) error {
	s := e.run.State()
	s.Version = 1
	doc, err := state.Encode(s)
	if err != nil {
		return err
	}
	c.stats.saves.Add(1)
	e.tag, err = c.store.States.Create(ctx, wf, doc)
	e.size = entrySize(len(doc), e.plan.Len())
	return err
}
