package cond

import (
	"encoding/json"
	"slices"

	"github.com/expr-lang/expr/vm"
)

// Program is an expression that was checked against the parents of one task and
// is ready to be evaluated.
type Program struct {
	expression *Expression
	code       *vm.Program
	// names are the parents to be read, in the order of the parents. Everything
	// else names a parent by its index here.
	names []string
	// resolved holds the source of each reference, by slot.
	resolved []*source
	// needed are the distinct names and patterns of the references.
	needed []need
}

// need is a name or pattern with the references that read it.
type need struct {
	*source
	references []*reference
	// fields are the fields that the references read from an output; nil is the
	// whole output.
	fields []string
}

// Compile reads source and checks it against the names of the task's parents. It
// returns either a program or at least one fault. A program costs several times
// what Parse and Check cost: to validate a definition, those are enough.
func Compile(source string, parents []string) (*Program, []Fault) {
	return compile(source, parents, false)
}

// CompileTolerant is Compile for trying a condition by hand on whatever outputs
// there are: a pattern that matches no parent stands for no inputs (all and
// almost_all are true, any is false, count is 0) instead of being refused.
func CompileTolerant(source string, parents []string) (*Program, []Fault) {
	return compile(source, parents, true)
}

func compile(source string, parents []string, tolerant bool) (*Program, []Fault) {
	expression, faults := Parse(source)
	if len(faults) > 0 {
		return nil, faults
	}
	bound, faults := expression.bind(parents, tolerant)
	if len(faults) > 0 {
		return nil, faults
	}
	p := &Program{expression: expression, resolved: bound.resolved}
	p.gather(parents)
	code, err := p.emit()
	if err != nil {
		return nil, []Fault{{position(source, 0), "internal: " + err.Error(), "please report this condition"}}
	}
	p.code = code
	return p, nil
}

// gather lists the parents that must be read and who reads them, and numbers the
// members of the sources anew among those parents.
func (p *Program) gather(parents []string) {
	var positions []int
	for _, r := range p.expression.references {
		s := p.resolved[r.slot]
		at := slices.IndexFunc(p.needed, func(n need) bool { return n.source == s })
		if at < 0 {
			at = len(p.needed)
			p.needed = append(p.needed, need{source: s, fields: []string{}})
			positions = append(positions, s.members...)
		}
		n := &p.needed[at]
		n.references = append(n.references, r)
		if len(r.path) == 0 || r.path[0].indexed {
			n.fields = nil
		} else if n.fields != nil {
			n.fields = append(n.fields, r.path[0].key)
		}
	}
	slices.Sort(positions)
	positions = slices.Compact(positions)
	for _, position := range positions {
		p.names = append(p.names, parents[position])
	}
	for _, n := range p.needed {
		for i, position := range n.members {
			n.members[i], _ = slices.BinarySearch(positions, position)
		}
	}
}

// References returns the names of the parents that the condition needs, every
// match of a pattern included: each of them must have ended before Evaluate. They
// are in the order of the parents, each once.
func (p *Program) References() []string { return slices.Clone(p.names) }

// Input is what is known of one parent.
type Input struct {
	// Output is the JSON output; nil is none, which reads as None.
	Output json.RawMessage
	// Completed says that the parent completed: it was not skipped and did not
	// fail. It changes no value, only what Result says about an error.
	Completed bool
}

// Outcome is the answer of a condition.
type Outcome uint8

const (
	// Error is a condition that has no answer; Result.Err says why.
	Error Outcome = iota
	// False is a condition that does not hold.
	False
	// True is a condition that holds.
	True
)

// String returns "error", "false" or "true".
func (o Outcome) String() string {
	switch o {
	case True:
		return "true"
	case False:
		return "false"
	}
	return "error"
}

// Result is the answer of a condition with its explanation. Its texts are bounded:
// a few KiB for any condition and any outputs.
type Result struct {
	Outcome Outcome
	// Reason is one sentence: the part of the condition that decided, and the
	// values that it had.
	Reason string
	// Trace holds the values of the references that were read, those first that
	// decided an aggregate: at most 32 entries and 1 KiB.
	Trace []TraceEntry
	// Omitted counts the values that Trace has no room for.
	Omitted int
	// Err is set for the outcome Error only.
	Err *Fault
	// Blames are the parents that the error hangs on, in the order of the parents.
	// It is empty where no output could have prevented the error.
	Blames []string
	// Incomplete are those of Blames that did not complete. Where there is one, the
	// error says nothing about the outputs of the others.
	Incomplete []string
}

// TraceEntry is one value that a condition read.
type TraceEntry struct {
	// Reference is the reference in the spelling of a condition; one with a pattern
	// names the matched parent instead. A very long one is cut.
	Reference string
	// Parent is the name of the parent.
	Parent string
	// Value is the value as JSON, cut with an ellipsis where it is long. It is
	// empty where the reference has no value; Problem then says why.
	Value   string
	Problem string
}
