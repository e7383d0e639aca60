package local

import (
	"context"
	"errors"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"jobq/core/coord"
	"jobq/core/fault"
	"jobq/core/msg"
	"jobq/core/sched"
	"jobq/store/local"
)

// stopped starts a run in dir that is stopped while B waits for a file "go" there, and
// returns the options to resume it from elsewhere.
func stopped(t *testing.T, dir string) Options {
	t.Helper()
	o := setup(t)
	o.Dir = dir
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
	if sum, err := Execute(ctx, o); !fault.Is(err, fault.Canceled) {
		t.Fatalf("Execute = %+v, %v, want it to be stopped", sum, err)
	}
	o.Definition, o.OnChange, o.Dir = nil, nil, t.TempDir()
	return o
}

func write(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
		t.Fatal(err)
	}
}

// withStore calls f with the store of o.
func withStore(t *testing.T, o Options, f func(*local.Store)) {
	t.Helper()
	s, err := local.Open(t.Context(), local.Options{Home: o.Home, Prefix: o.Prefix})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	f(s)
}

func outputs(t *testing.T, s *local.Store, prefix string) []string {
	t.Helper()
	var names []string
	for name, err := range s.Port().Outputs.List(t.Context(), prefix) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	return names
}

func TestARunKeepsItsDirectoryWhateverItsName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"plain", "not\xfftext", "with \"quotes\"\n", "ünï"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), name)
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Skip(err) // some file systems take text alone
			}
			o := stopped(t, dir)
			write(t, dir, "go")
			if sum, err := Execute(t.Context(), o); err != nil || sum.Status != "completed" {
				t.Errorf("resumed = %+v, %v, want completed", sum, err)
			}
		})
	}
}

func TestThePlaceThatAnEarlierProgramKeptCounts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := stopped(t, dir)
	withStore(t, o, func(s *local.Store) {
		ctx, outputs := t.Context(), s.Port().Outputs
		err := errors.Join(
			outputs.DeletePrefix(ctx, placeName(o.WorkflowID, 1, 1), nil),
			outputs.Put(ctx, path.Join(o.WorkflowID, "__run.json"), []byte(`{"dir":"`+dir+`"}`)),
		)
		if err != nil {
			t.Fatal(err)
		}
	})
	write(t, dir, "go")
	if sum, err := Execute(t.Context(), o); err != nil || sum.Status != "completed" {
		t.Errorf("resumed = %+v, %v, want completed", sum, err)
	}
}

// TestARunWhoseDirectoryIsGoneBeginsNothing, until it is told where that is now, which
// it keeps.
func TestARunWhoseDirectoryIsGoneBeginsNothing(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "before")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	o := setup(t)
	o.Dir, o.Definition = dir, definition(t, "A: echo a >>order", "B: test -e go < A", "C: echo c >>order < B")
	if sum, err := Execute(t.Context(), o); err != nil || sum.Status != "failed" {
		t.Fatalf("Execute = %+v, %v, want failed", sum, err)
	}
	after := filepath.Join(filepath.Dir(dir), "after")
	if err := os.Rename(dir, after); err != nil {
		t.Fatal(err)
	}
	o.Definition, o.Dir = nil, t.TempDir()
	if sum, err := Execute(t.Context(), o); err != nil || sum.Status != "failed" {
		t.Errorf("Execute of what has ended = %+v, %v, want how it ended", sum, err)
	}

	o.Retry = true
	for name, moved := range map[string]string{"before": "", "nowhere": filepath.Join(after, "nowhere"), "order": filepath.Join(after, "order")} {
		o.Moved = moved
		_, err := Execute(t.Context(), o)
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), name) || !strings.Contains(fault.RemedyOf(err), "jobq retry w1 --run --cwd DIR") {
			t.Errorf("Execute in %s = %v, want it refused by that name with what to do", name, err)
		}
	}
	withStore(t, o, func(s *local.Store) {
		sum, err := coord.New(s.Port(), sched.Real{}, coord.Options{}).Status(t.Context(), o.WorkflowID)
		if err != nil || sum.Status != "failed" || sum.Counts.Failed != 1 {
			t.Errorf("status = %+v, %v, want it as it was", sum, err)
		}
	})

	o.Moved = after
	if sum, err := Execute(t.Context(), o); err != nil || sum.Status != "failed" {
		t.Fatalf("Execute with the new place = %+v, %v, want B to fail again", sum, err)
	}
	write(t, after, "go")
	o.Moved = ""
	if sum, err := Execute(t.Context(), o); err != nil || sum.Status != "completed" {
		t.Errorf("Execute = %+v, %v, want completed in the new place", sum, err)
	}
	if order, _ := os.ReadFile(filepath.Join(after, "order")); string(order) != "a\nc\n" {
		t.Errorf("order = %q, want a and c once", order)
	}
}

// TestThePlaceGoesWithItsLife: a purge takes it, and one that was held up in an earlier
// life knows that it is of a later one.
func TestThePlaceGoesWithItsLife(t *testing.T) {
	t.Parallel()
	o := setup(t)
	o.Definition = definition(t, "A: true")
	for _, attempt := range []uint32{1, 2} {
		if sum, err := Execute(t.Context(), o); err != nil || sum.Status != "completed" {
			t.Fatalf("Execute = %+v, %v, want completed", sum, err)
		}
		withStore(t, o, func(s *local.Store) {
			names := outputs(t, s, o.WorkflowID+"/")
			if len(names) != 1 || names[0] != placeName(o.WorkflowID, attempt, 1) {
				t.Fatalf("outputs = %q, want the place", names)
			}
			if got, ok := msg.AttemptOf(names[0]); !ok || got != attempt {
				t.Errorf("AttemptOf(%s) = %d, %t, want %d", names[0], got, ok, attempt)
			}
			c := coord.New(s.Port(), sched.Real{}, coord.Options{Prefix: "local/" + o.Prefix})
			if _, err := c.Purge(t.Context(), o.WorkflowID, coord.Command{}); err != nil {
				t.Fatal(err)
			}
			if names := outputs(t, s, o.WorkflowID+"/"); len(names) != 0 {
				t.Errorf("a purge left %q", names)
			}
		})
	}
}
