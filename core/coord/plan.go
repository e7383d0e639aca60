package coord

import (
	"context"
	"sync"

	"jobq/core/cond"
	"jobq/core/dag"
	"jobq/core/engine"
	"jobq/core/fault"
)

// plan is a definition made ready: the engine's plan and the compiled
// conditions. It is immutable and shared by all workflows of one definition.
type plan struct {
	*engine.Plan
	hash     string
	programs map[int32]*cond.Program

	queuesOnce sync.Once
	queueNames []string
}

// newPlan compiles d, which must validate.
func newPlan(d *dag.Definition) (*plan, error) {
	p := &plan{hash: dag.Hash(d), programs: map[int32]*cond.Program{}}
	for i := range d.Tasks {
		t := &d.Tasks[i]
		if t.Condition == "" {
			continue
		}
		program, faults := cond.Compile(t.Condition, t.DependsOn)
		if len(faults) > 0 {
			return nil, fault.Newf(fault.Invalid, "the condition of task %q: %s", t.Name, faults[0].Error())
		}
		p.programs[int32(i)] = program
	}
	var err error
	p.Plan, err = engine.NewPlan(d, func(i int) []string { return p.programs[int32(i)].References() })
	return p, err
}

// planCache keeps the plans of definitions that were used lately.
type planCache struct {
	mu     sync.Mutex
	byHash map[string]*plan
}

const maxPlans = 64

func newPlanCache() *planCache { return &planCache{byHash: map[string]*plan{}} }

func (c *planCache) get(hash string) *plan {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byHash[hash]
}

func (c *planCache) put(p *plan) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.byHash) >= maxPlans {
		clear(c.byHash)
	}
	c.byHash[p.hash] = p
}

// planOf returns the plan of wf whose state names the definition by hash.
func (c *Coordinator) planOf(ctx context.Context, wf, hash string) (*plan, error) {
	if p := c.plans.get(hash); p != nil {
		return p, nil
	}
	body, err := c.store.States.Definition(ctx, wf)
	if fault.Is(err, fault.NotFound) {
		return nil, fault.Wrapf(fault.Corrupt, err, "workflow %s has a state but no definition", wf)
	}
	if err != nil {
		return nil, err
	}
	d, err := dag.Decode(body)
	if err != nil {
		return nil, err
	}
	p, err := newPlan(d)
	if err != nil {
		return nil, fault.Wrapf(fault.Corrupt, err, "the stored definition of workflow %s cannot be used", wf)
	}
	if p.hash != hash {
		return nil, fault.Newf(fault.Corrupt, "the state of workflow %s belongs to another definition", wf)
	}
	c.plans.put(p)
	return p, nil
}
