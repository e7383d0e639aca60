package sim

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"time"

	"jobq/core/cond"
	"jobq/core/dag"
	"jobq/core/fault"
	"jobq/core/spec"
)

// ReadWorkflow reads the text of a workflow file. Fails with fault.Invalid.
func ReadWorkflow(name string, text []byte) (*dag.Definition, error) {
	check := func(source string, parents []string) []spec.ConditionFault {
		expression, faults := cond.Parse(source)
		if expression != nil {
			faults = expression.Check(parents)
		}
		var all []spec.ConditionFault
		for _, f := range faults {
			all = append(all, spec.ConditionFault{Line: f.Line, Column: f.Column, Message: f.Message, Hint: f.Hint})
		}
		return all
	}
	d, ds := spec.Parse(name, text, &spec.Options{CheckCondition: check})
	if ds.HasErrors() {
		return nil, fault.Newf(fault.Invalid, "%s is not a valid workflow; `jobq validate` says why", name)
	}
	return d, nil
}

// field finds what conditions read of outputs.
var field = regexp.MustCompile(`[\w\])]\.([A-Za-z_]\w*)`)

// Graph makes the campaign play one workflow, whatever else a seed draws. Its
// commands end in ways that the seed draws; what they write has the fields that
// its conditions read.
func Graph(d *dag.Definition) func(*Config) {
	var fields []string
	for i := range d.Tasks {
		for _, found := range field.FindAllStringSubmatch(d.Tasks[i].Condition, -1) {
			if !slices.Contains(fields, found[1]) {
				fields = append(fields, found[1])
			}
		}
	}
	return func(c *Config) {
		seed := c.Seed
		c.Workloads = []Workload{{ID: "graph", Definition: d, Outcome: func(task string, attempt uint32) Ending {
			return graphEnding(seed, fields, task, attempt)
		}}}
		// Enough hands that a history is no longer than one of a small workflow.
		c.Workers, c.Slots = max(c.Workers, 4), max(c.Slots, 4)
		if c.NoWorkers {
			c.Workers = 1
		}
	}
}

func graphEnding(seed uint64, fields []string, task string, attempt uint32) Ending {
	h := newHash(seed)
	h.text(task)
	h.word(uint64(attempt))
	r := rand.New(rand.NewPCG(h.sum, 11))
	e := Ending{Lasts: time.Duration(r.IntN(10)) * time.Second}
	if r.IntN(100) == 0 {
		e.Code = 1
		return e
	}
	out := map[string]any{}
	for _, name := range fields {
		out[name] = []any{true, false, "true", "false", 1, 0.03}[r.IntN(6)]
	}
	if len(out) > 0 {
		body, err := json.Marshal(out)
		if err != nil {
			panic(fmt.Sprintf("a map of plain values has no JSON: %v", err))
		}
		e.Output = string(body)
	}
	return e
}
