package coord

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

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
// and says Already; another definition is fault.Conflict. Fails with
// fault.Unavailable while an earlier life of the id is being purged.
func (c *Coordinator) Submit(ctx context.Context, s Submission) (Submitted, error) {
	if err := dag.CheckWorkflowID(s.ID); err != nil {
		return Submitted{}, err
	}
	d, err := validated(s.Definition)
	if err != nil {
		return Submitted{}, err
	}
	s.Definition = d
	p, err := newPlan(d)
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
	if err := c.claim(ctx, m, 0); err != nil {
		return Submitted{}, err
	}
	already, rows, err := c.begins(ctx, s, p)
	switch {
	case rows != nil:
		c.log.Warn("index rows are left to the sweep", "workflow", s.ID, "error", rows)
	case err == nil, errors.Is(err, errOtherDefinition):
		if unclaim := c.unclaim(ctx, m); unclaim != nil {
			c.log.Warn("claim row stays until the sweep", "workflow", s.ID, "error", unclaim)
		}
	case fault.Is(err, fault.Conflict):
		// A lost race refuses nothing: the workflow may have been accepted, and the
		// claim stays.
		err = fault.Wrapf(fault.Unavailable, err, "workflow %s is not submitted to the end, others keep changing it", s.ID).
			WithRemedy("the sweep completes it; the same call can be made again")
	default:
		// The claim stays. It may be that of an earlier call, which stopped between
		// its save and its sends: then it is the only trace.
	}
	if err != nil {
		return Submitted{}, err
	}
	return Submitted{ID: s.ID, Already: already}, nil
}

// validated returns d with its defaults, or says what is wrong with it.
func validated(d *dag.Definition) (*dag.Definition, error) {
	whole := *d
	whole.Tasks = slices.Clone(d.Tasks)
	dag.ApplyDefaults(&whole)
	problems := dag.Validate(&whole)
	if len(problems) == 0 {
		return &whole, nil
	}
	err := fault.Newf(fault.Invalid, "the definition does not validate: %s", problems[0].Message)
	if more := len(problems) - 1; more > 0 {
		err = fault.Newf(fault.Invalid, "the definition does not validate: %s; and %d more", problems[0].Message, more)
	}
	return nil, err
}

// begins makes sure that the workflow lives by this definition: it begins a life,
// or finds one that has begun. rows is why the index rows could not be written.
func (c *Coordinator) begins(ctx context.Context, s Submission, p *plan) (already bool, rows, err error) {
	end := c.sched.Now().Add(c.o.CommandPatience)
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		j, err := c.beginOnce(ctx, s, p)
		if err == nil {
			return !j.born, j.rows, nil
		}
		if refusedSubmission(err) || !c.sched.Now().Before(end) {
			return false, nil, err
		}
		if err := c.sched.Sleep(ctx, c.jitter(wait)); err != nil {
			return false, nil, err
		}
	}
}

func (c *Coordinator) beginOnce(ctx context.Context, s Submission, p *plan) (*job, error) {
	e, err := c.read(ctx, s.ID)
	purged, gone := errors.AsType[*purgedError](err)
	_, absent := errors.AsType[*absentError](err)
	switch {
	case absent:
		return c.beginLife(ctx, s, p, nil, "")
	case gone && removing(purged.tombstone):
		return nil, fault.Newf(fault.Unavailable, "workflow %s is being purged", s.ID)
	case gone:
		return c.beginLife(ctx, s, p, purged.tombstone, purged.tag)
	case err != nil:
		return nil, err
	case e.plan.hash != p.hash:
		return nil, otherDefinition(s.ID)
	default:
		return c.joinLife(ctx, s.ID, e)
	}
}

// refusedSubmission reports whether a submission fails however often it is tried.
// A workflow that is not found is one that another process is about to begin or
// to purge.
func refusedSubmission(err error) bool {
	return errors.Is(err, errOtherDefinition) || !passing(err) && !fault.Is(err, fault.NotFound)
}

var errOtherDefinition = errors.New("the definition that is stored differs")

func otherDefinition(wf string) error {
	return fault.Wrapf(fault.Conflict, errOtherDefinition, "workflow %s exists with another definition", wf).
		WithRemedy("choose another id, or purge the old workflow once it has ended")
}

// joinLife completes what an earlier submission may have left. It may also be
// sending at this very moment: what is unsent is left to a wake that comes when
// the marks of its sends are stored.
func (c *Coordinator) joinLife(ctx context.Context, wf string, e *entry) (*job, error) {
	j := &job{wf: wf, items: []*item{{event: engine.Wake{}}}, direct: true, patience: joinPatience}
	j.left = len(e.run.Outstanding().Send) > 0
	return j, c.run(ctx, j)
}

const joinPatience = 5 * time.Second

// beginLife stores the definition and the first state of a life of the id:
// activated and judged, so that whoever loads it finds its intents.
func (c *Coordinator) beginLife(ctx context.Context, s Submission, p *plan, previous *state.Workflow, tag port.Tag) (*job, error) {
	// The state keeps milliseconds: the first row must have no others.
	first := engine.Begin(p.Plan, s.ID, p.hash, previous, c.sched.Now().UTC().Truncate(time.Millisecond))
	first.Namespace = s.Namespace
	if err := c.storeDefinition(ctx, first, s.Definition, p); err != nil {
		return nil, err
	}
	c.plans.put(p)
	run, err := engine.NewRun(p.Plan, first)
	if err != nil {
		return nil, err
	}
	e := &entry{run: run, plan: p, tag: tag, fresh: true}
	if previous != nil {
		// A flag that a script left on the old life is not about the new one.
		if _, err := c.flagCancel(ctx, s.ID, e, port.CancelRequest{Epoch: first.Epoch}, false); err != nil {
			return nil, err
		}
	}
	j := &job{wf: s.ID, first: e, by: s.By, direct: true, items: []*item{{event: engine.Activated{}}}}
	return j, c.run(ctx, j)
}

// storeDefinition writes the definition of the life that first begins, or finds
// the same one there. The caller saw no living state: with another definition,
// somebody else is between this write and his first state.
func (c *Coordinator) storeDefinition(ctx context.Context, first *state.Workflow, d *dag.Definition, p *plan) error {
	wf, key := first.ID, state.DefinitionKey(first.ID, first.BornEpoch)
	body, err := dag.Encode(d)
	if err != nil {
		return err
	}
	err = c.store.States.CreateDefinition(ctx, key, body)
	if !fault.Is(err, fault.Exists) {
		return err
	}
	stored, err := c.store.States.Definition(ctx, key)
	if fault.Is(err, fault.NotFound) {
		return fault.Newf(fault.Unavailable, "workflow %s is being purged", wf)
	}
	if err != nil {
		return err
	}
	other, err := dag.Decode(stored)
	if err != nil {
		return err
	}
	if dag.Hash(other) != p.hash {
		return otherDefinition(wf)
	}
	return nil
}

// finishSubmit completes a submission whose definition is stored.
func (c *Coordinator) finishSubmit(ctx context.Context, m msg.Command) (rows, err error) {
	var args submitArgs
	if err := json.Unmarshal(m.Args, &args); err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the claim of a submission cannot be read")
	}
	p, err := c.submitted(ctx, m.Workflow)
	if err != nil {
		return nil, err
	}
	d := p.Definition()
	already, rows, err := c.begins(ctx, Submission{ID: m.Workflow, Definition: d, Namespace: args.Namespace, By: m.By}, p)
	if err == nil && already {
		// Its caller stopped a minute ago, perhaps before the sends.
		err = c.Wake(ctx, m.Workflow)
	}
	return rows, err
}

// submitted returns the plan of the life that wf is in, or of the next one where
// its definition is stored already.
func (c *Coordinator) submitted(ctx context.Context, wf string) (*plan, error) {
	e, err := c.read(ctx, wf)
	purged, gone := errors.AsType[*purgedError](err)
	_, absent := errors.AsType[*absentError](err)
	born := uint64(0)
	switch {
	case err == nil:
		return e.plan, nil
	case gone:
		born = purged.tombstone.Epoch + 1
	case !absent:
		return nil, err
	}
	body, err := c.store.States.Definition(ctx, state.DefinitionKey(wf, born))
	if err != nil {
		return nil, err
	}
	d, err := dag.Decode(body)
	if err != nil {
		return nil, err
	}
	return newPlan(d)
}
