package coord

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"jobq/core/dag"
	"jobq/core/engine"
	"jobq/core/fault"
	"jobq/core/msg"
	"jobq/core/port"
	"jobq/core/state"
)

// Summary is a workflow as interfaces show it (DESIGN §14). Fields are only
// ever added.
type Summary struct {
	WorkflowID      string `json:"workflow_id"`
	Name            string `json:"name"`
	Status          string `json:"status"`
	CancelRequested bool   `json:"cancel_requested"`
	// Stopped says that this is a run of one machine that no process goes on with. Who
	// knows of processes sets it.
	Stopped   bool         `json:"stopped,omitempty"`
	Total     int          `json:"total"`
	Counts    state.Counts `json:"counts"`
	CreatedAt Time         `json:"created_at,omitzero"`
	UpdatedAt Time         `json:"updated_at,omitzero"`
	Error     string       `json:"error,omitempty"`
	Tasks     []TaskView   `json:"tasks,omitempty"`
	// Next continues the list of tasks, absent at its end.
	Next string `json:"next,omitempty"`
}

// TaskView is a task as interfaces show it.
type TaskView struct {
	WorkflowID  string        `json:"workflow_id,omitempty"`
	Name        string        `json:"name"`
	Status      string        `json:"status"`
	Queue       string        `json:"queue"`
	DependsOn   []string      `json:"depends_on,omitempty"`
	DepPolicy   dag.DepPolicy `json:"dep_policy"`
	Attempt     uint32        `json:"attempt,omitempty"`
	Start       uint32        `json:"start,omitempty"`
	Stage       Stage         `json:"stage,omitempty"`
	RetriesLeft int           `json:"retries_left"`
	Reason      string        `json:"reason,omitempty"`
	ExitCode    *int          `json:"exit_code,omitempty"`
	Signal      string        `json:"signal,omitempty"`
	Worker      string        `json:"worker,omitempty"`
	StartedAt   Time          `json:"started_at,omitzero"`
	CompletedAt Time          `json:"completed_at,omitzero"`
	OutputRef   string        `json:"output_ref,omitempty"`
	Log         string        `json:"log,omitempty"`
}

// Stage says what the record of an attempt tells about a task whose status only
// says that it was sent, or may have been.
type Stage string

// The closed list of stages.
const (
	// StageQueued is an attempt that no worker has begun.
	StageQueued Stage = "queued"
	// StageStarted is an attempt that a worker holds.
	StageStarted Stage = "started"
	// StageReported is an attempt that ended and whose completion is on its way.
	StageReported Stage = "reported"
	// StageFree is an attempt that was given back, StageLost one whose worker is
	// gone: another start goes on with it.
	StageFree Stage = "free"
	StageLost Stage = "lost"
)

// Time is an instant that is written as RFC 3339 UTC with milliseconds.
type Time struct{ time.Time }

// MarshalJSON implements json.Marshaler.
func (t Time) MarshalJSON() ([]byte, error) {
	return []byte(t.UTC().Format(`"2006-01-02T15:04:05.000Z"`)), nil
}

func unixTime(ms int64) Time {
	if ms == 0 {
		return Time{}
	}
	return Time{time.UnixMilli(ms).UTC()}
}

// TaskFilter selects tasks of Tasks. Zero fields select everything.
type TaskFilter struct {
	Status []string
	Prefix string
	Queue  string
	// Names selects exactly these.
	Names []string
	// Limit bounds the result, 0 means MaxTasks; After is the name after which it
	// begins, in the order of the definition.
	Limit int
	After string
	// Live reads the attempt records of running tasks, so that "queued" can be
	// told from "started".
	Live bool
}

// MaxTasks is the largest list of tasks in one answer.
const MaxTasks = 1000

// Status returns the summary of wf, without tasks, from its state.
func (c *Coordinator) Status(ctx context.Context, wf string) (Summary, error) {
	e, err := c.read(ctx, wf)
	if err != nil {
		return Summary{}, err
	}
	return summaryOf(e), nil
}

// Tasks returns the summary of wf with the tasks that f selects.
func (c *Coordinator) Tasks(ctx context.Context, wf string, f TaskFilter) (Summary, error) {
	e, err := c.read(ctx, wf)
	if err != nil {
		return Summary{}, err
	}
	sum := summaryOf(e)
	limit := f.Limit
	if limit <= 0 {
		limit = MaxTasks
	}
	from := int32(0)
	if f.After != "" {
		at, ok := e.plan.Task(f.After)
		if !ok {
			return Summary{}, fault.Newf(fault.Invalid, "workflow %s has no task %q to go on from", wf, f.After)
		}
		from = at + 1
	}
	var chosen []int32
	for t := from; t < int32(e.plan.Len()); t++ {
		if !f.selects(e, t) {
			continue
		}
		if len(chosen) == limit {
			sum.Next = e.plan.Name(chosen[len(chosen)-1])
			break
		}
		chosen = append(chosen, t)
	}
	sum.Tasks = make([]TaskView, len(chosen))
	explainer := engine.NewExplainer(e.run, c.sched.Now())
	for i, t := range chosen {
		sum.Tasks[i] = c.taskView(e, t, explainer.Explain(t).Text)
	}
	if f.Live {
		c.sched.Parallel(ctx, len(chosen), c.o.Parallel, func(ctx context.Context, i int) {
			if t := chosen[i]; e.run.State().TaskStatus[t].Numbered() {
				c.addRecord(ctx, e, t, &sum.Tasks[i])
			}
		})
	}
	return sum, nil
}

func (f TaskFilter) selects(e *entry, t int32) bool {
	d := &e.plan.Definition().Tasks[t]
	status := e.run.State().TaskStatus[t].String()
	return (len(f.Status) == 0 || slices.Contains(f.Status, status)) &&
		strings.HasPrefix(d.Name, f.Prefix) &&
		(f.Queue == "" || d.Queue == f.Queue) &&
		(len(f.Names) == 0 || slices.Contains(f.Names, d.Name))
}

func summaryOf(e *entry) Summary {
	s := e.run.State()
	return Summary{
		WorkflowID: s.ID, Name: e.plan.Definition().Name, Status: s.Status.String(),
		CancelRequested: s.CancelRequested, Total: e.plan.Len(), Counts: e.run.Counts(),
		CreatedAt: Time{s.CreatedAt}, UpdatedAt: Time{s.UpdatedAt}, Error: s.Error,
	}
}

func (c *Coordinator) taskView(e *entry, t int32, why string) TaskView {
	s := e.run.State()
	d := &e.plan.Definition().Tasks[t]
	v := TaskView{
		Name: d.Name, Status: s.TaskStatus[t].String(), Queue: d.Queue, DependsOn: d.DependsOn,
		DepPolicy: d.DepPolicy, Attempt: s.Attempt[t], RetriesLeft: max(d.NumRetries-int(s.Failures[t]), 0),
		StartedAt: unixTime(s.StartedAt[t]), OutputRef: c.reference(e, t),
		Reason: why,
	}
	if v.Attempt <= s.BornAttempt {
		v.Attempt = 0 // it was given in an earlier life of the id
	}
	if s.TaskStatus[t].Terminal() {
		v.CompletedAt = unixTime(s.EndedAt[t])
	}
	if x, ok := s.Exits[t]; ok {
		v.Signal, v.Worker, v.Start = x.Signal, x.Worker, x.Start
		if x.Known {
			v.ExitCode = &x.Code
		}
	}
	if v.Attempt > 0 && v.Start > 0 {
		v.Log = msg.LogName(s.ID, d.Name, v.Attempt, v.Start)
	}
	return v
}

// addRecord tells queued from started by the attempt record.
func (c *Coordinator) addRecord(ctx context.Context, e *entry, t int32, v *TaskView) {
	key := port.RecordKey{Workflow: e.run.State().ID, Task: v.Name, Attempt: v.Attempt}
	stored, record, err := c.readRecord(ctx, key)
	switch {
	case fault.Is(err, fault.NotFound):
		v.Stage, v.Reason = StageQueued, "waits for a worker of queue "+v.Queue
		v.StartedAt = Time{}
	case err != nil:
		return
	case record.Ended != nil:
		v.Stage, v.Reason = StageReported, "ended, its report is on its way"
	case record.Free:
		v.Stage, v.Reason = StageFree, fmt.Sprintf("start %d was given back; waits for a worker of queue %s", record.Start, v.Queue)
		v.StartedAt = Time{}
	case stored.Stale(record.TTL):
		v.Stage = StageLost
		v.Reason = fmt.Sprintf("start %d was lost, its worker %s is gone; waits for another one", record.Start, record.Holder)
		v.StartedAt = Time{}
	default:
		v.StartedAt = Time{record.StartedAt.UTC()}
		v.Stage, v.Reason = StageStarted, "on "+record.Holder+" since "+v.StartedAt.Format(time.RFC3339)
		v.Worker, v.Start = record.Holder, record.Start
	}
	if record.Start > 0 {
		v.Log = msg.LogName(key.Workflow, key.Task, key.Attempt, record.Start)
	}
}

// List returns summaries from the index, newest first. Purged workflows are
// left out unless the filter asks for them.
func (c *Coordinator) List(ctx context.Context, f port.Filter) ([]Summary, string, error) {
	if len(f.Status) == 0 {
		for _, s := range state.WorkflowStatuses() {
			if s != state.WorkflowPurged {
				f.Status = append(f.Status, s.String())
			}
		}
	}
	rows, next, err := c.store.Index.List(ctx, f)
	if err != nil {
		return nil, "", err
	}
	out := make([]Summary, len(rows))
	for i, r := range rows {
		n := r.Counts
		out[i] = Summary{
			WorkflowID: r.Workflow, Name: r.Name, Status: r.Status, CancelRequested: r.Cancel.Requested, Total: n.Total,
			Counts: state.Counts{
				Pending: n.Pending, Ready: n.Ready, Running: n.Running, Completed: n.Completed, Failed: n.Failed,
				UpstreamFailed: n.UpstreamFailed, Skipped: n.Skipped, Cancelled: n.Cancelled,
			},
			CreatedAt: Time{r.CreatedAt}, UpdatedAt: Time{r.UpdatedAt}, Error: r.Error,
		}
	}
	return out, next, nil
}

// Definition returns the definition of wf and the namespace of its queues.
func (c *Coordinator) Definition(ctx context.Context, wf string) (*dag.Definition, string, error) {
	e, err := c.read(ctx, wf)
	if err != nil {
		return nil, "", err
	}
	return e.plan.Definition(), e.run.State().Namespace, nil
}
