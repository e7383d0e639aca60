package engine

import (
	"encoding/json"
	"fmt"

	"jobq/core/dag"
	"jobq/core/fault"
	"jobq/core/state"
)

// command applies a command once: a known id answers its first result, to a command
// of another kind that it is taken. A command that was done raises the epoch and is
// remembered, a refusal only where that is asked for.
func (r *Run) command(c Command, kind string, apply func() Answer) {
	known, ok := r.s.Command(c.ID)
	switch {
	case !ok || c.ID == "":
		if c.Epoch != 0 && c.Epoch != r.s.Epoch+1 {
			apply = func() Answer { return refuse("another command came before this one, which its caller had left") }
		}
	case known.Kind != kind:
		a := refuse("the id %q is that of an earlier command, a %s", c.ID, known.Kind)
		r.out.Answer = &a
		return
	default:
		var a Answer
		if err := json.Unmarshal(known.Answer, &a); err != nil {
			r.bug = fault.Wrap(fault.Corrupt, err, "the remembered answer of a command cannot be read")
			return
		}
		a.Repeated = true
		r.out.Answer = &a
		return
	}
	a := apply()
	r.out.Answer = &a
	if !a.Done {
		if c.Settle {
			r.out.Changed = true
			r.remember(c, kind, a)
		}
		return
	}
	r.s.Epoch++
	a.Epoch = r.s.Epoch
	r.out.Changed = true
	r.drainJudge()
	for _, t := range r.reopened {
		a.Reset++
		switch r.s.TaskStatus[t] {
		case state.Parked:
			a.NowReady++
		case state.Pending:
			a.StillPending++
		}
	}
	r.remember(c, kind, a)
}

// remember keeps the answer of a command that has an id.
func (r *Run) remember(c Command, kind string, a Answer) {
	if c.ID == "" {
		return
	}
	raw, err := json.Marshal(a)
	if err != nil {
		r.bug = fault.Wrap(fault.Internal, err, "the answer of a command cannot be encoded")
		return
	}
	r.s.Remember(state.CommandResult{ID: c.ID, Kind: kind, Epoch: r.s.Epoch, Answer: raw})
}

func refuse(format string, args ...any) Answer { return Answer{Text: fmt.Sprintf(format, args...)} }

// cancel ends pending and parked tasks at once and fences the others.
func (r *Run) cancel() Answer {
	switch {
	case r.s.Status.Ended():
		return refuse("workflow %s is %s already", r.s.ID, r.s.Status)
	case r.s.CancelRequested:
		return refuse("workflow %s is being cancelled already", r.s.ID)
	}
	r.s.CancelRequested = true
	stopped := 0
	for t := range int32(r.plan.Len()) {
		switch status := r.s.TaskStatus[t]; {
		case status == state.Pending || status == state.Parked:
			r.move(t, state.Cancelled, state.CauseCancelled)
			stopped++
		case status.Numbered():
			r.out.Fence = append(r.out.Fence, Attempt{t, r.s.Attempt[t]})
		}
	}
	return Answer{Done: true, Text: fmt.Sprintf("cancelled at once: %d, being stopped: %d", stopped, len(r.out.Fence))}
}

// retry resets every task that ended without success.
func (r *Run) retry() Answer {
	if refusal, ok := r.refuseReset(); ok {
		return refusal
	}
	var tasks []int32
	for t := range int32(r.plan.Len()) {
		if r.s.TaskStatus[t].Unsuccessful() {
			tasks = append(tasks, t)
		}
	}
	if len(tasks) == 0 {
		return refuse("workflow %s has no failed task to retry", r.s.ID)
	}
	r.reset(tasks, state.CauseRetried)
	return Answer{Done: true, Text: fmt.Sprintf("reset %d of %d tasks", len(tasks), r.plan.Len())}
}

// refuseReset says why no task may be reset now.
func (r *Run) refuseReset() (Answer, bool) {
	if r.Cancelling() {
		return refuse("workflow %s is being cancelled; wait until it has ended", r.s.ID), true
	}
	return Answer{}, false
}

// reset makes tasks pending again with a fresh budget and has them judged. All
// of them move before one is judged: a task whose failed parent is reset too
// must not fail again by that parent.
func (r *Run) reset(tasks []int32, cause state.Cause) {
	r.s.CancelRequested = false
	for _, t := range tasks {
		r.s.Failures[t] = 0
		delete(r.s.GiveBacks, t)
		delete(r.s.Exits, t)
		r.clearReason(t)
		if r.s.TaskStatus[t].Unsuccessful() {
			r.setOutput(t, state.Output{})
		}
		r.reopen(t, cause)
	}
}

// reopen makes t pending again and has it judged.
func (r *Run) reopen(t int32, cause state.Cause) {
	r.move(t, state.Pending, cause)
	r.judge = append(r.judge, t)
	r.reopened = append(r.reopened, t)
}

// rerun runs tasks again whatever their result. Children outside the selection
// that are ready or running go on with the old outputs, which stay until the
// task ends again.
func (r *Run) rerun(ev Rerun) Answer {
	if refusal, ok := r.refuseReset(); ok {
		return refusal
	}
	tasks, refusal, ok := r.selectRerun(ev)
	if !ok {
		return refusal
	}
	if ev.DryRun {
		kept := r.plan.Len() - len(tasks)
		a := Answer{Reset: len(tasks), Kept: kept, Text: fmt.Sprintf("would run again: %d, kept: %d", len(tasks), kept)}
		for _, t := range tasks {
			a.Tasks = append(a.Tasks, r.plan.Name(t))
		}
		return a
	}
	r.reset(tasks, state.CauseRerun)
	for _, t := range tasks {
		r.unblock(t)
	}
	kept := r.plan.Len() - len(r.reopened)
	return Answer{Done: true, Kept: kept, Text: fmt.Sprintf("run again: %d, kept: %d", len(tasks), kept)}
}

// selectRerun returns the tasks that a rerun resets: those selected that have
// ended, and those that are parked, which must wait for the new results.
func (r *Run) selectRerun(ev Rerun) (tasks []int32, refusal Answer, ok bool) {
	selected, refusal, ok := r.selectTasks(ev)
	if !ok {
		return nil, refusal, false
	}
	ended := false
	for t, in := range selected {
		switch status := r.s.TaskStatus[t]; {
		case !in || status == state.Pending:
		case status.Numbered():
			return nil, refuse("attempt %d of task %q is queued or running; wait until it has ended", r.s.Attempt[t], r.plan.Name(int32(t))), false
		default:
			ended = ended || status.Terminal()
			tasks = append(tasks, int32(t))
		}
	}
	if !ended {
		return nil, refuse("nothing that was selected has ended"), false
	}
	return tasks, Answer{}, true
}

func (r *Run) selectTasks(ev Rerun) (selected []bool, refusal Answer, ok bool) {
	selected = make([]bool, r.plan.Len())
	var starts []int
	for _, name := range ev.Tasks {
		t, found := r.plan.Task(name)
		if !found {
			return nil, refuse("workflow %s has no task %q", r.s.ID, name), false
		}
		selected[t] = true
		starts = append(starts, int(t))
	}
	if ev.Downstream {
		for t := range r.plan.graph.Descendants(starts...) {
			selected[t] = true
		}
	}
	return selected, Answer{}, true
}

// mark gives a task a result by hand and opens what it had blocked.
func (r *Run) mark(ev Mark) Answer {
	if refusal, ok := r.refuseReset(); ok {
		return refusal
	}
	t, ok := r.plan.Task(ev.Task)
	status := state.TaskStatus(0)
	if ok {
		status = r.s.TaskStatus[t]
	}
	switch {
	case !ok:
		return refuse("workflow %s has no task %q", r.s.ID, ev.Task)
	case ev.To != state.Completed && ev.To != state.Skipped:
		return refuse("a task can be marked completed or skipped, not %s", ev.To)
	case status.Numbered():
		return refuse("attempt %d of task %q is queued or running; wait until it has ended or cancel the workflow", r.s.Attempt[t], ev.Task)
	case status == ev.To:
		return refuse("task %q is %s already", ev.Task, status)
	case ev.To == state.Completed && inlineSize(ev.Output) > state.MaxInlineTotal-r.inline+inlineSize(r.s.Outputs[t]):
		return refuse("the outputs kept in the state of workflow %s leave no room for %d bytes; mark task %q without an output or run it again",
			r.s.ID, len(ev.Output.Text), ev.Task)
	}
	r.s.CancelRequested = false
	delete(r.s.Exits, t)
	why := "marked " + ev.To.String()
	if ev.By != "" {
		why += " by " + ev.By
	}
	r.reason(t, why)
	r.move(t, ev.To, state.CauseMarked)
	if ev.To == state.Completed {
		r.setOutput(t, ev.Output)
	}
	r.unblock(t)
	return Answer{Done: true, Text: fmt.Sprintf("task %q is %s now", ev.Task, ev.To)}
}

// unblock makes the upstream_failed tasks behind t pending again whose policy
// can be met now.
func (r *Run) unblock(t int32) {
	todo := []int32{t}
	for len(todo) > 0 {
		t, todo = todo[len(todo)-1], todo[:len(todo)-1]
		for _, c := range r.plan.graph.Children(int(t)) {
			if r.s.TaskStatus[c] != state.UpstreamFailed || r.verdict(c) == dag.Never {
				continue
			}
			r.reopen(c, state.CauseUnblocked)
			todo = append(todo, c)
		}
	}
}

func (r *Run) purge() Answer {
	if !r.s.Status.Ended() {
		return refuse("workflow %s is %s; cancel it first", r.s.ID, r.s.Status)
	}
	return Answer{Done: true, Text: "purged"}
}
