package engine

import (
	"fmt"
	"slices"
	"time"

	"jobq/core/dag"
	"jobq/core/fault"
	"jobq/core/state"
)

// Step applies one event at the time now. An event that does not count (a
// repeat, a stale report, a refused command) changes nothing and says why in
// Refusal or Answer; what the time alone made due, the end of a back-off, is
// done with every event. An error is a defect of this package: the run must be
// thrown away and the state loaded again.
func (r *Run) Step(ev Event, now time.Time) (Effects, error) {
	var out Effects
	r.out, r.now, r.bug = &out, now, nil
	r.reopened = r.reopened[:0]
	r.apply(ev)
	r.drainJudge()
	r.fill()
	r.settle()
	slices.Sort(out.Need)
	r.out = nil
	if r.bug != nil {
		return Effects{}, r.bug
	}
	return out, nil
}

func (r *Run) apply(ev Event) {
	switch ev := ev.(type) {
	case Activated:
		r.activate()
	case Completion:
		r.complete(ev)
	case Dispatched:
		r.dispatched(ev)
	case Verdict:
		r.judged(ev)
	case Fenced:
		r.fenced(ev)
	case Wake:
		// fill does what is due.
	case Cancel:
		r.command(ev.Command, "cancel", func() Answer { return r.cancel() })
	case Retry:
		r.command(ev.Command, "retry", func() Answer { return r.retry() })
	case Rerun:
		r.command(ev.Command, "rerun", func() Answer { return r.rerun(ev) })
	case Mark:
		r.command(ev.Command, "mark", func() Answer { return r.mark(ev) })
	case Purge:
		r.command(ev.Command, "purge", func() Answer { return r.purge() })
	default:
		r.bug = fault.Newf(fault.Internal, "engine knows no event %T", ev)
	}
}

// activate judges every task once, in the order of the definition.
func (r *Run) activate() {
	if r.s.Status != state.WorkflowPending || r.counts.Pending != r.plan.Len() {
		r.out.Refusal = "the workflow is active already"
		return
	}
	for t := range int32(r.plan.Len()) {
		r.judgeTask(t)
	}
	// Roots with a condition were candidates from the beginning, so judgeTask
	// does not ask for them as for something new.
	r.out.Need = append(r.out.Need[:0], r.candidates.members...)
	r.out.Changed = true
}

func (r *Run) dispatched(ev Dispatched) {
	if !r.Present(Attempt{ev.Task, ev.Attempt}) || r.s.TaskStatus[ev.Task] != state.Intent {
		r.out.Refusal = "the attempt is not waiting to be sent"
		return
	}
	r.move(ev.Task, state.Running, state.CauseDispatched)
	r.s.StartedAt[ev.Task] = r.now.UnixMilli()
	r.advance()
}

// advance marks the workflow as running.
func (r *Run) advance() {
	if r.s.Status == state.WorkflowPending {
		r.s.Status = state.WorkflowRunning
		r.out.Changed = true
	}
}

// move is the only place that changes a status. It clears what belongs to the
// old one and hands the children to drainJudge.
func (r *Run) move(t int32, to state.TaskStatus, cause state.Cause) {
	from := r.s.TaskStatus[t]
	if !r.plan.legal(from, to, cause) {
		r.bug = fault.Newf(fault.Internal, "task %q may not go from %s to %s by %s", r.plan.Name(t), from, to, cause)
		return
	}
	r.s.TaskStatus[t] = to
	r.count(t, from, to)
	r.clear(t, from, to)
	r.out.Changed = true
	r.out.Changes = append(r.out.Changes, Change{t, from, to, cause, r.s.Attempt[t]})
	if from.Terminal() != to.Terminal() || from.Succeeded() != to.Succeeded() {
		for _, c := range r.plan.graph.Children(int(t)) {
			if r.s.TaskStatus[c] == state.Pending {
				r.judge = append(r.judge, c)
			}
		}
	}
}

// clear drops what holds only in the status that t left, and stamps an end. An
// output stays until the task ends again: see rerun.
func (r *Run) clear(t int32, from, to state.TaskStatus) {
	if from == state.Pending {
		r.candidates.remove(t)
	}
	if to != state.Parked {
		delete(r.s.NotBefore, t)
	}
	if !to.Numbered() {
		delete(r.s.Frozen, t)
	}
	if to.Terminal() {
		delete(r.s.GiveBacks, t)
		r.setOutput(t, state.Output{})
		r.s.EndedAt[t] = r.now.UnixMilli()
	} else {
		r.s.StartedAt[t], r.s.EndedAt[t] = 0, 0
	}
}

// drainJudge judges pending tasks until none is left whose parents moved. A
// list instead of recursion: a chain may be 100,000 tasks deep.
func (r *Run) drainJudge() {
	for len(r.judge) > 0 {
		last := len(r.judge) - 1
		t := r.judge[last]
		r.judge = r.judge[:last]
		r.judgeTask(t)
	}
}

// judgeTask moves pending task t if its policy and condition decide.
func (r *Run) judgeTask(t int32) {
	if r.s.TaskStatus[t] != state.Pending {
		return
	}
	switch r.verdict(t) {
	case dag.Never:
		r.move(t, state.UpstreamFailed, state.CauseUpstream)
	case dag.Run:
		switch {
		case !r.plan.tasks[t].condition:
			r.activateTask(t)
		case r.waitsForVerdict(t):
			if !r.candidates.has(t) {
				r.candidates.add(t)
				r.out.Need = append(r.out.Need, t)
			}
		default:
			r.candidates.remove(t)
		}
	default:
		r.candidates.remove(t)
	}
}

// activateTask makes t ready, without a number yet.
func (r *Run) activateTask(t int32) {
	r.move(t, state.Parked, state.CauseActivated)
	r.park(t, 0)
}

// park puts t among those that wait for a slot, not before until.
func (r *Run) park(t int32, until int64) {
	if until != 0 {
		r.s.NotBefore[t] = until
	}
	r.parked.add(parkedTask{until, t})
}

// fill gives numbers to parked tasks while there are slots.
func (r *Run) fill() {
	for r.parked.Len() > 0 && r.slotFree() {
		head := r.parked[0]
		if !r.waits(head) {
			r.parked.next()
			continue
		}
		if early(head.until, r.now) {
			return
		}
		r.parked.next()
		r.number(head.task)
	}
}

// early reports whether a back-off that ends at until has not ended now. One that ends long after the
// longest that could begin now was given by a clock far ahead: nobody waits for that.
func early(until int64, now time.Time) bool {
	return until > now.UnixMilli() && until <= now.Add(2*lastGiveBack).UnixMilli()
}

// number turns parked task t into an intent: from here on its message may exist.
func (r *Run) number(t int32) {
	r.s.Attempt[t]++
	r.s.HighestAttempt = max(r.s.HighestAttempt, r.s.Attempt[t])
	r.freeze(t)
	r.move(t, state.Intent, state.CauseNumbered)
	r.out.Send = append(r.out.Send, Attempt{t, r.s.Attempt[t]})
}

// freeze fixes which parents' outputs the attempt gets: those that succeeded,
// and those that run again and whose old output is still there. A policy that
// wants all parents always gets all.
func (r *Run) freeze(t int32) {
	parents := r.plan.graph.Parents(int(t))
	if r.plan.tasks[t].policy.Kind == dag.All || int(r.succeeded[t]) == len(parents) {
		return
	}
	at := make([]int32, 0, r.succeeded[t])
	for i, p := range parents {
		_, old := r.s.Outputs[p]
		if status := r.s.TaskStatus[p]; status.Succeeded() || old && !status.Terminal() {
			at = append(at, int32(i))
		}
	}
	r.s.Frozen[t] = at
}

// settle ends the workflow when nothing can still run, and opens it again when
// a command left something to do.
func (r *Run) settle() {
	if r.counts.Open() == 0 {
		r.end()
		return
	}
	if r.s.Status.Ended() {
		r.s.Status, r.s.Error = state.WorkflowPending, ""
		r.out.Changed = true
	}
}

func (r *Run) end() {
	status, text := r.result()
	if r.s.Status == status && r.s.Error == text {
		return
	}
	r.out.Settled = r.s.Status != status
	r.out.Changed = true
	r.s.Status, r.s.Error = status, text
}

// result says how a workflow without open tasks ended, and why not well.
func (r *Run) result() (status state.WorkflowStatus, text string) {
	c := r.counts
	switch {
	case r.succeededAsAWhole():
		return state.WorkflowCompleted, ""
	case r.s.CancelRequested || c.Failed+c.UpstreamFailed == 0:
		return state.WorkflowCancelled, ""
	default:
		return state.WorkflowFailed, fmt.Sprintf("%d failed, %d upstream_failed, %d cancelled", c.Failed, c.UpstreamFailed, c.Cancelled)
	}
}

func (r *Run) succeededAsAWhole() bool {
	if r.plan.result == dag.AllSinksSucceed {
		return r.badSinks == 0
	}
	return r.counts.Unsuccessful() == 0
}
