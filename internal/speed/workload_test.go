package speed

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"jobq/core/dag"
	"jobq/core/msg"
)

// workload is a workflow and what is reported of it: the completions of its first
// tasks.
type workload struct {
	definition *dag.Definition
	// reports is how many tasks of the definition end.
	reports int
	// sends is how many messages each of them leads to: 0 or 1.
	sends int
}

const taskQueue = "cpu"

func task(name string, parents ...string) dag.Task {
	return dag.Task{
		Name: name, Queue: taskQueue, DependsOn: parents,
		Kwargs: []dag.Kwarg{{Key: "cmd", Value: json.RawMessage(`"true"`)}},
	}
}

// fanIn is n tasks that end and one that does not, before one join: no message is
// sent.
func fanIn(n int) workload {
	d := &dag.Definition{Name: "fan-in", DefaultQueue: taskQueue}
	parents := make([]string, 0, n+1)
	for i := range n + 1 {
		parents = append(parents, fmt.Sprintf("p%05d", i))
		d.Tasks = append(d.Tasks, task(parents[i]))
	}
	d.Tasks = append(d.Tasks, task("join", parents...))
	return workload{definition: d, reports: n}
}

// pairs is n tasks that end with one dependent each: each end leads to a message.
func pairs(n int) workload {
	d := &dag.Definition{Name: "pairs", DefaultQueue: taskQueue}
	for i := range n {
		d.Tasks = append(d.Tasks, task(fmt.Sprintf("p%05d", i)))
	}
	for i := range n {
		d.Tasks = append(d.Tasks, task(fmt.Sprintf("c%05d", i), d.Tasks[i].Name))
	}
	return workload{definition: d, reports: n, sends: 1}
}

// completions returns the messages by which workers report the ends of w.
func (w workload) completions(tb testing.TB, wf string) [][]byte {
	tb.Helper()
	now := time.Now().UTC()
	bodies := make([][]byte, w.reports)
	for i := range bodies {
		body, err := msg.EncodeCompletion(msg.Completion{
			Workflow: wf, Task: w.definition.Tasks[i].Name, Attempt: 1, Success: true,
			ExitCode: new(0), Worker: "worker-1", Start: 1, StartedAt: now.Add(-time.Second), EndedAt: now,
		})
		if err != nil {
			tb.Fatal(err)
		}
		bodies[i] = body
	}
	return bodies
}
