package engine

import (
	"slices"

	"jobq/core/dag"
	"jobq/core/fault"
	"jobq/core/state"
)

// Plan is what the engine needs of a definition, made once and never changed.
type Plan struct {
	graph      *dag.Graph
	tasks      []taskPlan
	sinks      []bool
	limit      int
	result     dag.ResultPolicy
	definition *dag.Definition
	moves      map[state.Transition]struct{}
}

// taskPlan is the immutable part of one task.
type taskPlan struct {
	policy    dag.DepPolicy
	retries   uint32
	condition bool
	// named are the parents that the condition names, ascending.
	named []int32
}

// NamedParents returns the names of the parents that the condition of the task
// at position i names, every match of a pattern included.
type NamedParents func(i int) []string

// NewPlan makes the plan of a definition that validates. named is called for
// the tasks that have a condition.
func NewPlan(d *dag.Definition, named NamedParents) (*Plan, error) {
	g, problems := dag.NewGraph(d)
	if len(problems) > 0 {
		return nil, fault.Newf(fault.Invalid, "the definition does not validate: %s", problems[0].Message)
	}
	p := &Plan{
		graph: g, definition: d, limit: d.MaxParallelism, result: d.ResultPolicy,
		tasks: make([]taskPlan, g.Len()), sinks: make([]bool, g.Len()), moves: map[state.Transition]struct{}{},
	}
	for _, m := range state.Transitions() {
		p.moves[m] = struct{}{}
	}
	for i := range d.Tasks {
		t := &d.Tasks[i]
		p.tasks[i] = taskPlan{policy: t.DepPolicy, retries: uint32(t.NumRetries), condition: t.Condition != ""}
		p.sinks[i] = len(g.Children(i)) == 0
		if t.Condition == "" {
			continue
		}
		if named == nil {
			return nil, fault.Newf(fault.Invalid, "task %q has a condition, which this program cannot evaluate", t.Name)
		}
		parents := slices.Sorted(slices.Values(g.Parents(i)))
		for _, name := range named(i) {
			parent, ok := g.Index(name)
			if ok {
				_, ok = slices.BinarySearch(parents, int32(parent))
			}
			if !ok {
				return nil, fault.Newf(fault.Invalid, "the condition of task %q names %q, which is not in its depends_on", t.Name, name)
			}
			p.tasks[i].named = append(p.tasks[i].named, int32(parent))
		}
		slices.Sort(p.tasks[i].named)
		p.tasks[i].named = slices.Compact(p.tasks[i].named)
	}
	return p, nil
}

// Len returns the number of tasks.
func (p *Plan) Len() int { return len(p.tasks) }

// Definition returns what the plan was made from; it must not be changed.
func (p *Plan) Definition() *dag.Definition { return p.definition }

// Graph returns the graph of the definition.
func (p *Plan) Graph() *dag.Graph { return p.graph }

// Name returns the name of the task at position i.
func (p *Plan) Name(i int32) string { return p.definition.Tasks[i].Name }

// Task returns the position of the task called name.
func (p *Plan) Task(name string) (int32, bool) {
	i, ok := p.graph.Index(name)
	return int32(i), ok
}

// names reports whether the condition of task c names parent p.
func (p *Plan) names(c, parent int32) bool {
	_, ok := slices.BinarySearch(p.tasks[c].named, parent)
	return ok
}

func (p *Plan) legal(from, to state.TaskStatus, cause state.Cause) bool {
	_, ok := p.moves[state.Transition{From: from, To: to, Cause: cause}]
	return ok
}
