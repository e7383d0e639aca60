package coord_test

import (
	"testing"
	"testing/synctest"
	"time"

	"jobq/core/coord"
	"jobq/core/fault"
	"jobq/store/memory"
	"jobq/store/wrap/faults"
)

// TestMarksOfAnEarlierLife has a process wake up with marks of a workflow that was
// purged meanwhile, and whose id now has a definition with fewer tasks.
func TestMarksOfAnEarlierLife(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		w := onMemory(t, memory.Options{})
		w.Know(diamond())
		saves, cut := 0, true
		late := w.Start("late", func(c faults.Call) faults.Fate {
			if c.Op != "States.Save" || !cut {
				return faults.Fate{}
			}
			if saves++; saves == 1 {
				return faults.Fate{}
			}
			return faults.Fate{Before: fault.New(fault.Unavailable, "cut off")}
		})
		other := w.Start("other")
		mustSubmit(t, other, "w", diamond())
		report(t, w, "w", "A")
		if _, err := late.Drain(ctx, time.Minute, nil); err != nil {
			t.Fatal(err)
		}
		for _, task := range []string{"B", "C", "D"} {
			report(t, w, "w", task)
			if _, err := other.Drain(ctx, time.Minute, nil); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := other.Purge(ctx, "w", coord.Command{}); err != nil {
			t.Fatal(err)
		}
		mustSubmit(t, other, "w", graph("A"))
		cut = false
		if err := late.Wake(ctx, "w"); err != nil {
			t.Errorf("Wake = %v", err)
		}
		expect(t, w, "in its second life", "w running   A:running")
	})
}
