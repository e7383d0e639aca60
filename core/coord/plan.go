package coord

import (
	"container/list"
	"context"
	"sync"

	"jobq/core/cond"
	"jobq/core/dag"
	"jobq/core/engine"
	"jobq/core/fault"
	"jobq/core/state"
)

// plan is a definition made ready: the engine's plan and the compiled
// conditions. It is immutable and shared by all workflows of one definition.
type plan struct {
	*engine.Plan
	hash     string
	programs map[int32]*cond.Program
	// bytes is about what it takes in memory.
	bytes int

	queuesOnce sync.Once
	queueNames []string
}

// newPlan compiles d, which must validate.
func newPlan(d *dag.Definition) (*plan, error) {
	p := &plan{hash: dag.Hash(d), programs: map[int32]*cond.Program{}, bytes: planBytes(d)}
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

// planBytes estimates the memory of the plan of d: measured, and rounded up.
func planBytes(d *dag.Definition) int {
	n := 4 << 10
	for i := range d.Tasks {
		t := &d.Tasks[i]
		n += 400 + len(t.Name)
		for _, k := range t.Kwargs {
			n += len(k.Key) + len(k.Value)
		}
		for _, parent := range t.DependsOn {
			n += 64 + len(parent)
		}
		if t.Condition != "" {
			n += 4<<10 + 8*len(t.Condition) + 64*len(t.DependsOn)
		}
	}
	return n
}

// planCache keeps the plans of definitions that were used lately, the least
// recently used leaving first. Entries in the cache of states keep their own plan.
type planCache struct {
	mu          sync.Mutex
	limit, size int
	order       *list.List // of *plan
	byID        map[string]*list.Element
}

func newPlanCache(limit int) *planCache {
	return &planCache{limit: limit, order: list.New(), byID: map[string]*list.Element{}}
}

func (c *planCache) get(hash string) *plan {
	c.mu.Lock()
	defer c.mu.Unlock()
	el, ok := c.byID[hash]
	if !ok {
		return nil
	}
	c.order.MoveToFront(el)
	return el.Value.(*plan)
}

func (c *planCache) put(p *plan) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.byID[p.hash]; ok {
		return
	}
	c.byID[p.hash] = c.order.PushFront(p)
	c.size += p.bytes
	for c.size > c.limit && c.order.Len() > 1 {
		oldest := c.order.Remove(c.order.Back()).(*plan)
		delete(c.byID, oldest.hash)
		c.size -= oldest.bytes
	}
}

// planOf returns the plan of the workflow that s is the state of.
func (c *Coordinator) planOf(ctx context.Context, s *state.Workflow) (*plan, error) {
	wf, hash := s.ID, s.Definition
	if p := c.plans.get(hash); p != nil {
		return p, nil
	}
	body, err := c.store.States.Definition(ctx, state.DefinitionKey(wf, s.BornEpoch))
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
