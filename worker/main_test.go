//go:build unix

package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"jobq/core/fault"
	"jobq/core/msg"
	"jobq/core/port"
	"jobq/store/memory"
	"jobq/worker"
	"jobq/worker/guard"
	"jobq/worker/taskapi"
)

// TestMain lets this binary be the guardian and the helper on the PATH.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case guard.Verb:
			os.Exit(guard.Main(os.Stdin, os.Stdout))
		case "output", "upstream":
			os.Exit(helper(os.Args[1:]))
		}
	}
	os.Exit(m.Run())
}

// helper plays `jobq output set JSON|-` and `jobq upstream get NAME [PATH]`.
func helper(args []string) int {
	task, err := taskapi.FromEnvironment(os.Getenv)
	if err == nil && args[0] == "output" {
		in := io.Reader(os.Stdin)
		if args[2] != "-" {
			in = strings.NewReader(args[2])
		}
		err = task.SetOutput(in)
	} else if err == nil {
		var value json.RawMessage
		value, err = task.Upstream(args[2], strings.Join(args[3:], ""))
		fmt.Println(taskapi.Text(value))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	return 0
}

const (
	inbox  = "proj-workflow-completions"
	prefix = "local/proj"
	// patience bounds every wait; a sound test comes nowhere near it.
	patience = time.Minute
)

// rig is a store and a configuration of a worker on it.
type rig struct {
	t     *testing.T
	store *memory.Store
	// queues are those of store, unless a test puts others in their place.
	queues port.Queues
	conf   worker.Config
	mu     sync.Mutex
	lines  []worker.OutputLine
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, store: memory.New(memory.Options{})}
	r.queues = r.store.Port().Queues
	r.conf = worker.Config{
		Store: r.store.Process("worker").Port(), Prefix: prefix, Inbox: inbox, Queues: []string{"cpu"}, Slots: 2,
		Cwd: t.TempDir(), Scratch: t.TempDir(), KillTimeout: 10 * time.Second, CancelPollInterval: 20 * time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Output: func(l worker.OutputLine) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.lines = append(r.lines, l)
		},
	}
	return r
}

// start runs a worker until the returned function is called, which waits for it.
func (r *rig) start() (stop func()) {
	r.t.Helper()
	w, err := worker.New(r.conf)
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.t.Context()))
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	return sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				r.t.Errorf("Run = %v", err)
			}
		case <-time.After(patience):
			r.t.Error("Run does not end")
		}
	})
}

func cmd(text string) []msg.Kwarg {
	raw, _ := json.Marshal(text) // a string is always JSON
	return []msg.Kwarg{{Key: "cmd", Value: raw}}
}

// push sends attempt 1 of task name to queue cpu.
func (r *rig) push(name string, kwargs []msg.Kwarg, edits ...func(*msg.Task)) {
	r.t.Helper()
	r.pushTo("cpu", name, kwargs, edits...)
}

func (r *rig) pushTo(queue, name string, kwargs []msg.Kwarg, edits ...func(*msg.Task)) {
	r.t.Helper()
	task := msg.Task{ID: msg.FirstSendID("w", name, 1), Workflow: "w", Name: name, Attempt: 1, Prefix: prefix, Kwargs: kwargs}
	for _, edit := range edits {
		edit(&task)
	}
	body, err := msg.EncodeTask(task)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := r.queues.Ensure(r.t.Context(), queue); err != nil {
		r.t.Fatal(err)
	}
	if errs := r.queues.Queue(queue).Send(r.t.Context(), []port.Message{{ID: task.ID, Body: body}}); errs != nil {
		r.t.Fatal(errs[0])
	}
}

// next returns the next completion. A connection that is lost while it waits is
// made again.
func (r *rig) next() msg.Completion {
	r.t.Helper()
	if err := r.queues.Ensure(r.t.Context(), inbox); err != nil {
		r.t.Fatal(err)
	}
	q := r.queues.Queue(inbox)
	o := port.ReceiveOptions{Max: 1, Lock: time.Minute, Wait: patience}
	ds, err := q.Receive(r.t.Context(), o)
	for range 3 {
		if fault.Is(err, fault.Unavailable) {
			ds, err = q.Receive(r.t.Context(), o)
		}
	}
	if err != nil || len(ds) != 1 {
		r.t.Fatalf("no completion: %v", err)
	}
	in, err := msg.DecodeInbox(ds[0].Body)
	if err != nil {
		r.t.Fatal(err)
	}
	q.Acknowledge(r.t.Context(), ds)
	return *in.Completion
}

// run runs one task and returns its completion.
func (r *rig) run(kwargs []msg.Kwarg, edits ...func(*msg.Task)) msg.Completion {
	r.t.Helper()
	stop := r.start()
	defer stop()
	r.push("t", kwargs, edits...)
	return r.next()
}

func (r *rig) log(name string) string {
	r.t.Helper()
	body, err := r.store.Port().TaskLogs.Read(r.t.Context(), name, 0, 4<<20)
	if err != nil {
		r.t.Fatal(err)
	}
	return string(body)
}

func (r *rig) record(key port.RecordKey) msg.AttemptRecord {
	r.t.Helper()
	stored, err := r.store.Port().Records.Read(r.t.Context(), key)
	if err != nil {
		r.t.Fatal(err)
	}
	rec, err := msg.DecodeRecord(stored.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return rec
}

func (r *rig) row(c port.CancelRequest) {
	r.t.Helper()
	if _, err := r.store.Port().Index.SetCancel(r.t.Context(), "w", c, ""); err != nil {
		r.t.Fatal(err)
	}
}
