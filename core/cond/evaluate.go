package cond

import (
	"errors"
	"fmt"

	"github.com/expr-lang/expr/vm"
)

// maximumSteps bounds one evaluation: a step is a call of a function, a
// comparison of two items of lists, or of 64 bytes of text. Ten thousand inputs
// of an ordinary aggregate take some ten thousand of them.
const maximumSteps = 10_000_000

// exhausted ends a run that used up its steps.
type exhausted struct {
	id int
}

func (*exhausted) Error() string { return "the condition takes too many steps" }

// evaluation is the state of one run. Failures are values: they flow through the
// operators to the top, or to the aggregate whose matched input they hang on.
type evaluation struct {
	*Program
	inputs map[string]Input
	meter  meter
	// values are what the references read: for each slot one value for each
	// member of its source.
	values [][]any
	// results are the latest values of the nodes by number, stamps when they were
	// put there. A result counts as present from stamp floor on: inside an
	// aggregate that is since the current input came up.
	results      []any
	stamps       []int
	stamp, floor int
	// tallies are what the aggregates found, by slot; nil: not evaluated.
	tallies []*tally
}

// verdict is what one matched input of an aggregate came to.
type verdict uint8

const (
	unsatisfied verdict = iota
	satisfied
	unreadable
)

// tally is how the inputs of one aggregate came out.
type tally struct {
	verdicts []verdict
	counts   [3]int
	// failure hangs on something else than the matched input: the aggregate has
	// no value.
	failure *failure
}

// failure stands for a value that could not be computed.
type failure struct {
	at node
	// brief says what is wrong where the reference stands beside it; explain says
	// it in full. It is only called for the failure that ends an evaluation: an
	// aggregate may meet ten thousand that nobody asks about.
	brief   string
	explain func() (message, hint string)
	// onMatch says that it hangs on the matched input of an aggregate; else it
	// hangs on the parents with these indices.
	onMatch bool
	parents []int
}

// Evaluate computes the condition on the outputs of the parents. Parents missing
// in inputs have no output. It never panics and never runs longer than its steps
// allow, whatever the outputs hold.
func (p *Program) Evaluate(inputs map[string]Input) Result {
	e := &evaluation{
		Program: p,
		inputs:  inputs,
		meter:   meter{left: maximumSteps},
		values:  make([][]any, len(p.expression.references)),
		results: make([]any, len(p.expression.nodes)),
		stamps:  make([]int, len(p.expression.nodes)),
		tallies: make([]*tally, len(p.expression.aggregates)),
		stamp:   1,
		floor:   1,
	}
	e.read()
	value, err := vm.Run(p.code, e)
	e.floor = 1
	if spent, ok := errors.AsType[*exhausted](err); ok {
		value = &failure{at: p.expression.nodes[spent.id], explain: func() (string, string) {
			return fmt.Sprintf("the condition takes more than %d steps", maximumSteps), "compare fewer and smaller values"
		}}
	} else if err != nil {
		value = &failure{at: p.expression.root, explain: func() (string, string) {
			return "internal: " + err.Error(), "please report this condition"
		}}
	}
	return e.result(value)
}

// read takes the values of all references out of the outputs. Every output is
// decoded once and dropped again, so that only what is referenced stays.
func (e *evaluation) read() {
	for _, r := range e.expression.references {
		e.values[r.slot] = make([]any, 0, len(e.resolved[r.slot].members))
	}
	next := make([]int, len(e.needed))
	readers := make([]need, 0, len(e.needed))
	for i, name := range e.names {
		readers = readers[:0]
		for j, n := range e.needed {
			if next[j] < len(n.members) && n.members[next[j]] == i {
				next[j]++
				readers = append(readers, n)
			}
		}
		out := e.output(name, fields(readers))
		for _, n := range readers {
			for _, r := range n.references {
				value, problem := out.follow(r)
				if problem != nil {
					problem.onMatch = n.pattern
					if !n.pattern {
						problem.parents = []int{i}
					}
					value = problem
				}
				e.values[r.slot] = append(e.values[r.slot], value)
			}
		}
	}
}

// fields returns what the readers of one output want of it.
func fields(readers []need) []string {
	if len(readers) == 1 {
		return readers[0].fields
	}
	wanted := []string{}
	for _, n := range readers {
		if n.fields == nil {
			return nil
		}
		wanted = append(wanted, n.fields...)
	}
	return wanted
}

// put keeps the result of a node.
func (e *evaluation) put(id int, value any) any {
	e.results[id], e.stamps[id] = value, e.stamp
	return value
}

// present reports whether a node was evaluated, inside an aggregate for the
// current input.
func (e *evaluation) present(n node) bool { return e.stamps[n.number()] >= e.floor }

// load reads a reference to one parent.
func (e *evaluation) load(id int) any {
	r := e.expression.nodes[id].(*reference)
	return e.put(id, e.values[r.slot][0])
}

// match reads a reference to the matched input with this index.
func (e *evaluation) match(id, index int) any {
	r := e.expression.nodes[id].(*reference)
	return e.put(id, e.values[r.slot][index])
}

// sequence makes a list or tuple.
func (e *evaluation) sequence(id int, operands []any) any {
	items := make([]any, len(operands))
	for i, operand := range operands {
		if problem, ok := operand.(*failure); ok {
			return e.put(id, problem)
		}
		items[i] = operand
	}
	e.meter.spend(len(items))
	return e.put(id, e.expression.nodes[id].(*sequence).value(items))
}

// negate is "not".
func (e *evaluation) negate(id int, value any) any {
	if _, ok := value.(*failure); ok {
		return e.put(id, value)
	}
	return e.put(id, !truth(value))
}

// decide keeps the value of an operand and reports whether the chain that it is
// part of goes on behind it.
func (e *evaluation) decide(id int, value any, goesOn bool) any {
	e.put(id, value)
	if _, ok := value.(*failure); ok {
		return false
	}
	return truth(value) == goesOn
}

// compare evaluates one link of a comparison.
func (e *evaluation) compare(id int, left, right any) any {
	l := e.expression.nodes[id].(*link)
	e.put(l.right.number(), right)
	for _, operand := range []any{left, right} {
		if problem, ok := operand.(*failure); ok {
			return e.put(id, problem)
		}
	}
	answer, problem := e.meter.compare(l.operator, left, right)
	if problem == nil {
		return e.put(id, answer)
	}
	f := &failure{at: l, explain: func() (string, string) { return problem.message, problem.hint }}
	if problem.left {
		e.blame(f, l.left)
	}
	if problem.right {
		e.blame(f, l.right)
	}
	return e.put(id, f)
}

// blame lets a failure hang on the references below n that were evaluated. The
// value of an aggregate is never wrong in kind, so it is not looked into.
func (e *evaluation) blame(f *failure, n node) {
	e.meter.spend(1)
	switch n := n.(type) {
	case *aggregate:
	case *reference:
		switch s := e.resolved[n.slot]; {
		case !e.present(n):
		case s.pattern:
			f.onMatch = true
		default:
			f.parents = append(f.parents, s.members[0])
		}
	default:
		for _, operand := range operands(n) {
			e.blame(f, operand)
		}
	}
}

// members begins an aggregate and returns the indices of its inputs.
func (e *evaluation) members(id int) any {
	a := e.expression.nodes[id].(*aggregate)
	number := 0
	for _, r := range a.references {
		if s := e.resolved[r.slot]; s.pattern {
			number = len(s.members)
			break
		}
	}
	e.tallies[a.slot] = &tally{verdicts: make([]verdict, 0, number)}
	e.stamp++
	e.floor = e.stamp
	indices := make([]int, number)
	for i := range indices {
		indices[i] = i
	}
	return indices
}

// satisfied notes what the condition of an aggregate came to for one input. A
// failure that hangs on the input counts as not satisfying.
func (e *evaluation) satisfied(id int, value any) any {
	t := e.tallies[e.expression.nodes[id].(*aggregate).slot]
	came := unsatisfied
	if problem, ok := value.(*failure); ok {
		came = unreadable
		if !problem.onMatch && t.failure == nil {
			t.failure = problem
		}
	} else if truth(value) {
		came = satisfied
	}
	t.verdicts = append(t.verdicts, came)
	t.counts[came]++
	e.stamp++
	e.floor = e.stamp
	return came == satisfied
}

// total ends an aggregate and returns its value; number is how many inputs
// satisfied the condition.
func (e *evaluation) total(id, number int) any {
	a := e.expression.nodes[id].(*aggregate)
	t := e.tallies[a.slot]
	e.floor = 1
	if t.failure != nil {
		return e.put(id, t.failure)
	}
	failing := len(t.verdicts) - number
	switch a.function {
	case all:
		return e.put(id, failing == 0)
	case anyOf:
		return e.put(id, number > 0)
	case almostAll:
		return e.put(id, failing <= a.limit)
	}
	return e.put(id, int64(number))
}
