package coord_test

import (
	"fmt"
	"strings"
	"testing"

	"jobq/core/dag"
	"jobq/core/port"
	"jobq/internal/testkit"
	"jobq/store/memory"
)

// onMemory returns a world on a fresh store in memory.
func onMemory(t testing.TB, o memory.Options) *testkit.World {
	s := memory.New(o)
	return testkit.NewWorld(t, func(name string) *port.Store { return s.Process(name).Port() })
}

// graph builds a definition from lines such as "D < B C any".
func graph(lines ...string) *dag.Definition {
	d := &dag.Definition{Name: "test", DefaultQueue: "cpu"}
	for _, line := range lines {
		name, rest, _ := strings.Cut(line, " < ")
		t := dag.Task{Name: name, Queue: "cpu", Kwargs: []dag.Kwarg{{Key: "cmd", Value: []byte(`"true"`)}}}
		for word := range strings.FieldsSeq(rest) {
			switch word {
			case "any":
				t.DepPolicy = dag.DepPolicy{Kind: dag.Any}
			case "settled":
				t.DepPolicy = dag.DepPolicy{Kind: dag.AllSettled}
			default:
				t.DependsOn = append(t.DependsOn, word)
			}
		}
		d.Tasks = append(d.Tasks, t)
	}
	return d
}

// fanOut returns n tasks behind one called root.
func fanOut(n int) *dag.Definition {
	lines := []string{"root"}
	for i := range n {
		lines = append(lines, fmt.Sprintf("p%04d < root", i))
	}
	return graph(lines...)
}

func diamond() *dag.Definition { return graph("A", "B < A", "C < A", "D < B C") }
