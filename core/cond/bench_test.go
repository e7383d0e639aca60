package cond_test

import (
	"fmt"
	"testing"

	"jobq/core/cond"
)

const typical = `inputs["train-rf"].mae < 0.1 and inputs["train-gnn"].mae < 0.1`

var typicalParents = []string{"train-rf", "train-gnn"}

func BenchmarkCheck(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		expression, faults := cond.Parse(typical)
		if len(faults) > 0 || len(expression.Check(typicalParents)) > 0 {
			b.Fatal("a typical condition is refused")
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, faults := cond.Compile(typical, typicalParents); len(faults) > 0 {
			b.Fatal(faults)
		}
	}
}

func BenchmarkEvaluate(b *testing.B) {
	program, faults := cond.Compile(typical, typicalParents)
	if len(faults) > 0 {
		b.Fatal(faults)
	}
	inputs := map[string]cond.Input{
		"train-rf":  {Output: []byte(`{"mae": 0.05}`), Completed: true},
		"train-gnn": {Output: []byte(`{"mae": 0.2}`), Completed: true},
	}
	b.ReportAllocs()
	for b.Loop() {
		if program.Evaluate(inputs).Outcome != cond.False {
			b.Fatal("want false")
		}
	}
}

func BenchmarkTenThousandParents(b *testing.B) {
	parents, inputs := manyParents(10_000)
	b.ReportAllocs()
	for b.Loop() {
		program, faults := cond.Compile(`all(inputs["train-*"].loss < 0.1)`, parents)
		if len(faults) > 0 {
			b.Fatal(faults)
		}
		if program.Evaluate(inputs).Outcome != cond.True {
			b.Fatal("want true")
		}
	}
}

// manyParents makes parents with outputs of about a hundred bytes.
func manyParents(number int) ([]string, map[string]cond.Input) {
	parents := make([]string, number)
	inputs := make(map[string]cond.Input, number)
	for i := range parents {
		parents[i] = fmt.Sprintf("train-%05d", i)
		inputs[parents[i]] = cond.Input{
			Output:    fmt.Appendf(nil, `{"loss": 0.02, "ok": true, "epochs": %d, "status": "ok", "tags": ["fast", "gpu"], "stats": {"rows": 1000000}}`, i),
			Completed: true,
		}
	}
	return parents, inputs
}
