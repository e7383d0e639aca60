package local

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jobq/core/coord"
	"jobq/core/dag"
	"jobq/core/fault"
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
	d := definition(t, "A: true")
	names := append(queues("default/w1/", d), "default/w1/default-workflow-completions")
	count := func(name string) (err error) {
		withStore(t, o, func(s *local.Store) { _, err = s.Port().Queues.Queue(name).Count(t.Context()) })
		return err
	}
	for _, name := range names {
		if err := count(name); err != nil {
			t.Errorf("the queue %s of a run that was stopped: %v", name, err)
		}
	}
	write(t, dir, "go")
	if sum, err := Execute(t.Context(), o); err != nil || sum.Status != "completed" {
		t.Fatalf("Execute = %+v, %v, want completed", sum, err)
	}
	for _, name := range names {
		if err := count(name); !fault.Is(err, fault.NotFound) {
			t.Errorf("the queue %s of a run that has ended: %v, want it gone", name, err)
		}
	}
}
