package coord

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"jobq/core/cond"
	"jobq/core/engine"
	"jobq/core/fault"
	"jobq/core/state"
)

// judgeChunk bounds how many conditions are evaluated with the same outputs in
// memory.
const judgeChunk = 64

// judgeRest is how long conditions rest whose outputs hang: the time for them was
// over, and for half of it none had come. Every job on the workflow would wait for
// them as long.
const judgeRest = 30 * time.Second

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
		e.dropOutputs()
		return nil
	}
	// A store that hangs must not keep the rest of the workflow from its save.
	ctx, cancel := c.share(ctx, j, 2, "fetching the outputs for conditions")
	defer cancel()
	begun, moves := c.sched.Now(), len(b.moves)
	waiting := c.resting(j.wf)
	for {
		todo := slices.DeleteFunc(e.candidates(), func(t int32) bool { _, waits := waiting[t]; return waits })
		if len(todo) == 0 {
			break
		}
		for some := range slices.Chunk(todo, judgeChunk) {
			if err := c.evaluateSome(ctx, j, e, b, some, waiting); err != nil {
				return err
			}
		}
	}
	c.tellWaiting(j.wf, e, waiting)
	j.helped = j.helped || b.trace && len(b.moves) > moves
	if j.came.After(begun) {
		begun = j.came
	}
	switch {
	case len(waiting) == 0:
		e.dropOutputs()
	case ctx.Err() != nil && c.sched.Now().Sub(begun) >= c.roundTime()/4:
		c.rest(j.wf, waiting)
	}
	return nil
}

// tellWaiting logs that conditions wait for outputs, those that rest left out: one
// line, of however many.
func (c *Coordinator) tellWaiting(wf string, e *entry, waiting map[int32]error) {
	var why error
	first, n := "", 0
	for _, t := range slices.Sorted(maps.Keys(waiting)) {
		if waiting[t] == nil {
			continue
		}
		if n++; n == 1 {
			first, why = e.plan.Name(t), waiting[t]
		}
	}
	if n > 0 {
		c.log.Warn("conditions wait for outputs", "workflow", wf, "conditions", n, "task", first, "error", why)
	}
}

// resting returns the tasks of wf whose conditions rest, with no error.
func (c *Coordinator) resting(wf string) map[int32]error {
	now, resting := c.sched.Now(), map[int32]error{}
	c.note(wf, func(n *note) {
		maps.DeleteFunc(n.resting, func(_ int32, until time.Time) bool { return !now.Before(until) })
		for t := range n.resting {
			resting[t] = nil
		}
	})
	return resting
}

// rest lets the conditions of tasks rest, but for those that do already.
func (c *Coordinator) rest(wf string, tasks map[int32]error) {
	until := c.sched.Now().Add(judgeRest)
	c.note(wf, func(n *note) {
		if n.resting == nil {
			n.resting = map[int32]time.Time{}
		}
		for t := range tasks {
			if _, ok := n.resting[t]; !ok {
				n.resting[t] = until
			}
		}
	})
}

// evaluateSome gives verdicts on the conditions of tasks, or adds those that must
// wait to waiting. Where what they name is too much for them together it takes
// fewer at a time.
func (c *Coordinator) evaluateSome(ctx context.Context, j *job, e *entry, b *batch, tasks []int32, waiting map[int32]error) error {
	inputs, whole := c.fetch(ctx, j, e, tasks)
	if half := len(tasks) / 2; !whole && half > 0 {
		if err := c.evaluateSome(ctx, j, e, b, tasks[:half], waiting); err != nil {
			return err
		}
		return c.evaluateSome(ctx, j, e, b, tasks[half:], waiting)
	}
	for _, t := range tasks {
		v, unread := c.judge(e, t, inputs)
		if !whole {
			v, unread = engine.Verdict{Task: t, Outcome: engine.ConditionError, Reason: fmt.Sprintf(
				"the outputs that it names have more than %d bytes in all", c.o.ConditionBytes)}, nil
		}
		if unread != nil {
			waiting[t] = unread
			continue
		}
		if _, err := c.apply(j, e, b, v); err != nil {
			return err
		}
	}
	return nil
}

// input is the output of a task as it was fetched.
type input struct {
	cond.Input
	err error
}

// fetch reads the outputs that the conditions of tasks name; whole is false where
// they are larger than Options.ConditionBytes. Where some cannot be read now, e
// keeps the others: of very many not all may be read in the time of one job.
func (c *Coordinator) fetch(ctx context.Context, j *job, e *entry, tasks []int32) (inputs map[string]input, whole bool) {
	var names []string
	for _, t := range tasks {
		names = append(names, e.plan.programs[t].References()...)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	read := make([]input, len(names))
	var size, came atomic.Int64
	c.sched.Parallel(ctx, len(names), c.o.Parallel, func(ctx context.Context, i int) {
		t, _ := e.plan.Task(names[i])
		if read[i].Completed = e.run.State().TaskStatus[t] == state.Completed; !read[i].Completed || size.Load() > int64(c.o.ConditionBytes) {
			return
		}
		read[i].Output, read[i].err = c.keptOutput(ctx, e, t)
		size.Add(int64(len(read[i].Output)))
		if read[i].err == nil {
			came.Store(c.sched.Now().UnixNano())
		}
	})
	if at := came.Load(); at != 0 {
		j.came = time.Unix(0, at)
	}
	inputs = make(map[string]input, len(names))
	missing := false
	for i, name := range names {
		inputs[name] = read[i]
		missing = missing || read[i].err != nil
	}
	whole = size.Load() <= int64(c.o.ConditionBytes)
	if missing && whole {
		j.helped = c.keepOutputs(e, names, read) || j.helped
	}
	return inputs, whole
}

// keptOutput is output, from what e keeps where it has it.
func (c *Coordinator) keptOutput(ctx context.Context, e *entry, t int32) (json.RawMessage, error) {
	if kept, ok := e.outputs[c.outputKey(e, t)]; ok {
		return kept, nil
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return c.output(ctx, e, t)
}

// outputKey names the output that task t has at present: a task that runs again has
// another one, which workers without records write under the same reference.
func (c *Coordinator) outputKey(e *entry, t int32) string {
	return strconv.FormatUint(uint64(e.run.State().Attempt[t]), 10) + " " + c.reference(e, t)
}

// keepOutputs keeps what was read. It reports whether there is more than before.
func (c *Coordinator) keepOutputs(e *entry, names []string, read []input) (more bool) {
	if e.outputs == nil {
		e.outputs = map[string]json.RawMessage{}
	}
	for i, in := range read {
		t, _ := e.plan.Task(names[i])
		key := c.outputKey(e, t)
		if _, ok := e.outputs[key]; ok || in.err != nil || in.Output == nil || e.kept+len(in.Output) > c.o.ConditionBytes {
			continue
		}
		e.outputs[key] = in.Output
		e.kept += len(key) + len(in.Output)
		more = true
	}
	return more
}

// dropOutputs gives up what was kept for conditions.
func (e *entry) dropOutputs() { e.outputs, e.kept = nil, 0 }

// judge evaluates the condition of task t. It fails where an output could not be
// read: a wake asks again. Only an output that is gone or is not the one that was
// accepted makes a verdict.
func (c *Coordinator) judge(e *entry, t int32, inputs map[string]input) (engine.Verdict, error) {
	program := e.plan.programs[t]
	values := map[string]cond.Input{}
	for _, name := range program.References() {
		in := inputs[name]
		switch {
		case fault.Is(in.err, fault.Corrupt):
			return engine.Verdict{Task: t, Outcome: engine.ConditionError, Reason: in.err.Error()}, nil
		case in.err != nil:
			return engine.Verdict{}, in.err
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
	return v, nil
}
