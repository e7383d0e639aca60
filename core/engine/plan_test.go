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
	const n = 200_000
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
	// Comparing each with each takes ten seconds; this takes a fifth of one.
	if took := time.Since(begun); took > 4*time.Second {
		t.Errorf("a plan whose condition names %d parents took %v", n, took)
	}
}
