package engine

import (
	"slices"

	"jobq/core/dag"
	"jobq/core/fault"
	"jobq/core/state"
)

// Check recounts r from its statuses alone and fails with fault.Internal where
// a counter, a set or a column says something else. Its work is proportional to
// tasks plus dependencies: it is for tests and for a debug flag.
func Check(r *Run) error {
	c := checker{r: r, fresh: r.s.Status == state.WorkflowPending}
	waiting := make(map[parkedTask]bool, r.parked.Len())
	for _, p := range r.parked {
		waiting[p] = true
	}
	for t := range int32(r.plan.Len()) {
		status := r.s.TaskStatus[t]
		c.fresh = c.fresh && status == state.Pending
		c.counts.Add(status, 1)
		if status.Numbered() {
			c.active = append(c.active, t)
		}
		if status == state.Parked {
			c.want(waiting[parkedTask{r.s.NotBefore[t], t}], "task %d is parked, but nobody waits for it", t)
		}
		if r.plan.sinks[t] && status.Unsuccessful() {
			c.badSinks++
		}
		c.parents(t)
	}
	for t := range int32(r.plan.Len()) {
		c.task(t)
	}
	c.want(c.counts == r.counts, "the counts are %+v, recounted %+v", r.counts, c.counts)
	c.want(c.badSinks == r.badSinks, "%d sinks without success, recounted %d", r.badSinks, c.badSinks)
	c.want(slices.Equal(c.active, r.active.sorted()), "the active tasks are %v, recounted %v", r.active.sorted(), c.active)
	c.want(slices.Equal(c.candidates, r.candidates.sorted()), "the candidates are %v, recounted %v", r.candidates.sorted(), c.candidates)
	c.texts()
	c.workflow()
	return c.err
}

// checker keeps what a recount finds and the first contradiction.
type checker struct {
	r          *Run
	fresh      bool // not activated yet: no task was judged
	counts     state.Counts
	badSinks   int
	active     []int32
	candidates []int32
	err        error
}

func (c *checker) want(ok bool, format string, args ...any) {
	if !ok && c.err == nil {
		c.err = fault.Newf(fault.Internal, format, args...)
	}
}

// parents recounts what t knows of its parents.
func (c *checker) parents(t int32) {
	r := c.r
	var succeeded, failed, named int32
	for _, p := range r.plan.graph.Parents(int(t)) {
		status := r.s.TaskStatus[p]
		if status.Succeeded() {
			succeeded++
		}
		if status.Unsuccessful() {
			failed++
		}
		if status.Terminal() && r.plan.names(t, p) {
			named++
		}
	}
	c.want(succeeded == r.succeeded[t], "task %d: %d parents succeeded, recounted %d", t, r.succeeded[t], succeeded)
	c.want(failed == r.failed[t], "task %d: %d parents failed, recounted %d", t, r.failed[t], failed)
	c.want(named == r.namedEnded[t], "task %d: %d named parents ended, recounted %d", t, r.namedEnded[t], named)
}

// task compares the status of t with its parents and with its columns.
func (c *checker) task(t int32) {
	r, status := c.r, c.r.s.TaskStatus[t]
	verdict := r.verdict(t)
	switch status {
	case state.Pending:
		p := r.plan.tasks[t]
		if verdict == dag.Run && p.condition && int(r.namedEnded[t]) == len(p.named) {
			c.candidates = append(c.candidates, t)
		}
		c.want(c.fresh || verdict != dag.Never, "task %d is pending, its policy can no longer be met", t)
		c.want(c.fresh || verdict != dag.Run || p.condition, "task %d is pending, its policy is met", t)
	case state.UpstreamFailed:
		c.want(verdict == dag.Never, "task %d is upstream_failed, its policy can be met", t)
	}
	_, waits := r.s.NotBefore[t]
	_, givenBack := r.s.GiveBacks[t]
	_, frozen := r.s.Frozen[t]
	c.want(!waits || status == state.Parked, "task %d is %s and has a back-off", t, status)
	c.want(!givenBack || !status.Terminal(), "task %d is %s and counts give-backs", t, status)
	c.want(!frozen || status.Numbered(), "task %d is %s and has frozen parents", t, status)
	c.want(!status.Numbered() || r.s.Attempt[t] > 0, "task %d is %s without an attempt number", t, status)
	c.want(r.s.Attempt[t] <= r.s.HighestAttempt, "task %d has attempt %d, the highest is %d", t, r.s.Attempt[t], r.s.HighestAttempt)
	c.want((r.s.EndedAt[t] != 0) == status.Terminal(), "task %d is %s and ended at %d", t, status, r.s.EndedAt[t])
}

func (c *checker) texts() {
	inline, texts := 0, 0
	for _, o := range c.r.s.Outputs {
		inline += inlineSize(o)
	}
	for _, text := range c.r.s.Reasons {
		texts += len(text)
	}
	c.want(inline == c.r.inline, "inline outputs have %d bytes, recounted %d", c.r.inline, inline)
	c.want(texts == c.r.texts, "reasons have %d bytes, recounted %d", c.r.texts, texts)
	c.want(texts <= state.MaxTextTotal, "reasons have %d bytes, more than %d", texts, state.MaxTextTotal)
}

func (c *checker) workflow() {
	r, open := c.r, c.counts.Open()
	c.want(r.s.Status.Ended() == (open == 0), "the workflow is %s with %d open tasks", r.s.Status, open)
	c.want(!r.s.CancelRequested || open == len(c.active), "%d tasks wait in a workflow that is being cancelled", open-len(c.active))
	limit := r.plan.limit
	c.want(limit == 0 || len(c.active) <= limit, "%d tasks are active, the limit is %d", len(c.active), limit)
	if !r.slotFree() {
		return
	}
	for t, status := range r.s.TaskStatus {
		c.want(status != state.Parked || r.s.NotBefore[int32(t)] > 0, "task %d is parked although a slot is free", t)
	}
}
