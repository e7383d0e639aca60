package coord_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"jobq/core/coord"
	"jobq/core/dag"
	"jobq/core/msg"
	"jobq/core/port"
	"jobq/core/sched"
	"jobq/store/memory"
)

// world is one installation: a store, a coordinator, and workers that the test
// plays itself.
type world struct {
	t     *testing.T
	store *port.Store
	c     *coord.Coordinator
	// runs counts the messages that workers took up, by task and attempt.
	runs map[string]int
	// outcome decides how an attempt ends; nil means success.
	outcome func(m msg.Task) msg.Completion
}

func newWorld(t *testing.T, store *port.Store) *world {
	t.Helper()
	if store == nil {
		store = memory.New(memory.Options{}).Port()
	}
	w := &world{t: t, store: store, runs: map[string]int{}}
	w.c = w.coordinator()
	return w
}

// coordinator returns one more coordinator, with a cache of its own.
func (w *world) coordinator() *coord.Coordinator {
	return coord.New(w.store, sched.Real{}, coord.Options{
		Prefix: "local/test", Logger: slog.New(slog.NewTextHandler(w.t.Output(), nil)),
		CommandPatience: time.Second,
	})
}

func (w *world) submit(id string, d *dag.Definition) {
	w.t.Helper()
	if _, err := w.c.Submit(w.t.Context(), coord.Submission{ID: id, Definition: d}); err != nil {
		w.t.Fatalf("Submit(%s) = %v", id, err)
	}
}

// wave takes every message of the definition's queues and reports each.
func (w *world) wave(d *dag.Definition) int {
	w.t.Helper()
	n := 0
	for _, name := range queuesOf(d) {
		for {
			got, err := w.store.Queues.Queue(name).Receive(w.t.Context(), port.ReceiveOptions{Max: 32, Lock: time.Minute})
			if err != nil && len(got) == 0 || len(got) == 0 {
				break
			}
			for _, m := range got {
				w.work(name, m)
				n++
			}
		}
	}
	return n
}

// work runs one task message: no record, as a worker of ai4s-jobq does.
func (w *world) work(queue string, m port.Delivery) {
	w.t.Helper()
	task, err := msg.DecodeTask(m.Body)
	if err != nil {
		w.t.Fatalf("DecodeTask = %v", err)
	}
	w.runs[fmt.Sprintf("%s#%d", task.Name, task.Attempt)]++
	done := msg.Completion{Success: true}
	if w.outcome != nil {
		done = w.outcome(task)
	}
	done.Workflow, done.Task, done.Attempt = task.Workflow, task.Name, task.Attempt
	w.report(done)
	if err := firstError(w.store.Queues.Queue(queue).Acknowledge(w.t.Context(), []port.Delivery{m})); err != nil {
		w.t.Fatalf("Acknowledge = %v", err)
	}
}

var reports int

func (w *world) report(c msg.Completion) {
	w.t.Helper()
	body, err := msg.EncodeCompletion(c)
	if err != nil {
		w.t.Fatalf("EncodeCompletion = %v", err)
	}
	reports++
	m := port.Message{ID: fmt.Sprintf("report-%d", reports), Body: body}
	if err := firstError(w.store.Queues.Queue("workflow-completions").Send(w.t.Context(), []port.Message{m})); err != nil {
		w.t.Fatalf("Send = %v", err)
	}
}

// drive plays workers and coordinator until nothing moves.
func (w *world) drive(id string, d *dag.Definition) coord.Summary {
	w.t.Helper()
	for {
		n := w.wave(d)
		m, err := w.c.Drain(w.t.Context(), time.Minute, nil)
		if err != nil {
			w.t.Fatalf("Drain = %v", err)
		}
		if n+m == 0 {
			return w.status(id)
		}
	}
}

func (w *world) status(id string) coord.Summary {
	w.t.Helper()
	s, err := w.c.Tasks(w.t.Context(), id, coord.TaskFilter{})
	if err != nil {
		w.t.Fatalf("Tasks(%s) = %v", id, err)
	}
	return s
}

// statuses renders tasks as "A:completed B:ready".
func statuses(s coord.Summary) string {
	var b strings.Builder
	for i, t := range s.Tasks {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%s:%s", t.Name, t.Status)
	}
	return b.String()
}

func queuesOf(d *dag.Definition) []string {
	var names []string
	for i := range d.Tasks {
		names = append(names, d.Tasks[i].Queue)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func firstError(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// graph builds a definition from lines such as "D < B C any".
func graph(lines ...string) *dag.Definition {
	d := &dag.Definition{Name: "test", DefaultQueue: "cpu"}
	for _, line := range lines {
		name, rest, _ := strings.Cut(line, " < ")
		t := dag.Task{Name: name, Queue: "cpu", Kwargs: []dag.Kwarg{{Key: "cmd", Value: []byte(`"true"`)}}}
		for _, word := range strings.Fields(rest) {
			switch word {
			case "any":
				t.DepPolicy = dag.DepPolicy{Kind: dag.Any}
			case "settled":
				t.DepPolicy = dag.DepPolicy{Kind: dag.AllSettled}
			default:
				t.DependsOn = append(t.DependsOn, word)
			}
		}
		d.Tasks = append(d.Tasks, t)
	}
	return d
}

func diamond() *dag.Definition { return graph("A", "B < A", "C < A", "D < B C") }

var _ = context.Canceled
