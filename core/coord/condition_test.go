package coord_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"jobq/core/coord"
	"jobq/core/dag"
	"jobq/core/fault"
	"jobq/core/msg"
	"jobq/core/sched"
	"jobq/internal/testkit"
	"jobq/store/memory"
	"jobq/store/wrap/faults"
)

// gated returns n tasks and conditions over some of them: each of gates is the
// name of a task, and how many of the n its condition names.
func gated(n int, gates map[string]int) *dag.Definition {
	d := &dag.Definition{Name: "gated", DefaultQueue: "cpu"}
	for i := range n {
		d.Tasks = append(d.Tasks, dag.Task{Name: fmt.Sprintf("t%04d", i), Queue: "cpu"})
	}
	for name, parents := range gates {
		gate := dag.Task{Name: name, Queue: "cpu", Condition: `all(inputs["t*"].ok)`}
		for i := range parents {
			gate.DependsOn = append(gate.DependsOn, d.Tasks[i].Name)
		}
		d.Tasks = append(d.Tasks, gate)
	}
	return d
}

// bigOutputs ends every attempt with an output of about a kilobyte, which the
// coordinator keeps in a blob.
func bigOutputs(msg.Task) msg.Completion {
	return msg.Completion{Success: true, OutputRef: `{"ok":true,"pad":"` + strings.Repeat("x", 1000) + `"}`}
}

// Outputs that were read for a condition are not read again because there was no
// time for the others: a condition that names very many would never be evaluated.
func TestAConditionOverVeryManyOutputsIsEvaluated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const n = 3000
		d := gated(n, map[string]int{"gate": n})
		w := onMemory(t, memory.Options{})
		w.Scheduler = sched.Real{}
		w.Outcome = bigOutputs
		w.Know(d)
		reads := 0
		c := w.Start("c", func(c faults.Call) faults.Fate {
			if c.Op != "Outputs.Get" {
				return faults.Fate{}
			}
			reads++
			return faults.Fate{Delay: time.Second}
		})
		mustSubmit(t, c, "w", d)
		w.Take(t.Context())
		w.Finish(t.Context())
		stop := serve(t, c)
		time.Sleep(2 * time.Minute)
		stop()
		if w.Take(t.Context()); w.Taken["w/gate#1"] != 1 {
			t.Errorf("after two minutes and %d reads of outputs the condition over %d of them is not evaluated", reads, n)
		}
		if reads > 2*n {
			t.Errorf("%d outputs were read %d times", n, reads)
		}
	})
}

// One condition takes no more memory than Options.ConditionBytes, however much it
// names.
func TestAConditionOverTooMuchOutputFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := gated(10, map[string]int{"few": 3, "some": 4, "all": 10})
		w := onMemory(t, memory.Options{})
		w.Options.ConditionBytes = 5 << 10
		w.Outcome = bigOutputs
		w.Know(d)
		c := w.Start("c")
		mustSubmit(t, c, "w", d)
		w.Take(t.Context())
		w.Finish(t.Context())
		if _, err := c.Drain(t.Context(), time.Minute, nil); err != nil {
			t.Fatal(err)
		}
		w.Take(t.Context())
		if w.Taken["w/few#1"] != 1 || w.Taken["w/some#1"] != 1 || w.Taken["w/all#1"] != 0 {
			t.Errorf("sent: %v, want few and some", w.Taken)
		}
		const want = "the condition could not be evaluated: the outputs that it names have more than 5120 bytes in all"
		if got := reasonOf(t, c, "w", "all"); got != want {
			t.Errorf("reason of all = %q, want %q", got, want)
		}
	})
}

func reasonOf(t *testing.T, c *testkit.Node, wf, task string) string {
	t.Helper()
	s, err := c.Tasks(t.Context(), wf, coord.TaskFilter{Names: []string{task}})
	if err != nil || len(s.Tasks) != 1 {
		t.Fatalf("Tasks(%s, %s) = %+v, %v", wf, task, s.Tasks, err)
	}
	return s.Tasks[0].Reason
}

// Outputs that hang hold up the conditions that name them, and nothing else.
func TestOutputsThatHangDoNotHoldUpOtherSteps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := gated(1, map[string]int{"gate": 1})
		d.Tasks = append(d.Tasks, chain().Tasks...)
		w := onMemory(t, memory.Options{})
		w.Scheduler = sched.Real{}
		w.Outcome = bigOutputs
		w.Know(d)
		c := w.Start("c", at("Outputs.Get", time.Hour))
		mustSubmit(t, c, "w", d)
		stop := serve(t, c)
		if took := throughChain(t, w); took > 20*time.Second {
			t.Errorf("nine steps took %v while an output hung that they do not need", took)
		}
		stop()
	})
}

// Also the conditions that name other outputs go on.
func TestOutputsThatHangDoNotHoldUpOtherConditions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := gated(1, map[string]int{"gate": 1})
		for _, task := range chain().Tasks {
			for _, parent := range task.DependsOn {
				task.Condition = fmt.Sprintf("inputs[%q].ok", parent)
			}
			d.Tasks = append(d.Tasks, task)
		}
		w := onMemory(t, memory.Options{})
		w.Scheduler = sched.Real{}
		w.Outcome = bigOutputs
		w.Know(d)
		c := w.Start("c", func(c faults.Call) faults.Fate {
			if c.Op == "Outputs.Get" && strings.Contains(c.Key, "t0000") {
				return faults.Fate{Delay: time.Hour}
			}
			return faults.Fate{}
		})
		mustSubmit(t, c, "w", d)
		stop := serve(t, c)
		if took := throughChain(t, w); took > 20*time.Second {
			t.Errorf("nine steps took %v while an output hung that their conditions do not name", took)
		}
		stop()
	})
}

// Conditions of which some get their verdict in the time of each job do not rest in
// between.
func TestConditionsThatComeForwardDoNotRest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const n = 1500
		d := &dag.Definition{Name: "gates", DefaultQueue: "cpu"}
		for i := range n {
			d.Tasks = append(d.Tasks, dag.Task{Name: fmt.Sprintf("t%04d", i), Queue: "cpu"})
		}
		for i := range n {
			d.Tasks = append(d.Tasks, dag.Task{
				Name: fmt.Sprintf("gate%04d", i), Queue: "cpu", DependsOn: []string{d.Tasks[i].Name}, Condition: `all(inputs["t*"].ok)`,
			})
		}
		w := onMemory(t, memory.Options{})
		w.Scheduler = sched.Real{}
		w.Outcome = bigOutputs
		w.Know(d)
		var said bytes.Buffer
		w.Logger = slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelWarn}))
		c := w.Start("c", at("Outputs.Get", time.Second)) // about 25 s in all
		mustSubmit(t, c, "w", d)
		w.Take(t.Context())
		w.Finish(t.Context())
		stop := serve(t, c)
		time.Sleep(70 * time.Second)
		stop()
		if got := w.Take(t.Context()); got != n {
			t.Errorf("after 70 s %d of %d conditions were evaluated", got, n)
		}
		if lines := strings.Count(said.String(), "\n"); lines > 100 {
			t.Errorf("%d lines were logged", lines)
		}
	})
}

// A worker without records writes the output of every attempt under one name. What
// was read of the one is not that of the next.
func TestAnOutputThatWasKeptIsThatOfItsAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		d := graph("A", "H", "gate < A H", "other < H")
		d.Tasks[2].Condition, d.Tasks[3].Condition = `inputs["A"].ok and inputs["H"].ok`, `inputs["H"].ok`
		w := onMemory(t, memory.Options{})
		w.Outcome = func(m msg.Task) msg.Completion {
			return msg.Completion{Success: true, OutputRef: msg.FormatBlobRef(msg.CanonicalOutput(m.Workflow, m.Name), "")}
		}
		w.Know(d)
		write := func(task, output string) {
			name := msg.CanonicalOutput("w", task)
			err := w.Store.Outputs.DeletePrefix(ctx, name, nil)
			if err := errors.Join(err, w.Store.Outputs.Put(ctx, name, []byte(output))); err != nil {
				t.Fatal(err)
			}
		}
		drain := func(c *testkit.Node) {
			w.Take(ctx)
			w.Finish(ctx)
			if _, err := c.Drain(ctx, time.Second, nil); err != nil {
				t.Fatal(err)
			}
		}
		hangs := true
		c := w.Start("c", func(c faults.Call) faults.Fate {
			if hangs && c.Op == "Outputs.Get" && strings.HasSuffix(c.Key, "H.json") {
				return faults.Fate{Before: fault.New(fault.Unavailable, "not now")}
			}
			return faults.Fate{}
		})
		mustSubmit(t, c, "w", d)
		write("A", `{"ok":false}`)
		write("H", `{"ok":true}`)
		drain(c)
		if _, err := c.Rerun(ctx, "w", []string{"A"}, true, coord.Command{}); err != nil {
			t.Fatal(err)
		}
		write("A", `{"ok":true}`)
		drain(c)
		hangs = false
		time.Sleep(10 * time.Minute)
		drain(c)
		if w.Take(ctx); w.Taken["w/gate#1"]+w.Taken["w/gate#2"] != 1 {
			t.Errorf("%v: the gate was judged by the output of the first attempt: %s", w.Taken, reasonOf(t, c, "w", "gate"))
		}
	})
}
