package testkit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"jobq/core/coord"
	"jobq/core/dag"
	"jobq/core/fault"
	"jobq/core/msg"
	"jobq/core/port"
	"jobq/core/sched"
)

// World is a store with coordinators and hand-played workers around it. It
// belongs to the goroutine of its test, but for its Nodes.
type World struct {
	// Store is the store itself, which never fails.
	Store *port.Store
	// Options are those of every coordinator that is started.
	Options coord.Options
	// Scheduler is that of every coordinator.
	Scheduler sched.Scheduler
	// Outcome decides how an attempt ends; nil is success without output.
	Outcome func(m msg.Task) msg.Completion
	// Taken counts the messages that workers took, by "workflow/task#attempt".
	Taken map[string]int
	// Logger is what coordinators that are started write to.
	Logger *slog.Logger

	t      testing.TB
	open   func(process string) *port.Store
	queues map[string]struct{}
	// held are messages in the hands of workers that were not acknowledged.
	held    []heldTask
	reports int

	mu    sync.Mutex
	draws uint64
}

type heldTask struct {
	queue    string
	delivery port.Delivery
	task     msg.Task
}

// Inbox is the completion queue of a world.
const Inbox = "workflow-completions"

// NewWorld returns a world on the data that open gives to each process.
func NewWorld(t testing.TB, open func(process string) *port.Store) *World {
	w := &World{
		t: t, open: open, Scheduler: Serial{}, Taken: map[string]int{}, queues: map[string]struct{}{},
		Logger: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	w.Options = coord.Options{Prefix: "local/test"}
	w.Store = open("observer")
	return w
}

// Know tells the world the queues of d.
func (w *World) Know(d *dag.Definition) {
	for i := range d.Tasks {
		w.queues[d.Tasks[i].Queue] = struct{}{}
	}
}

// Take takes every message that waits in the task queues and returns how many.
func (w *World) Take(ctx context.Context) int {
	n := 0
	for _, name := range slices.Sorted(maps.Keys(w.queues)) {
		for {
			got, err := w.Store.Queues.Queue(name).Receive(ctx, port.ReceiveOptions{Max: 100, Lock: 7 * 24 * time.Hour})
			if err != nil && !fault.Is(err, fault.NotFound) {
				w.t.Fatalf("Receive(%s) = %v", name, err)
			}
			if len(got) == 0 {
				break
			}
			for _, d := range got {
				task, err := msg.DecodeTask(d.Body)
				if err != nil {
					w.t.Fatalf("a task message cannot be read: %v", err)
				}
				w.Taken[task.Workflow+"/"+attemptName(task.Name, task.Attempt)]++
				w.held = append(w.held, heldTask{name, d, task})
				n++
			}
		}
	}
	return n
}

// Finish ends every attempt that was taken as Outcome says, in the order in which
// they were taken, as a worker does that knows no attempt records.
func (w *World) Finish(ctx context.Context) { w.FinishSome(ctx, len(w.held)) }

// FinishSome is Finish for the first n attempts. It returns how many there were.
func (w *World) FinishSome(ctx context.Context, n int) int {
	some := w.held[:min(n, len(w.held))]
	w.held = slices.Clone(w.held[len(some):])
	for _, h := range some {
		c := msg.Completion{Success: true}
		if w.Outcome != nil {
			c = w.Outcome(h.task)
		}
		c.Workflow, c.Task, c.Attempt = h.task.Workflow, h.task.Name, h.task.Attempt
		w.Report(ctx, c)
		w.acknowledge(ctx, h)
	}
	return len(some)
}

// Report puts a completion into the inbox.
func (w *World) Report(ctx context.Context, c msg.Completion) {
	body, err := msg.EncodeCompletion(c)
	if err != nil {
		w.t.Fatalf("EncodeCompletion = %v", err)
	}
	w.Post(ctx, body)
}

// Post puts any message into the inbox.
func (w *World) Post(ctx context.Context, body []byte) {
	w.reports++
	m := port.Message{ID: fmt.Sprintf("report-%d", w.reports), Body: body}
	if errs := w.Store.Queues.Queue(Inbox).Send(ctx, []port.Message{m}); errs != nil {
		w.t.Fatalf("a message cannot be put into the inbox: %v", errs[0])
	}
}

func (w *World) acknowledge(ctx context.Context, h heldTask) {
	if errs := w.Store.Queues.Queue(h.queue).Acknowledge(ctx, []port.Delivery{h.delivery}); errs != nil {
		w.t.Fatalf("a task message cannot be acknowledged: %v", errs[0])
	}
}

// Status renders a workflow in one line: "w1 running A:completed B:ready".
func (w *World) Status(ctx context.Context, wf string) string {
	s, err := w.View().Tasks(ctx, wf, coord.TaskFilter{})
	if err != nil {
		return wf + " " + describe(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", wf, s.Status)
	if s.CancelRequested {
		b.WriteString(" (cancel requested)")
	}
	b.WriteString("  ")
	for _, t := range s.Tasks {
		fmt.Fprintf(&b, " %s:%s", t.Name, t.Status)
	}
	return b.String()
}

// View returns a coordinator that only looks.
func (w *World) View() *coord.Coordinator { return coord.New(w.Store, w.Scheduler, w.Options) }

// Queue renders what waits in a queue, or "-".
func (w *World) Queue(ctx context.Context, q port.Queue) string {
	got, err := q.Peek(ctx, 1000)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return describe(err)
	}
	var names []string
	for _, d := range got {
		names = append(names, nameOf(d.Body))
	}
	if len(names) == 0 {
		return "-"
	}
	return strings.Join(names, " ")
}

// nameOf renders a message of any queue.
func nameOf(body []byte) string {
	if task, err := msg.DecodeTask(body); err == nil && task.Workflow != "" {
		return attemptName(task.Name, task.Attempt)
	}
	switch in, err := msg.DecodeInbox(body); {
	case err != nil:
		return "unreadable"
	case in.Completion != nil:
		return "completion:" + attemptName(in.Completion.Task, in.Completion.Attempt)
	case in.Wake != nil:
		return "wake:" + in.Wake.Workflow
	default:
		return in.Command.Kind + ":" + in.Command.Workflow
	}
}

// Leftovers returns what a world at rest must not have: messages anywhere, rows
// that are due, an index that says something else than the states.
func (w *World) Leftovers(ctx context.Context, workflows ...string) error {
	var errs []error
	for _, name := range append(slices.Sorted(maps.Keys(w.queues)), Inbox) {
		q := w.Store.Queues.Queue(name)
		for kind, q := range map[string]port.Queue{"queue": q, "poison of": q.PoisonQueue()} {
			if n, err := q.Count(ctx); err == nil && n > 0 {
				errs = append(errs, fmt.Errorf("%s %s holds %d messages: %s", kind, name, n, w.Queue(ctx, q)))
			}
		}
	}
	due, err := w.Store.Index.DueBefore(ctx, w.Scheduler.Now().Add(time.Hour), 1000)
	errs = append(errs, err)
	for _, d := range due {
		errs = append(errs, fmt.Errorf("the due row %s is left", d.Key))
	}
	for _, wf := range workflows {
		s, err := w.View().Status(ctx, wf)
		row, rowErr := w.Store.Index.Get(ctx, wf)
		errs = append(errs, err, rowErr)
		if row.Status != s.Status || row.Counts.Completed != s.Counts.Completed || row.Counts.Total != s.Total {
			errs = append(errs, fmt.Errorf("the index says %s %+v of %s, its state %s %+v", row.Status, row.Counts, wf, s.Status, s.Counts))
		}
	}
	return errors.Join(errs...)
}

// describe renders an error by its code alone, and for an answer of ours with
// its sentence.
func describe(err error) string { return "error " + fault.CodeOf(err).String() }
