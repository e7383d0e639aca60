package engine

import (
	"time"

	"jobq/core/dag"
	"jobq/core/fault"
	"jobq/core/state"
)

// Run is a state together with what follows from it: counters and sets that
// make every event cheap and are never stored.
type Run struct {
	plan *Plan
	s    *state.Workflow

	succeeded  []int32
	failed     []int32
	namedEnded []int32
	counts     state.Counts
	badSinks   int
	active     indexSet
	candidates indexSet
	parked     waiting
	inline     int
	texts      int

	// judge holds pending tasks whose parents moved, reopened the tasks that a
	// command made pending again, both within one Step.
	judge    []int32
	reopened []int32
	now      time.Time
	out      *Effects
	bug      error
}

// NewRun takes ownership of s, which must belong to the plan's definition.
func NewRun(p *Plan, s *state.Workflow) (*Run, error) {
	n := p.Len()
	if len(s.TaskStatus) != n {
		return nil, fault.Newf(fault.Corrupt, "the state has %d tasks, the definition %d", len(s.TaskStatus), n)
	}
	r := &Run{
		plan: p, s: s, active: newIndexSet(n), candidates: newIndexSet(n),
		succeeded: make([]int32, n), failed: make([]int32, n), namedEnded: make([]int32, n),
	}
	for t := range int32(n) {
		r.count(t, 0, s.TaskStatus[t])
	}
	for t := range int32(n) {
		switch s.TaskStatus[t] {
		case state.Pending:
			if r.waitsForVerdict(t) {
				r.candidates.add(t)
			}
		case state.Parked:
			r.parked.add(parkedTask{s.NotBefore[t], t})
		}
	}
	for _, o := range s.Outputs {
		r.inline += inlineSize(o)
	}
	for _, text := range s.Reasons {
		r.texts += len(text)
	}
	return r, nil
}

// Begin returns the first state of a workflow, before Activated. previous is
// the tombstone of an earlier life of the id, or nil.
func Begin(p *Plan, id, hash string, previous *state.Workflow, now time.Time) *state.Workflow {
	s := state.New(id, p.Len())
	s.Definition, s.CreatedAt, s.UpdatedAt = hash, now, now
	if previous != nil {
		// The first attempt of a task of a first life has names that tell no attempt. No
		// later life may use them, whether an earlier one did or not.
		highest := max(previous.HighestAttempt, 1)
		s.Version, s.HighestAttempt, s.BornAttempt = previous.Version, highest, highest
		s.Epoch = previous.Epoch + 1
		s.BornEpoch = s.Epoch
		s.Commands = previous.Commands
		for i := range s.Attempt {
			s.Attempt[i] = highest
		}
	}
	return s
}

// State returns the state. It changes with every Step and must not be changed
// by others, but for Version, UpdatedAt and Namespace, which belong to the
// caller.
func (r *Run) State() *state.Workflow { return r.s }

// Plan returns the plan of the run.
func (r *Run) Plan() *Plan { return r.plan }

// Counts returns how many tasks are in each status, in constant time.
func (r *Run) Counts() state.Counts { return r.counts }

// Sendable reports whether a still may be sent: it is the present attempt of a
// task that is ready, and no cancel came in between.
func (r *Run) Sendable(a Attempt) bool {
	return r.Present(a) && r.s.TaskStatus[a.Task] == state.Intent && !r.s.CancelRequested
}

// Present reports whether a is the present attempt of its task. An attempt that
// was noted in an earlier life of the workflow may be of a task that it no longer
// has.
func (r *Run) Present(a Attempt) bool {
	return int(a.Task) < len(r.s.Attempt) && r.s.Attempt[a.Task] == a.Attempt
}

// Ahead reports whether a is an attempt of a task that the state does not have
// yet: the state is older than what is known of a.
func (r *Run) Ahead(a Attempt) bool {
	return int(a.Task) < len(r.s.Attempt) && r.s.Attempt[a.Task] < a.Attempt
}

// Cancelling reports whether the workflow is being cancelled and has not ended.
func (r *Run) Cancelling() bool { return r.s.CancelRequested && !r.s.Status.Ended() }

// InlineRoom reports whether an inline output of n bytes may stay in the state.
func (r *Run) InlineRoom(n int) bool {
	return n <= state.MaxInlineOutput && r.inline+n <= state.MaxInlineTotal
}

// Parents returns the parents whose outputs the present attempt of t gets, in
// the order of depends_on.
func (r *Run) Parents(t int32) []int32 {
	all := r.plan.graph.Parents(int(t))
	frozen, ok := r.s.Frozen[t]
	if !ok {
		return all
	}
	parents := make([]int32, 0, len(frozen))
	for _, at := range frozen {
		if int(at) < len(all) {
			parents = append(parents, all[at])
		}
	}
	return parents
}

// Outstanding returns what the state wants whoever asks: attempts that may not
// have been sent, conditions that wait for a verdict, attempts to be fenced.
// Its work is proportional to the number of tasks that are ready or running.
func (r *Run) Outstanding() Outstanding {
	o := Outstanding{Need: r.Candidates()}
	for _, t := range r.active.sorted() {
		a := Attempt{t, r.s.Attempt[t]}
		switch {
		case r.Cancelling():
			o.Fence = append(o.Fence, a)
		case r.s.TaskStatus[t] == state.Intent:
			o.Send = append(o.Send, a)
		}
	}
	o.ParkedUntil = r.ParkedUntil()
	return o
}

// Candidates returns the tasks whose condition waits for a verdict, ascending.
// Its work is proportional to their number alone.
func (r *Run) Candidates() []int32 { return r.candidates.sorted() }

// ParkedUntil returns the earliest end of a back-off, when a Wake has something
// to do; zero if time alone moves nothing, also because every slot is used.
func (r *Run) ParkedUntil() time.Time {
	for r.parked.Len() > 0 && r.slotFree() {
		head := r.parked[0]
		if r.waits(head) {
			return time.UnixMilli(head.until).UTC()
		}
		r.parked.next()
	}
	return time.Time{}
}

// waits reports whether an entry of the waiting room is still true.
func (r *Run) waits(p parkedTask) bool {
	return r.s.TaskStatus[p.task] == state.Parked && r.s.NotBefore[p.task] == p.until
}

func (r *Run) slotFree() bool { return r.plan.limit == 0 || r.active.len() < r.plan.limit }

// waitsForVerdict reports whether only the condition of pending task t is open.
func (r *Run) waitsForVerdict(t int32) bool {
	p := &r.plan.tasks[t]
	return p.condition && r.verdict(t) == dag.Run && int(r.namedEnded[t]) == len(p.named)
}

// verdict applies the policy of t to its parents.
func (r *Run) verdict(t int32) dag.Verdict {
	total := len(r.plan.graph.Parents(int(t)))
	return r.plan.tasks[t].policy.Judge(int(r.succeeded[t]), int(r.failed[t]), total)
}

// count moves t between the counters of from and to; from is 0 at first.
func (r *Run) count(t int32, from, to state.TaskStatus) {
	r.counts.Add(from, -1)
	r.counts.Add(to, 1)
	if to.Numbered() {
		r.active.add(t)
	} else {
		r.active.remove(t)
	}
	succeeded := delta(from.Succeeded(), to.Succeeded())
	failed := delta(from.Unsuccessful(), to.Unsuccessful())
	if succeeded == 0 && failed == 0 {
		return
	}
	if r.plan.sinks[t] {
		r.badSinks += int(failed)
	}
	for _, c := range r.plan.graph.Children(int(t)) {
		r.succeeded[c] += succeeded
		r.failed[c] += failed
		if r.plan.tasks[c].condition && r.plan.names(c, t) {
			r.namedEnded[c] += succeeded + failed
		}
	}
}

func delta(before, after bool) int32 {
	switch {
	case after && !before:
		return 1
	case before && !after:
		return -1
	default:
		return 0
	}
}

func inlineSize(o state.Output) int {
	if o.Kind == state.InlineOutput {
		return len(o.Text)
	}
	return 0
}
