package sim

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"jobq/core/dag"
)

// drawDefinition makes a random workflow: mostly small, since what breaks breaks
// in small ones and each step then has more chances to be struck.
func drawDefinition(r *rand.Rand) *dag.Definition {
	n := 1 + r.IntN(6)
	if r.IntN(10) == 0 {
		n = 8 + r.IntN(24)
	}
	queues := []string{"cpu", "gpu", "io"}[:1+r.IntN(3)]
	d := &dag.Definition{Name: "random", DefaultQueue: "cpu", ResultPolicy: dag.ResultPolicy(r.IntN(2))}
	if r.IntN(4) == 0 {
		d.MaxParallelism = 1 + r.IntN(3)
	}
	for i := range n {
		t := dag.Task{
			Name: fmt.Sprintf("t%d", i), Queue: queues[r.IntN(len(queues))], NumRetries: max(0, r.IntN(4)-1),
			Kwargs: []dag.Kwarg{{Key: "cmd", Value: json.RawMessage(`"run"`)}},
		}
		drawParents(r, i, &t)
		if len(t.DependsOn) > 0 && r.IntN(3) == 0 {
			t.Condition = drawCondition(r, t.DependsOn)
		}
		d.Tasks = append(d.Tasks, t)
	}
	return d
}

func drawParents(r *rand.Rand, i int, t *dag.Task) {
	if i == 0 {
		return
	}
	for _, p := range r.Perm(i)[:min(i, r.IntN(4))] {
		t.DependsOn = append(t.DependsOn, fmt.Sprintf("t%d", p))
	}
	n := len(t.DependsOn)
	if n == 0 {
		return
	}
	switch r.IntN(6) {
	case 0:
		t.DepPolicy = dag.DepPolicy{Kind: dag.Any}
	case 1:
		t.DepPolicy = dag.DepPolicy{Kind: dag.AtLeast, N: 1 + r.IntN(n)}
	case 2:
		t.DepPolicy = dag.DepPolicy{Kind: dag.AllSettled}
	}
}

// drawCondition makes a condition over some parents: true, false, or in error
// where a parent left no number.
func drawCondition(r *rand.Rand, parents []string) string {
	parent := parents[r.IntN(len(parents))]
	switch r.IntN(4) {
	case 0:
		return fmt.Sprintf("inputs[%q] is None", parent)
	case 1:
		return fmt.Sprintf("inputs[%q] is not None and inputs[%q].n >= 4", parent, parent)
	default:
		return fmt.Sprintf("inputs[%q].n < %d", parent, 2+r.IntN(8))
	}
}

// ending draws how an attempt ends, the same for every start of it.
func (w *World) ending(wl *Workload, task string, attempt uint32) Ending {
	if wl.Outcome != nil {
		return wl.Outcome(task, attempt)
	}
	h := newHash(w.o.Seed)
	h.text(wl.ID)
	h.text(task)
	h.word(uint64(attempt))
	r := rand.New(rand.NewPCG(h.sum, 7))
	e := Ending{Lasts: time.Duration(r.IntN(20)) * time.Second}
	switch r.IntN(8) {
	case 0:
		e.Lasts = time.Duration(r.IntN(15)) * time.Minute
	case 1:
		e.Lasts = 0
	}
	e.Kills = w.o.CrashLimit > 0 && w.o.Foreign == 0 && r.IntN(25) == 0
	switch {
	case r.IntN(4) == 0:
		e.Code = 1 + r.IntN(2)
	case r.IntN(4) > 0:
		e.Output = fmt.Sprintf(`{"n": %d}`, r.IntN(10))
	}
	if e.Output != "" && r.IntN(4) == 0 { // too large to travel or to stay inline
		e.Output = fmt.Sprintf(`{"n": %d, "pad": "%0*d"}`, r.IntN(10), 600+r.IntN(2)*40_000, 0)
	}
	return e
}
