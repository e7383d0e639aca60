package engine

import (
	"encoding/json"
	"fmt"

	"jobq/core/dag"
	"jobq/core/fault"
	"jobq/core/state"
)

// command applies a command once: a known id answers its first result. A
// command that was done raises the epoch and is remembered.
func (r *Run) command(c Command, kind string, apply func() Answer) {
	if known, ok := r.s.Command(c.ID); ok && c.ID != "" {
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
	if a.Done {
		r.drainJudge()
		r.s.Epoch++
		a.Epoch = r.s.Epoch
		a.NowReady, a.StillPending = r.moved(a.Reset)
		raw, err := json.Marshal(a)
		if err != nil {
			r.bug = fault.Wrap(fault.Internal, err, "the answer of a command cannot be encoded")
			return
		}
		r.s.Remember(state.CommandResult{ID: c.ID, Kind: kind, Epoch: r.s.Epoch, Answer: raw})
		r.out.Changed = true
	}
	r.out.Answer = &a
}

// moved counts where the tasks that a command reset have come to.
func (r *Run) moved(reset int) (ready, pending int) {
	if reset == 0 {
		return 0, 0
	}
	seen := map[int32]bool{}
	for _, c := range r.out.Changes {
		seen[c.Task] = true
	}
	for t := range seen {
		switch r.s.TaskStatus[t] {
		case state.Parked, state.Intent:
			ready++
		case state.Pending:
			pending++
		}
	}
	return ready, pending
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
			delete(r.s.NotBefore, t)
			r.s.EndedAt[t] = r.now.UnixMilli()
			r.move(t, state.Cancelled, state.CauseCancelled)
			stopped++
		case status.Numbered():
			r.out.Fence = append(r.out.Fence, Attempt{t, r.s.Attempt[t]})
		}
	}
	r.judge = r.judge[:0]
	return Answer{Done: true, Text: fmt.Sprintf("%d tasks cancelled, %d being stopped", stopped, len(r.out.Fence))}
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
	for _, t := range tasks {
		r.setOutput(t, state.Output{})
	}
	r.reset(tasks, state.CauseRetried)
	return Answer{Done: true, Reset: len(tasks), Text: fmt.Sprintf("%d tasks reset", len(tasks))}
}

// refuseReset says why no task may be reset now.
func (r *Run) refuseReset() (Answer, bool) {
	switch {
	case r.s.Status == state.WorkflowPurged:
		return refuse("workflow %s was purged", r.s.ID), true
	case r.Cancelling():
		return refuse("workflow %s is being cancelled; wait until it has ended", r.s.ID), true
	default:
		return Answer{}, false
	}
}

// reset makes terminal tasks pending again with a fresh budget and judges them.
// All of them move before one is judged: a task whose failed parent is reset
// too must not fail again by that parent.
func (r *Run) reset(tasks []int32, cause state.Cause) {
	r.s.CancelRequested = false
	r.s.Error = ""
	for _, t := range tasks {
		r.s.Failures[t] = 0
		delete(r.s.GiveBacks, t)
		delete(r.s.NotBefore, t)
		delete(r.s.Exits, t)
		r.clearReason(t)
		r.s.StartedAt[t], r.s.EndedAt[t] = 0, 0
		r.move(t, state.Pending, cause)
	}
	r.judge = append(r.judge[:0], tasks...)
}

// rerun runs tasks again whatever their result. The old output of a task stays
// until the new one replaces it, so that a message that is sent meanwhile to a
// child outside the selection says the same as before.
func (r *Run) rerun(ev Rerun) Answer {
	if refusal, ok := r.refuseReset(); ok {
		return refusal
	}
	selected, refusal, ok := r.selectTasks(ev)
	if !ok {
		return refusal
	}
	var tasks []int32
	for t, in := range selected {
		switch status := r.s.TaskStatus[t]; {
		case !in:
		case status.Numbered():
			return refuse("task %q is %s; wait until it has ended", r.plan.Name(int32(t)), status)
		case status.Terminal():
			tasks = append(tasks, int32(t))
		}
	}
	if len(tasks) == 0 {
		return refuse("nothing that was selected has ended")
	}
	a := Answer{Reset: len(tasks), Kept: r.plan.Len() - len(tasks)}
	for _, t := range tasks {
		a.Tasks = append(a.Tasks, r.plan.Name(t))
	}
	if ev.DryRun {
		a.Text = fmt.Sprintf("%d tasks would run again, %d are kept", a.Reset, a.Kept)
		return a
	}
	r.reset(tasks, state.CauseRerun)
	a.Done, a.Tasks, a.Text = true, nil, fmt.Sprintf("%d tasks run again, %d are kept", a.Reset, a.Kept)
	return a
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
		return refuse("task %q is %s; wait until it has ended or cancel the workflow", ev.Task, status)
	case status == ev.To:
		return refuse("task %q is %s already", ev.Task, status)
	}
	r.s.CancelRequested = false
	delete(r.s.NotBefore, t)
	delete(r.s.Exits, t)
	r.setOutput(t, ev.Output)
	r.reason(t, "marked "+ev.To.String()+" by "+ev.By)
	r.s.EndedAt[t] = r.now.UnixMilli()
	r.move(t, ev.To, state.CauseMarked)
	reset := r.unblock(t)
	return Answer{Done: true, Reset: reset, Text: fmt.Sprintf("task %q is %s now", ev.Task, ev.To)}
}

// unblock makes the upstream_failed tasks behind t pending again whose policy
// can be met now, and returns how many.
func (r *Run) unblock(t int32) int {
	n := 0
	todo := []int32{t}
	for len(todo) > 0 {
		t, todo = todo[len(todo)-1], todo[:len(todo)-1]
		for _, c := range r.plan.graph.Children(int(t)) {
			if r.s.TaskStatus[c] != state.UpstreamFailed || r.verdict(c) == dag.Never {
				continue
			}
			r.s.EndedAt[c] = 0
			r.move(c, state.Pending, state.CauseUnblocked)
			r.judge = append(r.judge, c)
			todo = append(todo, c)
			n++
		}
	}
	return n
}

func (r *Run) purge() Answer {
	if !r.s.Status.Ended() {
		return refuse("workflow %s is %s; cancel it first", r.s.ID, r.s.Status)
	}
	if r.s.Status == state.WorkflowPurged {
		return refuse("workflow %s was purged already", r.s.ID)
	}
	return Answer{Done: true, Text: "purged"}
}
