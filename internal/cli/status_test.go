package cli

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"jobq/core/coord"
	"jobq/core/dag"
	"jobq/core/fault"
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
