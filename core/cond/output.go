package cond

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// output is the output of one parent, decoded as far as it is needed.
type output struct {
	Input
	parent string
	value  any
	err    error
}

// output reads the output of a parent. One that can't be read is a failure of
// every reference to it.
func (e *evaluation) output(parent string, fields []string) output {
	out := output{Input: e.inputs[parent], parent: parent}
	if len(out.Output) > 0 {
		out.value, out.err = decode(out.Output, fields)
	}
	return out
}

// follow goes along the path of a reference.
func (o output) follow(r *reference) (any, *failure) {
	if o.err != nil {
		return nil, &failure{at: r, brief: "the output " + o.err.Error(), explain: func() (string, string) {
			return fmt.Sprintf("the output of %s %s", quote(o.parent), o.err), "let the task write one JSON value"
		}}
	}
	if len(o.Output) == 0 && len(r.path) > 0 {
		return nil, &failure{at: r, brief: "no output", explain: func() (string, string) {
			if !o.Completed {
				return quote(o.parent) + " did not complete and has no output", ""
			}
			return quote(o.parent) + " has no output", "let the task write one, or compare the parent itself with None"
		}}
	}
	value, depth := walk(o.value, r.path)
	if depth < len(r.path) {
		return nil, &failure{at: r, brief: r.path[depth].missing(), explain: func() (string, string) {
			// The fields that were not wanted are there for the message.
			whole, _ := decode(o.Output, nil)
			owner, depth := walk(whole, r.path)
			return o.describe(r, depth, owner)
		}}
	}
	return value, nil
}

// missing says that the step leads nowhere.
func (s step) missing() string {
	if s.indexed {
		return "no item " + strconv.Itoa(s.index)
	}
	return "no field " + quote(s.key)
}

// walk goes along a path as far as it can, and returns where it came to and the
// number of steps it took.
func walk(value any, path []step) (any, int) {
	for depth, s := range path {
		next, ok := access(value, s)
		if !ok {
			return value, depth
		}
		value = next
	}
	return value, len(path)
}

// access reads a field, a key or an item of value.
func access(value any, s step) (any, bool) {
	switch v := value.(type) {
	case object:
		if s.indexed {
			return nil, false
		}
		field, ok := v[s.key]
		return field, ok
	case list:
		index := s.index
		if index < 0 {
			index += len(v)
		}
		if !s.indexed || index < 0 || index >= len(v) {
			return nil, false
		}
		return v[index], true
	case string:
		if s.indexed {
			return characterAt(v, s.index)
		}
	}
	return nil, false
}

// characterAt returns one character of a text, counted from the end if index is
// negative.
func characterAt(value string, index int) (any, bool) {
	if index < 0 {
		length := 0
		for rest := value; rest != ""; rest = rest[codePointLength(rest):] {
			length++
		}
		index += length
	}
	for rest := value; rest != "" && index >= 0; index-- {
		width := codePointLength(rest)
		if index == 0 {
			return rest[:width], true
		}
		rest = rest[width:]
	}
	return nil, false
}

// describe says why the step at depth of a reference found nothing in owner.
func (o output) describe(r *reference, depth int, owner any) (message, hint string) {
	s := r.path[depth]
	upTo := *r
	upTo.path = r.path[:depth]
	place := "the output of " + quote(o.parent)
	if depth > 0 {
		place = upTo.spellFor(o.parent)
	}
	switch v := owner.(type) {
	case object:
		if s.indexed {
			return place + " is an object and has no item " + strconv.Itoa(s.index),
				"write the key in quotation marks: [\"" + strconv.Itoa(s.index) + "\"]"
		}
		message = place + " has no field " + quote(s.key)
		if len(v) == 0 || len(v) > manyFields {
			return fmt.Sprintf("%s; it has %d fields", message, len(v)), ""
		}
		fields := slices.Sorted(maps.Keys(v))
		if near := closest(s.key, fields); near != "" {
			hint = "did you mean " + quote(near) + "?"
		}
		return message + "; it has " + listNames(fields, 8), hint
	case list:
		if s.indexed {
			return fmt.Sprintf("%s has %d items and no item %d", place, len(v), s.index), ""
		}
	case string:
		if s.indexed {
			return fmt.Sprintf("%s is shorter than item %d", place, s.index), ""
		}
	}
	if s.indexed {
		return place + " is " + kindOf(owner) + " and has no items", ""
	}
	return place + " is " + kindOf(owner) + " and has no field " + quote(s.key), ""
}

// spellFor spells a reference for one parent in place of a pattern.
func (r *reference) spellFor(parent string) string {
	if !r.star && r.name == parent {
		return r.String()
	}
	return r.spell(parent, false)
}
