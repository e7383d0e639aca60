package coord

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"jobq/core/cond"
	"jobq/core/engine"
	"jobq/core/fault"
	"jobq/core/state"
)

// evaluate gives verdicts until no condition waits for one, or those that wait
// need an output that cannot be read now. Skips lead to further conditions; all
// of them come into the same save.
func (c *Coordinator) evaluate(ctx context.Context, e *entry, b *batch) error {
	waiting := map[int32]bool{}
	for {
		var todo []int32
		for _, t := range e.run.Candidates() {
			if !waiting[t] {
				todo = append(todo, t)
			}
		}
		if len(todo) == 0 {
			return nil
		}
		verdicts := make([]engine.Verdict, len(todo))
		c.sched.Parallel(ctx, len(todo), c.o.Parallel, func(ctx context.Context, i int) {
			verdicts[i] = c.judge(ctx, e, todo[i])
		})
		for i, v := range verdicts {
			if v.Outcome == 0 {
				waiting[todo[i]] = true
				b.unavailable = true
				continue
			}
			if _, err := c.apply(e, b, v, &job{}); err != nil {
				return err
			}
		}
	}
}

// judge evaluates the condition of task t. Outcome 0 means that an output could
// not be read: a wake asks again.
func (c *Coordinator) judge(ctx context.Context, e *entry, t int32) engine.Verdict {
	program := e.plan.programs[t]
	v := engine.Verdict{Task: t}
	inputs := map[string]cond.Input{}
	for _, name := range program.References() {
		p, _ := e.plan.Task(name)
		completed := e.run.State().TaskStatus[p] == state.Completed
		in := cond.Input{Completed: completed}
		if completed {
			body, err := c.output(ctx, e, p)
			switch {
			case fault.Is(err, fault.Corrupt):
				v.Outcome, v.Reason = engine.ConditionError, err.Error()
				return v
			case err != nil:
				c.log.Warn("condition waits for an output", "workflow", e.run.State().ID, "task", e.plan.Name(t), "error", err)
				return v
			}
			in.Output = body
		}
		inputs[name] = in
	}
	result := program.Evaluate(inputs)
	v.Reason = result.Reason
	switch {
	case result.Outcome == cond.True:
		v.Outcome = engine.ConditionTrue
	case result.Outcome == cond.False:
		v.Outcome = engine.ConditionFalse
	case slices.ContainsFunc(result.Blames, func(name string) bool { return !inputs[name].Completed }):
		v.Outcome = engine.ConditionUpstream
		v.Reason = fmt.Sprintf("%s (%s did not complete)", result.Reason, strings.Join(result.Blames, ", "))
	default:
		v.Outcome = engine.ConditionError
	}
	return v
}
