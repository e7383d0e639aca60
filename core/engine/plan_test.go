package engine_test

import (
	"fmt"
	"testing"
	"time"

	"jobq/core/dag"
	"jobq/core/engine"
)

// A condition may name every one of very many parents.
func TestAPlanOfManyNamedParentsIsMadeInTime(t *testing.T) {
	t.Parallel()
	plan := func(n int) time.Duration {
		d := &dag.Definition{Name: "wide", DefaultQueue: "cpu"}
		names := make([]string, n)
		for i := range names {
			names[i] = fmt.Sprintf("t%06d", i)
			d.Tasks = append(d.Tasks, dag.Task{Name: names[i], Queue: "cpu"})
		}
		d.Tasks = append(d.Tasks, dag.Task{Name: "join", Queue: "cpu", DependsOn: names, Condition: "a condition"})
		begun := time.Now()
		if _, err := engine.NewPlan(d, func(int) []string { return names }); err != nil {
			t.Fatal(err)
		}
		return time.Since(begun)
	}
	// Comparing each with each takes ten seconds and 64 times as long as for an
	// eighth of them; this takes a fifth of one, more where the machine is busy.
	part, whole := plan(25_000), plan(200_000)
	if whole > max(4*time.Second, 32*part) {
		t.Errorf("a plan whose condition names 200,000 parents took %v, for 25,000 it took %v", whole, part)
	}
}
