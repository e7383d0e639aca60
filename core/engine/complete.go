package engine

import (
	"fmt"
	"time"

	"jobq/core/fault"
	"jobq/core/msg"
	"jobq/core/state"
)

// Back-off after an attempt that ended through no fault of its task.
const (
	firstGiveBack = time.Second
	lastGiveBack  = 5 * time.Minute
)

// Awaits reports whether a completion of this attempt of the task would count:
// it is the present attempt of a task that is ready or running. Attempt 0 is a
// report without a number, which can only be of attempt 1.
func (r *Run) Awaits(task string, attempt uint32) bool {
	t, ok := r.plan.Task(task)
	return ok && r.s.TaskStatus[t].Numbered() && max(attempt, 1) == r.s.Attempt[t]
}

// complete ends an attempt; a report that nobody awaits is a repeat or late.
func (r *Run) complete(ev Completion) {
	t, ok := r.plan.Task(ev.Task)
	if !ok {
		r.out.Refusal = fmt.Sprintf("the workflow has no task %q", ev.Task)
		return
	}
	switch status := r.s.TaskStatus[t]; {
	case !status.Numbered():
		r.out.Refusal = fmt.Sprintf("task %q is %s", ev.Task, status)
		return
	case !r.Awaits(ev.Task, ev.Attempt):
		r.out.Refusal = fmt.Sprintf("task %q is at attempt %d, the report is of attempt %d", ev.Task, r.s.Attempt[t], max(ev.Attempt, 1))
		return
	}
	r.advance()
	if ev.Exit == (state.Exit{}) {
		delete(r.s.Exits, t)
	} else {
		r.s.Exits[t] = bounded(ev.Exit)
	}
	switch {
	case ev.Success:
		r.clearReason(t)
		r.move(t, state.Completed, state.CauseSucceeded)
	case ev.Reason == msg.Cancelled && r.s.CancelRequested:
		r.reason(t, ev.Error)
		r.move(t, state.Cancelled, state.CauseCancelled)
	case ev.Reason == msg.Cancelled:
		r.giveBack(t, ev.Error)
	default:
		r.fail(t, ev)
	}
	if r.s.TaskStatus[t].Terminal() {
		r.keepResult(t, ev)
	}
}

// bounded returns x with texts as short as the names of machines, signals and
// reasons are: a report may say anything, and the state is written again and again.
func bounded(x state.Exit) state.Exit {
	for _, text := range []*string{&x.Signal, &x.Word, &x.Worker} {
		*text = msg.TruncateText(*text, state.MaxExitText)
	}
	return x
}

// keepResult stores what the report that ended t says about it.
func (r *Run) keepResult(t int32, ev Completion) {
	r.setOutput(t, ev.Output)
	if !ev.StartedAt.IsZero() {
		r.s.StartedAt[t] = ev.StartedAt.UnixMilli()
	}
	if !ev.EndedAt.IsZero() {
		r.s.EndedAt[t] = ev.EndedAt.UnixMilli()
	}
}

// fail uses up budget. A message that was refused for good would be refused
// again, so no budget helps; while cancelling nothing is tried again.
func (r *Run) fail(t int32, ev Completion) {
	delete(r.s.GiveBacks, t)
	r.s.Failures[t]++
	r.reason(t, ev.Error)
	if r.s.CancelRequested || ev.Reason == msg.Undeliverable || r.s.Failures[t] > r.plan.tasks[t].retries {
		r.move(t, state.Failed, state.CauseExhausted)
		return
	}
	r.move(t, state.Parked, state.CauseRetrying)
	r.park(t, 0)
}

// giveBack makes the next attempt without touching the budget. The back-off
// keeps a task that nobody can hold from going round as fast as it can.
func (r *Run) giveBack(t int32, why string) {
	r.s.GiveBacks[t]++
	wait := lastGiveBack
	if n := r.s.GiveBacks[t]; n < 10 {
		wait = min(firstGiveBack<<(n-1), lastGiveBack)
	}
	r.reason(t, why)
	r.move(t, state.Parked, state.CauseGivenBack)
	r.park(t, r.now.Add(wait).UnixMilli())
}

// fenced ends an attempt that no worker can run any more.
func (r *Run) fenced(ev Fenced) {
	switch {
	case !r.Present(Attempt{ev.Task, ev.Attempt}) || !r.s.TaskStatus[ev.Task].Numbered():
		r.out.Refusal = "the attempt is over already"
	case r.s.CancelRequested:
		r.move(ev.Task, state.Cancelled, state.CauseCancelled)
	default:
		// No cancel wants this end, so it is not the end of the task.
		r.giveBack(ev.Task, "the coordinator ended the attempt")
	}
}

// judged takes the verdict on the condition of a task.
func (r *Run) judged(ev Verdict) {
	if !r.candidates.has(ev.Task) {
		r.out.Refusal = "the task does not wait for a verdict"
		return
	}
	switch ev.Outcome {
	case ConditionTrue:
		r.activateTask(ev.Task)
	case ConditionFalse, ConditionUpstream:
		r.reason(ev.Task, ev.Reason)
		r.move(ev.Task, state.Skipped, state.CauseConditionFalse)
	case ConditionError:
		r.reason(ev.Task, ev.Reason)
		r.move(ev.Task, state.Failed, state.CauseConditionError)
	default:
		r.bug = fault.Newf(fault.Internal, "engine knows no outcome %d of a condition", ev.Outcome)
	}
}

func (r *Run) setOutput(t int32, o state.Output) {
	r.inline += inlineSize(o) - inlineSize(r.s.Outputs[t])
	if o.Kind == state.NoOutput {
		delete(r.s.Outputs, t)
		return
	}
	r.s.Outputs[t] = o
}

// shortText is the length of a reason once half of the room for texts is used.
const shortText = 100

// reason keeps why t did not complete, within the room that a state has.
func (r *Run) reason(t int32, text string) {
	r.clearReason(t)
	most := state.MaxText
	if r.texts > state.MaxTextTotal/2 {
		most = shortText
	}
	text = msg.TruncateText(text, min(most, state.MaxTextTotal-r.texts))
	if text != "" {
		r.texts += len(text)
		r.s.Reasons[t] = text
	}
}

func (r *Run) clearReason(t int32) {
	r.texts -= len(r.s.Reasons[t])
	delete(r.s.Reasons, t)
}
