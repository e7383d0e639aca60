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

// judgeChunk bounds how many conditions are evaluated with the same outputs in
// memory.
const judgeChunk = 64

// candidates returns the tasks whose condition waits for a verdict, ascending.
func (e *entry) candidates() []int32 {
	if len(e.plan.programs) == 0 {
		return nil
	}
	return e.run.Candidates()
}

// evaluate gives verdicts until no condition waits for one, or those that wait
// need an output that cannot be read now. Skips lead to further conditions; all
// of them come into the same save.
func (c *Coordinator) evaluate(ctx context.Context, j *job, e *entry, b *batch) error {
	if len(e.candidates()) == 0 {
		return nil
	}
	// A store that hangs must not keep the rest of the workflow from its save.
	ctx, cancel := c.share(ctx, j, 2, "fetching the outputs for conditions")
	defer cancel()
	waiting := map[int32]bool{}
	for {
		todo := slices.DeleteFunc(e.candidates(), func(t int32) bool { return waiting[t] })
		if len(todo) == 0 {
			return nil
		}
		for some := range slices.Chunk(todo, judgeChunk) {
			inputs := c.fetch(ctx, e, some)
			for _, t := range some {
				v, ok := c.judge(e, t, inputs)
				if !ok {
					waiting[t] = true
					continue
				}
				if _, err := c.apply(j, e, b, v); err != nil {
					return err
				}
			}
		}
	}
}

// input is the output of a task as it was fetched.
type input struct {
	cond.Input
	err error
}

// fetch reads the outputs that the conditions of tasks name.
func (c *Coordinator) fetch(ctx context.Context, e *entry, tasks []int32) map[string]input {
	var names []string
	for _, t := range tasks {
		names = append(names, e.plan.programs[t].References()...)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	read := make([]input, len(names))
	c.sched.Parallel(ctx, len(names), c.o.Parallel, func(ctx context.Context, i int) {
		t, _ := e.plan.Task(names[i])
		if read[i].Completed = e.run.State().TaskStatus[t] == state.Completed; read[i].Completed {
			read[i].Output, read[i].err = c.output(ctx, e, t)
		}
	})
	inputs := make(map[string]input, len(names))
	for i, name := range names {
		inputs[name] = read[i]
	}
	return inputs
}

// judge evaluates the condition of task t. It reports false where an output
// could not be read: a wake asks again. Only an output that is gone or is not
// the one that was accepted makes a verdict.
func (c *Coordinator) judge(e *entry, t int32, inputs map[string]input) (engine.Verdict, bool) {
	program := e.plan.programs[t]
	values := map[string]cond.Input{}
	for _, name := range program.References() {
		in := inputs[name]
		switch {
		case fault.Is(in.err, fault.Corrupt):
			return engine.Verdict{Task: t, Outcome: engine.ConditionError, Reason: in.err.Error()}, true
		case in.err != nil:
			c.log.Warn("condition waits for an output", "workflow", e.run.State().ID, "task", e.plan.Name(t), "error", in.err)
			return engine.Verdict{}, false
		}
		values[name] = in.Input
	}
	result := program.Evaluate(values)
	v := engine.Verdict{Task: t, Reason: result.Reason}
	switch {
	case result.Outcome == cond.True:
		v.Outcome = engine.ConditionTrue
	case result.Outcome == cond.False:
		v.Outcome = engine.ConditionFalse
	case slices.ContainsFunc(result.Blames, func(name string) bool { return !values[name].Completed }):
		v.Outcome = engine.ConditionUpstream
		v.Reason = fmt.Sprintf("%s (%s did not complete)", result.Reason, strings.Join(result.Blames, ", "))
	default:
		v.Outcome = engine.ConditionError
	}
	return v, true
}
