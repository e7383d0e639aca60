package local

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
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
	"jobq/store/local"
)

// definition makes tasks from lines "name: command < parents".
func definition(t *testing.T, lines ...string) *dag.Definition {
	t.Helper()
	d := &dag.Definition{Name: "test"}
	for _, line := range lines {
		head, parents, _ := strings.Cut(line, " < ")
		name, cmd, _ := strings.Cut(head, ": ")
		text, err := json.Marshal(cmd)
		if err != nil {
			t.Fatal(err)
		}
		d.Tasks = append(d.Tasks, dag.Task{Name: name, DependsOn: strings.Fields(parents), Kwargs: []dag.Kwarg{{Key: "cmd", Value: text}}})
	}
	dag.ApplyDefaults(d)
	return d
}

func setup(t *testing.T) Options {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Options{
		Home: filepath.Join(t.TempDir(), "home"), Prefix: "default", WorkflowID: "w1", Workers: 2, Dir: t.TempDir(),
		Executable: program, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
}

func TestExecuteRunsADiamond(t *testing.T) {
	t.Parallel()
	o := setup(t)
	o.Definition = definition(t, "A: echo a >>order", "B: echo b >>order < A", "C: echo c >>order < A", "D: echo d >>order < B C")
	sum, err := Execute(t.Context(), o)
	if err != nil {
		t.Fatalf("Execute = %v", err)
	}
	if sum.Status != "completed" || sum.Counts.Completed != 4 {
		t.Errorf("Execute = %+v, want 4 completed", sum)
	}
	order, err := os.ReadFile(filepath.Join(o.Dir, "order"))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.ReplaceAll(string(order), "\n", ""); got != "abcd" && got != "acbd" {
		t.Errorf("order = %s", got)
	}
}

func TestExecuteStopsCleanlyAndGoesOn(t *testing.T) {
	t.Parallel()
	o := setup(t)
	o.Definition = definition(t, "A: echo a >>order", "B: test -e go || exec sleep 600 < A", "C: echo c >>order < B")
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	o.OnChange = func(n coord.Notice) {
		for _, m := range n.Moves {
			if m.Task == "B" && m.To == "ready" {
				stop(errors.New("the test stops it"))
			}
		}
	}
	sum, err := Execute(ctx, o)
	if !fault.Is(err, fault.Canceled) {
		t.Fatalf("Execute = %v, %v, want it to be stopped", sum, err)
	}
	if err := os.WriteFile(filepath.Join(o.Dir, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	// Resumed from elsewhere, the run keeps the place where it was started.
	o.Definition, o.OnChange, o.Dir = nil, nil, t.TempDir()
	sum, err = Execute(t.Context(), o)
	if err != nil || sum.Status != "completed" {
		t.Errorf("Execute again = %+v, %v, want completed", sum, err)
	}
}

func TestExecuteRetriesWhatFailed(t *testing.T) {
	t.Parallel()
	o := setup(t)
	o.Definition = definition(t, "A: echo a >>order", "B: test -e go < A", "C: echo c >>order < B")
	sum, err := Execute(t.Context(), o)
	if err != nil || sum.Status != "failed" || sum.Counts.Failed != 1 || sum.Counts.UpstreamFailed != 1 {
		t.Fatalf("Execute = %+v, %v, want failed", sum, err)
	}
	if err := os.WriteFile(filepath.Join(o.Dir, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	o.Definition, o.Retry = nil, true
	if sum, err = Execute(t.Context(), o); err != nil || sum.Status != "completed" {
		t.Errorf("retry = %+v, %v, want completed", sum, err)
	}
	if order, _ := os.ReadFile(filepath.Join(o.Dir, "order")); string(order) != "a\nc\n" {
		t.Errorf("order = %q, want A to have run once", order)
	}
}

// TestARunThatEndedLeavesNoQueues, nor does one that was stopped once it ends.
func TestARunThatEndedLeavesNoQueues(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := stopped(t, dir)
	names := append(queues("default/w1/", definition(t, "A: true")), "default/w1/default-workflow-completions")
	for _, name := range names {
		if n, err := count(t, o, name); err != nil {
			t.Errorf("the queue %s of a run that was stopped: %d messages, %v", name, n, err)
		}
	}
	write(t, dir, "go")
	if sum, err := Execute(t.Context(), o); err != nil || sum.Status != "completed" {
		t.Fatalf("Execute = %+v, %v, want completed", sum, err)
	}
	for _, name := range names {
		if n, err := count(t, o, name); !fault.Is(err, fault.NotFound) {
			t.Errorf("the queue %s of a run that has ended: %d messages, %v, want it gone", name, n, err)
		}
	}
}

// TestARunThatWasCancelledLeavesNoQueues, but for a command that nobody took.
func TestARunThatWasCancelledLeavesNoQueues(t *testing.T) {
	t.Parallel()
	o := setup(t)
	o.Definition = definition(t, "A: exec sleep 600", "B: true < A")
	const inbox = "default/w1/default-workflow-completions"
	cancelRunning(t, o)
	for _, name := range append(queues("default/w1/", o.Definition), inbox) {
		if n, err := count(t, o, name); !fault.Is(err, fault.NotFound) {
			t.Errorf("the queue %s of a run that was cancelled: %d messages, %v, want it gone", name, n, err)
		}
	}

	command, err := msg.EncodeCommand(msg.Command{Workflow: "w1", ID: "c", Kind: "cancel"})
	if err != nil {
		t.Fatal(err)
	}
	withStore(t, o, func(s *local.Store) {
		all := s.Port().Queues
		if err := all.Ensure(t.Context(), inbox); err != nil {
			t.Fatal(err)
		}
		if errs := all.Queue(inbox).Send(t.Context(), []port.Message{{ID: "c", Body: command, Delay: time.Hour}}); errs != nil {
			t.Fatal(errs[0])
		}
	})
	if sum, err := Execute(t.Context(), o); err != nil || sum.Status != "cancelled" {
		t.Fatalf("Execute = %+v, %v, want cancelled", sum, err)
	}
	if n, err := count(t, o, inbox); err != nil || n != 1 {
		t.Errorf("the inbox holds %d messages, %v, want the command", n, err)
	}
}

// cancelRunning executes o and cancels it from outside once its first command runs.
func cancelRunning(t *testing.T, o Options) {
	t.Helper()
	begun := make(chan struct{})
	once := sync.OnceFunc(func() { close(begun) })
	o.OnCommand = func(string, uint32, bool) { once() }
	var running sync.WaitGroup
	running.Go(func() {
		defer once()
		if sum, err := Execute(t.Context(), o); err != nil || sum.Status != "cancelled" {
			t.Errorf("Execute = %+v, %v, want cancelled", sum, err)
		}
	})
	<-begun
	withStore(t, o, func(s *local.Store) {
		c := coord.New(s.Port(), sched.Real{}, coord.Options{Prefix: "local/" + o.Prefix, Inbox: "default-workflow-completions"})
		if _, err := c.Cancel(t.Context(), o.WorkflowID, coord.Command{}); err != nil {
			t.Error(err)
		}
	})
	running.Wait()
}

// count returns how many messages a queue holds, hidden ones too.
func count(t *testing.T, o Options, name string) (n int, err error) {
	t.Helper()
	withStore(t, o, func(s *local.Store) { n, err = s.Port().Queues.Queue(name).Count(t.Context()) })
	return n, err
}
