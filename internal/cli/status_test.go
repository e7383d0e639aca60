package cli

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"jobq/core/coord"
	"jobq/core/dag"
	"jobq/core/fault"
	"jobq/core/port"
	"jobq/core/sched"
	"jobq/store/memory"
	"jobq/store/wrap/faults"
)

// TestStatusWithoutIndex: what the state tells is told whatever became of the index.
func TestStatusWithoutIndex(t *testing.T) {
	t.Parallel()
	d := &dag.Definition{Name: "one", Tasks: []dag.Task{{Name: "a", Kwargs: []dag.Kwarg{{Key: "cmd", Value: []byte(`"true"`)}}}}}
	for name, tc := range map[string]struct {
		index faults.Decide
		noted bool
		took  time.Duration
	}{
		"there":             {nil, false, 0},
		"late":              {faults.Fail("Index.Get", fault.NotFound, -1), false, 0},
		"a missing table":   {faults.Fail("Index.Get", fault.Unavailable, -1), true, 0},
		"no right to it":    {faults.Fail("Index.Get", fault.Denied, -1), true, 0},
		"one that is stuck": {slowIndex, true, rowBound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := memory.New(memory.Options{}).Port()
				if _, err := coord.New(store, sched.Real{}, coord.Options{}).Submit(t.Context(), coord.Submission{ID: "w1", Definition: d}); err != nil {
					t.Fatal(err)
				}
				store = faults.New(store, sched.Real{}, tc.index).Port()
				s := &session{Coordinator: coord.New(store, sched.Real{}, coord.Options{}), store: store}
				var notes []string
				begun := time.Now()
				sum, err := s.summary(t.Context(), "w1", func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) })
				if err != nil || sum.Name != "one" || sum.Status != "running" || sum.Total != 1 {
					t.Errorf("summary = %+v, %v", sum, err)
				}
				if noted := len(notes) == 1 && strings.HasPrefix(notes[0], "the index cannot be read; "); noted != tc.noted {
					t.Errorf("notes = %q, want one: %v", notes, tc.noted)
				}
				if took := time.Since(begun); took != tc.took {
					t.Errorf("it took %v, want %v", took, tc.took)
				}
			})
		})
	}
}

// slowIndex lets the index answer after an hour.
func slowIndex(c faults.Call) faults.Fate {
	if c.Op == "Index.Get" {
		return faults.Fate{Delay: time.Hour}
	}
	return faults.Fate{}
}

// leavingRun is asked who runs a workflow when its process has just ended it and left.
type leavingRun struct {
	port.Leases
	end func()
}

func (l leavingRun) Holder(context.Context, string) (string, error) {
	l.end()
	return "", nil
}

// TestARunThatEndsIsNotStopped: between the look at the state and the one at its
// process that may end and leave.
func TestARunThatEndsIsNotStopped(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	store := memory.New(memory.Options{}).Port()
	c := coord.New(store, sched.Real{}, coord.Options{})
	d := &dag.Definition{Name: "one", Tasks: []dag.Task{{Name: "a", Queue: "cpu", Kwargs: []dag.Kwarg{{Key: "cmd", Value: []byte(`"true"`)}}}}}
	if _, err := c.Submit(ctx, coord.Submission{ID: "w1", Definition: d, Namespace: "p/w1/"}); err != nil {
		t.Fatal(err)
	}
	s := &session{Coordinator: c, store: store, place: "local/p"}
	sum, err := s.Status(ctx, "w1")
	if err != nil {
		t.Fatal(err)
	}
	if stopped, err := s.isStopped(ctx, sum); err != nil || !stopped {
		t.Errorf("isStopped of a run without a process = %v, %v, want true", stopped, err)
	}
	store.Leases = leavingRun{store.Leases, func() {
		if _, err := c.Cancel(ctx, "w1", coord.Command{}); err != nil {
			t.Error(err)
		}
	}}
	if stopped, err := s.isStopped(ctx, sum); err != nil || stopped {
		t.Errorf("isStopped of a run that ends meanwhile = %v, %v, want false", stopped, err)
	}
}
