package speed

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"jobq/core/coord"
	"jobq/core/dag"
	"jobq/core/msg"
	"jobq/core/port"
	"jobq/core/sched"
	"jobq/store/memory"
	"jobq/store/wrap/faults"
)

// latency is what every call of the far store takes.
const latency = 10 * time.Millisecond

// far is a store in memory whose every call takes latency once it is armed.
type far struct {
	near  *port.Store
	calls *faults.Process
	armed atomic.Bool
}

func newFar() *far {
	f := &far{near: memory.New(memory.Options{}).Port()}
	f.calls = faults.New(f.near, sched.Real{}, func(faults.Call) faults.Fate {
		if f.armed.Load() {
			return faults.Fate{Delay: latency}
		}
		return faults.Fate{}
	})
	return f
}

func (f *far) coordinator(tb testing.TB, d *dag.Definition) *coord.Coordinator {
	tb.Helper()
	c := coord.New(f.calls.Port(), sched.Real{}, coord.Options{Prefix: "speed/speed"})
	if _, err := c.Submit(tb.Context(), coord.Submission{ID: workflow, Definition: d}); err != nil {
		tb.Fatal(err)
	}
	c.FlushTrailing(tb.Context(), true)
	if _, err := f.near.Queues.Queue(taskQueue).Clear(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	return c
}

func (f *far) post(tb testing.TB, bodies ...[]byte) {
	tb.Helper()
	messages := make([]port.Message, len(bodies))
	for i, body := range bodies {
		messages[i].Body = body
	}
	if errs := f.near.Queues.Queue(inbox).Send(tb.Context(), messages); errs != nil {
		tb.Fatal(errs)
	}
}

// drainFar drains w with latency in every call. It returns the time and the saves.
func drainFar(tb testing.TB, w workload) (took time.Duration, saves int64) {
	tb.Helper()
	f := newFar()
	c := f.coordinator(tb, w.definition)
	f.post(tb, w.completions(tb, workflow)...)
	before := c.Count()["saves"]
	f.armed.Store(true)
	start := time.Now()
	if n, err := c.Drain(tb.Context(), time.Hour, nil); err != nil || n != w.reports {
		tb.Fatalf("Drain = %d, %v; want %d", n, err, w.reports)
	}
	return time.Since(start), c.Count()["saves"] - before
}

// BenchmarkFarBacklog drains 20,000 completions of one workflow in real time. In
// core/coord, TestBacklogWithLatency holds the same in virtual time.
//
//	go test ./internal/speed -run '^$' -bench Far -benchtime 1x
func BenchmarkFarBacklog(b *testing.B) {
	b.Run("fan-in", func(b *testing.B) { benchFar(b, fanIn(20_000)) })
	b.Run("pairs", func(b *testing.B) { benchFar(b, pairs(20_000)) })
}

func benchFar(b *testing.B, w workload) {
	var total time.Duration
	var saves, done float64
	for b.Loop() {
		took, saved := drainFar(b, w)
		total, saves, done = total+took, saves+float64(saved), done+float64(w.reports)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(done/total.Seconds(), "completions/s")
	b.ReportMetric(saves/done, "saves/completion")
}

// star is a root and n tasks that depend on it.
func star(n int) *dag.Definition {
	d := &dag.Definition{Name: "star", DefaultQueue: taskQueue, Tasks: []dag.Task{task("root")}}
	for i := range n {
		d.Tasks = append(d.Tasks, task(fmt.Sprintf("leaf%d", i), "root"))
	}
	return d
}

// alone reports the end of a task with n dependents to a coordinator that waits
// for messages. It returns when the last dependent was sent, and which calls were
// begun until then.
func alone(tb testing.TB, n int) (took time.Duration, calls []string) {
	tb.Helper()
	f := newFar()
	c := f.coordinator(tb, star(n))
	ctx, stop := context.WithCancel(tb.Context())
	served := make(chan error, 1)
	go func() { served <- c.Serve(ctx) }()
	defer func() {
		f.armed.Store(false)
		stop()
		if err := <-served; err != nil {
			tb.Error(err)
		}
	}()
	body, err := msg.EncodeCompletion(msg.Completion{Workflow: workflow, Task: "root", Attempt: 1, Success: true})
	if err != nil {
		tb.Fatal(err)
	}
	f.armed.Store(true)
	begun := len(f.calls.Calls())
	start := time.Now()
	f.post(tb, body)
	tasks := f.near.Queues.Queue(taskQueue)
	for got := 0; got < n; {
		ds, err := tasks.Receive(ctx, port.ReceiveOptions{Max: n, Lock: lock, Wait: time.Minute})
		if err != nil || len(ds) == 0 {
			tb.Fatalf("%d of %d dependents were sent, %v", got, n, err)
		}
		got += len(ds)
	}
	took = time.Since(start)
	for _, call := range f.calls.Calls()[begun:] {
		calls = append(calls, call.Op)
	}
	return took, calls
}

// BenchmarkFarCompletion is the time from the end of one task to the send of its
// last dependent, with nothing else to do: at most three calls in a row and 20 ms.
func BenchmarkFarCompletion(b *testing.B) {
	var all []float64
	for b.Loop() {
		took, _ := alone(b, 3)
		all = append(all, float64(took.Microseconds())/1000)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(all), "ms-until-sent")
	b.ReportMetric(slices.Max(all), "ms-at-most")
}

// TestFarStore runs both on few messages, the backlog in virtual time: it takes a few
// calls, not one a message.
func TestFarStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := fanIn(640)
		if took, saves := drainFar(t, w); took > 640*latency || saves > 10 {
			t.Errorf("%d completions took %v and %d saves", w.reports, took, saves)
		}
	})
	_, calls := alone(t, 3)
	save, send := slices.Index(calls, "States.Save"), slices.Index(calls, "Queue.Send")
	if save < 0 || send < save {
		t.Errorf("calls until the dependents were sent: %v, want a save and then a send", calls)
	}
}
