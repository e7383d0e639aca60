package cond

import (
	"fmt"
	"slices"
	"strings"
)

// checkPlaces refuses lists and tuples anywhere but behind "in" and inside
// another one: elsewhere they are a mistake more often than not (a list never
// equals a tuple, and a tuple with one item is always true).
func (p *parser) checkPlaces(n node, allowed bool) {
	switch n := n.(type) {
	case *sequence:
		if !allowed {
			p.fault(n.start, "lists and tuples stand only behind in and not in", `write inputs.TASK.FIELD in ["a", "b"]`)
		}
		for _, item := range n.items {
			p.checkPlaces(item, true)
		}
	case *comparison:
		p.checkPlaces(n.links[0].left, false)
		for _, l := range n.links {
			p.checkPlaces(l.right, l.operator == isIn || l.operator == notIn)
		}
	default:
		for _, operand := range operands(n) {
			p.checkPlaces(operand, false)
		}
	}
}

// checkQuoted refuses a condition that is as a whole in quotation marks: it
// would be a text, and a text that is not empty is true.
func (p *parser) checkQuoted() {
	n, ok := p.root.(*literal)
	if !ok {
		return
	}
	s, _ := n.value.(string)
	if strings.Contains(s, "inputs.") || strings.Contains(s, "inputs[") {
		p.fault(n.start, "the whole condition is a text, which is always true", "remove the outer quotation marks")
	}
}

// Check holds the expression against the names of the task's parents and returns
// every fault, in the order of the source: a reference to no parent, a pattern
// that matches none, a pattern outside an aggregate, an aggregate without a
// pattern or with two.
func (e *Expression) Check(parents []string) []Fault {
	_, faults := e.bind(parents, false)
	return faults
}

// source is one name or pattern of an expression together with the parents that
// it stands for.
type source struct {
	pattern bool
	// members are indices of parents, ascending.
	members []int
}

// binding resolves the references of one expression among some parents.
type binding struct {
	*faultList
	parents []string
	index   map[string]int
	// sources by the kind and spelling of the reference.
	sources map[sourceKey]*source
	// resolved holds the source of each reference, by slot; nil where there is a
	// fault.
	resolved []*source
}

// sourceKey tells names from patterns with the same spelling.
type sourceKey struct {
	name    string
	pattern bool
}

// bind resolves every reference. With tolerant a pattern without a match is no
// fault.
func (e *Expression) bind(parents []string, tolerant bool) (*binding, []Fault) {
	b := &binding{
		faultList: &faultList{source: e.source},
		parents:   parents,
		sources:   map[sourceKey]*source{},
		resolved:  make([]*source, len(e.references)),
	}
	if len(e.references) > 0 {
		b.index = make(map[string]int, len(parents))
		for i, parent := range parents {
			b.index[parent] = i
		}
	}
	for _, r := range e.references {
		b.resolve(r, tolerant)
	}
	for _, a := range e.aggregates {
		b.checkAggregate(a)
	}
	sortFaults(b.faults)
	return b, b.faults
}

// resolve finds what a reference stands for. A parent whose name is spelled like
// a pattern is meant by that spelling; the shorthand inputs.* is always a pattern.
func (b *binding) resolve(r *reference, tolerant bool) {
	position, exact := b.index[r.name]
	key := sourceKey{name: r.name}
	switch {
	case exact && !r.star:
		b.share(r, key, func() []int { return []int{position} })
		return
	case r.dotted || !hasPattern(r.name):
		b.add(r.start, quote(r.name)+" is not a parent of this task", b.parentHint(r))
		return
	case r.within == nil:
		b.add(r.start, "the pattern "+quote(r.name)+" stands outside an aggregate",
			"write all("+r.String()+"), any(...), count(...) or almost_all(..., N)")
		return
	}
	key.pattern = true
	b.share(r, key, func() []int { return matches(r.name, b.parents) })
	if len(b.resolved[r.slot].members) == 0 && !tolerant {
		b.add(r.start, "the pattern "+quote(r.name)+" matches no parent of this task", parentList(b.parents))
	}
}

// share gives references with one spelling one source.
func (b *binding) share(r *reference, key sourceKey, members func() []int) {
	found, ok := b.sources[key]
	if !ok {
		found = &source{pattern: key.pattern, members: members()}
		b.sources[key] = found
	}
	b.resolved[r.slot] = found
}

// matches returns the indices of the names that pattern matches.
func matches(pattern string, names []string) []int {
	compiled := parseGlob(pattern)
	var found []int
	for i, name := range names {
		if compiled.match(name) {
			found = append(found, i)
		}
	}
	return found
}

// checkAggregate refuses an aggregate without a pattern or with two different.
func (b *binding) checkAggregate(a *aggregate) {
	var first *reference
	for _, r := range a.references {
		resolved := b.resolved[r.slot]
		switch {
		case resolved == nil || !resolved.pattern:
		case first == nil:
			first = r
		case resolved != b.resolved[first.slot]:
			b.add(r.start, fmt.Sprintf("an aggregate has one pattern; this one has %q and %q", first.name, r.name),
				"write one aggregate for each pattern and combine them with and, or")
			return
		}
	}
	broken := slices.ContainsFunc(a.references, func(r *reference) bool { return b.resolved[r.slot] == nil })
	if first == nil && !broken {
		b.add(a.start, string(a.function)+" needs a pattern in its condition",
			`name the inputs with *, ? or [...], such as inputs["train-*"] or inputs.*`)
	}
}

// parentHint says which parent an unknown name could have been meant to be.
func (b *binding) parentHint(r *reference) string {
	// A dotted name read as a name and fields: inputs.a.b for the parent "a.b".
	name := r.name
	for i, s := range r.path {
		if s.indexed || !s.dotted {
			break
		}
		name += "." + s.key
		if _, ok := b.index[name]; ok {
			meant := *r
			meant.path = r.path[i+1:]
			return "write " + meant.spell(name, false)
		}
	}
	if near := closest(r.name, b.parents); near != "" {
		return "did you mean " + r.spell(near, false) + "?"
	}
	return "add it to depends_on; " + parentList(b.parents)
}

// parentList names the parents, as far as a line holds them.
func parentList(parents []string) string {
	if len(parents) == 0 {
		return "the task has no parents"
	}
	return "the parents are " + listNames(parents, 8)
}

// listNames joins up to limit names and says how many are left.
func listNames(names []string, limit int) string {
	shown := make([]string, 0, limit)
	for _, name := range names[:min(limit, len(names))] {
		shown = append(shown, cut(name, 64))
	}
	text := strings.Join(shown, ", ")
	if left := len(names) - len(shown); left > 0 {
		text += fmt.Sprintf(" and %d more", left)
	}
	return text
}
