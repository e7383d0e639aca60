package cond

import (
	"fmt"
	"slices"
	"strings"
)

// Bounds of the texts of a Result, in bytes.
const (
	valueLength  = 120
	sourceLength = 160
	reasonLength = 600
	reasonValues = 4 // values and inputs that are named one by one
)

// result turns the value of the whole expression into the answer.
func (e *evaluation) result(value any) Result {
	result := Result{}
	result.Trace, result.Omitted = e.trace()
	if problem, ok := value.(*failure); ok {
		e.explainFailure(&result, problem)
		return result
	}
	result.Outcome = False
	if truth(value) {
		result.Outcome = True
	}
	n := e.decisive(e.expression.root)
	result.Reason = cut(e.sentence(n), reasonLength)
	return result
}

// explainFailure fills in the parts of an error.
func (e *evaluation) explainFailure(result *Result, problem *failure) {
	message, hint := problem.explain()
	message = cut(message, reasonLength/2)
	result.Err = &Fault{position(e.expression.source, problem.at.place().start), message, hint}
	slices.Sort(problem.parents)
	for _, parent := range slices.Compact(problem.parents) {
		name := e.names[parent]
		result.Blames = append(result.Blames, name)
		if !e.inputs[name].Completed {
			result.Incomplete = append(result.Incomplete, name)
		}
	}
	reason := e.text(problem.at) + " can't be evaluated: " + message
	if facts := e.facts(problem.at); len(facts) > 0 {
		reason += " (" + strings.Join(facts, ", ") + ")"
	}
	result.Reason = cut(reason, reasonLength)
}

// decisive returns the part of n that settled its value: the operand at which a
// chain of "and" or "or" stopped, the link at which a chain of comparisons did.
func (e *evaluation) decisive(n node) node {
	for {
		switch whole := n.(type) {
		case *logical:
			last := e.lastEvaluated(whole)
			if truth(e.value(last)) != whole.or {
				return n
			}
			n = last
		case *comparison:
			for _, l := range whole.links {
				if e.results[l.id] == false {
					return l
				}
			}
			return n
		default:
			return n
		}
	}
}

// lastEvaluated returns the operand whose value is the value of the chain.
func (e *evaluation) lastEvaluated(n *logical) node {
	for _, operand := range n.operands {
		if truth(e.value(operand)) == n.or {
			return operand
		}
	}
	return n.operands[len(n.operands)-1]
}

// value returns what a node outside aggregates was evaluated to.
func (e *evaluation) value(n node) any {
	switch n := n.(type) {
	case *literal:
		return n.value
	case *logical:
		return e.value(e.lastEvaluated(n))
	case *comparison:
		for _, l := range n.links {
			if e.results[l.id] != true {
				return e.results[l.id]
			}
		}
		return true
	}
	return e.results[n.number()]
}

// sentence says what n came to and why.
func (e *evaluation) sentence(n node) string {
	answer := "false"
	var value any
	if l, ok := n.(*link); ok {
		value = e.results[l.id]
	} else {
		value = e.value(n)
	}
	if truth(value) {
		answer = "true"
	}
	text := e.text(n) + " is " + answer
	if a, ok := n.(*aggregate); ok {
		return text + ": " + e.describeAggregate(a)
	}
	facts := e.facts(n)
	if len(facts) == 0 {
		return text
	}
	return text + ": " + strings.Join(facts, ", ")
}

// text returns the source of n in one line.
func (e *evaluation) text(n node) string {
	at := n.place()
	return cut(oneLine(e.expression.source[at.start:at.end]), sourceLength)
}

// facts lists the references and aggregates below n that were evaluated.
func (e *evaluation) facts(n node) []string {
	var facts []string
	left := 0
	e.visit(n, func(n node) {
		var fact string
		switch n := n.(type) {
		case *reference:
			fact = n.String() + " = " + render(e.results[n.id], valueLength)
		case *aggregate:
			fact = fmt.Sprintf("%s = %s (%s)", e.text(n), render(e.results[n.id], valueLength), e.describeAggregate(n))
		}
		switch {
		case slices.Contains(facts, fact):
		case len(facts) == reasonValues:
			left++
		default:
			facts = append(facts, fact)
		}
	})
	if left > 0 {
		facts = append(facts, fmt.Sprintf("and %d more", left))
	}
	return facts
}

// visit calls report for every evaluated reference and aggregate of n, without
// looking into aggregates. A reference with a pattern has no single value.
func (e *evaluation) visit(n node, report func(node)) {
	_, failed := e.results[n.number()].(*failure)
	switch n := n.(type) {
	case *reference:
		if !failed && e.present(n) && !e.resolved[n.slot].pattern {
			report(n)
		}
	case *aggregate:
		if !failed && e.present(n) {
			report(n)
		}
	default:
		for _, operand := range operands(n) {
			e.visit(operand, report)
		}
	}
}

// describeAggregate says how many inputs satisfy the condition of an aggregate,
// and names those that decided it.
func (e *evaluation) describeAggregate(a *aggregate) string {
	t := e.tallies[a.slot]
	number := len(t.verdicts)
	if number == 0 {
		return "the pattern matches no input"
	}
	text := fmt.Sprintf("%d of %d inputs satisfy it", t.counts[satisfied], number)
	failing := number - t.counts[satisfied]
	if failing > 0 && a.decides(unsatisfied) {
		text = fmt.Sprintf("%d of %d inputs do not satisfy it", failing, number)
	}
	if a.function == almostAll {
		text += fmt.Sprintf(", %d may fail it", a.limit)
	}
	if t.counts[unreadable] > 0 {
		text += fmt.Sprintf(", %d can't be evaluated", t.counts[unreadable])
	}
	var named []string
	for index, came := range t.verdicts {
		if !a.decides(came) {
			continue
		}
		if len(named) == reasonValues {
			named = append(named, ellipsis)
			break
		}
		named = append(named, e.describeInput(a, index))
	}
	if len(named) > 0 {
		text += ": " + strings.Join(named, ", ")
	}
	return text
}

// describeInput gives the values of one matched input.
func (e *evaluation) describeInput(a *aggregate, index int) string {
	var values []string
	for _, entry := range e.entries(a, index) {
		value := cut(entry.Reference, sourceLength) + " = " + entry.Value
		if entry.Problem != "" {
			value = cut(entry.Reference, sourceLength) + ": " + entry.Problem
		}
		if !slices.Contains(values, value) && len(values) < reasonValues {
			values = append(values, value)
		}
	}
	return strings.Join(values, " and ")
}
