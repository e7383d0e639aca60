package engine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"jobq/core/dag"
	"jobq/core/state"
)

// MaxExplained bounds how many tasks an Explanation names in each list.
const MaxExplained = 5

// Explanation says why a task is where it is.
type Explanation struct {
	// Status is the word that people see.
	Status string `json:"status"`
	// Text is one sentence.
	Text string `json:"text"`
	// Waiting are the tasks that must end before the task can move.
	Waiting Related `json:"waiting,omitzero"`
	// Blocking are the tasks with which the failure began that keeps the task
	// from running.
	Blocking Related `json:"blocking,omitzero"`
}

// Related is a list of tasks in the order of the definition, cut at
// MaxExplained.
type Related struct {
	Tasks []RelatedTask `json:"tasks"`
	// Total counts those that were cut, too.
	Total int `json:"total"`
}

// RelatedTask is a task that decides about another one.
type RelatedTask struct {
	Name   string `json:"name"`
	Status string `json:"status"`
}

// String names the tasks with their statuses, as part of a sentence.
func (l Related) String() string {
	var b strings.Builder
	for i, t := range l.Tasks {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q (%s)", t.Name, t.Status)
	}
	if more := l.Total - len(l.Tasks); more > 0 {
		fmt.Fprintf(&b, " and %d more", more)
	}
	return b.String()
}

// Explainer explains tasks of one Run at one time. What many tasks have in common
// it looks for once. It holds as long as the Run does not change, and is for one
// goroutine at a time.
type Explainer struct {
	r   *Run
	now time.Time
	// ways keep, of upstream_failed tasks that were looked at, the task to go on from
	// where but one parent did not succeed.
	ways map[int32]int32
	// seen holds, of each task, the number of the last walk that met it.
	seen []int32
	walk int32
}

// NewExplainer returns an Explainer of r at the time now.
func NewExplainer(r *Run, now time.Time) *Explainer {
	return &Explainer{r: r, now: now, ways: map[int32]int32{}}
}

// Explain says why the task at position t is where it is.
func (x *Explainer) Explain(t int32) Explanation {
	r := x.r
	e := Explanation{Status: r.s.TaskStatus[t].String()}
	switch r.s.TaskStatus[t] {
	case state.Pending:
		r.explainPending(t, &e)
	case state.Parked:
		e.Text = r.explainParked(t, x.now)
	case state.Intent:
		e.Text = fmt.Sprintf("attempt %d is to be sent to queue %q", r.s.Attempt[t], r.plan.queue(t))
	case state.Running:
		e.Text = fmt.Sprintf("attempt %d was sent to queue %q at %s; its attempt record tells whether a worker has it",
			r.s.Attempt[t], r.plan.queue(t), clock(r.s.StartedAt[t]))
	case state.Completed:
		e.Text = r.because(t, fmt.Sprintf("attempt %d succeeded", r.s.Attempt[t]))
	case state.Failed:
		e.Text = r.explainFailed(t)
	case state.UpstreamFailed:
		x.explainUpstream(t, &e)
	case state.Skipped:
		e.Text = r.because(t, "the condition was false")
	case state.Cancelled:
		e.Text = r.because(t, "the workflow was cancelled")
	}
	if r.Cancelling() && r.s.TaskStatus[t].Numbered() {
		e.Text = fmt.Sprintf("attempt %d is being stopped, because the workflow is being cancelled", r.s.Attempt[t])
	}
	return e
}

func (p *Plan) queue(t int32) string { return p.definition.Tasks[t].Queue }

func clock(milliseconds int64) string {
	return time.UnixMilli(milliseconds).UTC().Format(time.RFC3339)
}

// because returns the kept reason of t, or text where there is none.
func (r *Run) because(t int32, text string) string {
	if why, ok := r.s.Reasons[t]; ok {
		return why
	}
	return text
}

func (r *Run) explainPending(t int32, e *Explanation) {
	parents := r.plan.graph.Parents(int(t))
	switch {
	case r.candidates.has(t):
		e.Text = "the policy is met; the condition is to be evaluated"
	case r.verdict(t) == dag.Wait:
		e.Waiting = r.related(parents, r.open)
		e.Text = fmt.Sprintf("the policy %s is not met: %d of %d parents succeeded, %d failed; waits for %s",
			r.plan.tasks[t].policy, r.succeeded[t], len(parents), r.failed[t], e.Waiting)
	case r.plan.tasks[t].condition:
		e.Waiting = r.related(r.plan.tasks[t].named, r.open)
		e.Text = fmt.Sprintf("the policy is met; the condition waits for %s", e.Waiting)
	default:
		e.Text = "the workflow has not begun"
	}
}

func (r *Run) explainParked(t int32, now time.Time) string {
	var text string
	until := r.s.NotBefore[t]
	switch {
	case early(until, now):
		text = "waits until " + clock(until) + " before the next attempt"
	case !r.slotFree():
		text = fmt.Sprintf("waits for a slot: max_parallelism, %d of %d are used", r.active.len(), r.plan.limit)
	default:
		text = "ready; the next event of the workflow gives it an attempt number"
	}
	if why, ok := r.s.Reasons[t]; ok {
		text += fmt.Sprintf(" (attempt %d: %s)", r.s.Attempt[t], why)
	}
	return text
}

func (r *Run) explainFailed(t int32) string {
	if r.s.Failures[t] == 0 {
		return "the condition could not be evaluated: " + r.because(t, "no reason was kept")
	}
	text := fmt.Sprintf("attempt %d failed and is not tried again", r.s.Attempt[t])
	exit := r.s.Exits[t]
	switch why, ok := r.s.Reasons[t]; {
	case ok:
		text += ": " + why
	case exit.Signal != "":
		text += ": ended by signal " + exit.Signal
	case exit.Known:
		text += fmt.Sprintf(": exit code %d", exit.Code)
	}
	return text
}

func (x *Explainer) explainUpstream(t int32, e *Explanation) {
	r := x.r
	parents := r.plan.graph.Parents(int(t))
	e.Blocking = r.related(x.begun(t), func(int32) bool { return true })
	e.Text = fmt.Sprintf("the policy %s can no longer be met: %d of %d parents did not succeed; it began with %s",
		r.plan.tasks[t].policy, r.failed[t], len(parents), e.Blocking)
}

// begun returns the failed and cancelled ancestors of upstream_failed task t
// that are reached through upstream_failed tasks alone.
func (x *Explainer) begun(t int32) []int32 {
	if x.seen == nil {
		x.seen = make([]int32, x.r.plan.Len())
	}
	x.walk++
	var found []int32
	todo := []int32{x.way(t)}
	for len(todo) > 0 {
		t, todo = todo[len(todo)-1], todo[:len(todo)-1]
		switch {
		case x.seen[t] == x.walk:
		case x.r.s.TaskStatus[t] != state.UpstreamFailed:
			found = append(found, t)
		default:
			for _, p := range x.r.plan.graph.Parents(int(t)) {
				if x.r.s.TaskStatus[p].Unsuccessful() {
					todo = append(todo, x.way(p))
				}
			}
		}
		x.seen[t] = x.walk
	}
	slices.Sort(found)
	return found
}

// way returns the ancestor of t through which all goes that keeps t from running: the
// next one of which several parents did not succeed, or that failed itself. Chains are
// walked once.
func (x *Explainer) way(t int32) int32 {
	var chain []int32
	for x.r.s.TaskStatus[t] == state.UpstreamFailed {
		if far, ok := x.ways[t]; ok {
			t = far
			break
		}
		only, ok := x.onlyParent(t)
		if !ok {
			break
		}
		chain, t = append(chain, t), only
	}
	for _, passed := range chain {
		x.ways[passed] = t
	}
	return t
}

// onlyParent returns the parent of t that did not succeed, if there is one such.
func (x *Explainer) onlyParent(t int32) (only int32, ok bool) {
	for _, p := range x.r.plan.graph.Parents(int(t)) {
		if !x.r.s.TaskStatus[p].Unsuccessful() {
			continue
		}
		if ok {
			return 0, false
		}
		only, ok = p, true
	}
	return only, ok
}

func (r *Run) open(t int32) bool { return !r.s.TaskStatus[t].Terminal() }

// related lists those of tasks for which in is true.
func (r *Run) related(tasks []int32, in func(int32) bool) Related {
	var l Related
	for _, t := range tasks {
		if !in(t) {
			continue
		}
		l.Total++
		if len(l.Tasks) < MaxExplained {
			l.Tasks = append(l.Tasks, RelatedTask{r.plan.Name(t), r.s.TaskStatus[t].String()})
		}
	}
	return l
}
