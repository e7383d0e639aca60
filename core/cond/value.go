package cond

import (
	"math/big"
	"strings"
	"unicode/utf8"
)

// The values of an evaluation are nil, bool, int64, *big.Int (only beyond
// int64), float64 (never NaN: JSON has none and no operation makes one), string,
// list, tuple, object and, in place of a value, *failure.
type (
	list   []any
	tuple  []any
	object map[string]any
)

// kindOf names the kind of a value for people.
func kindOf(value any) string {
	switch value.(type) {
	case nil:
		return "None"
	case bool:
		return "a boolean"
	case int64, *big.Int, float64:
		return "a number"
	case string:
		return "a text"
	case list:
		return "a list"
	case tuple:
		return "a tuple"
	}
	return "an object"
}

// truth is Python's bool(value).
func truth(value any) bool {
	switch v := value.(type) {
	case bool:
		return v
	case int64:
		return v != 0
	case *big.Int:
		return true
	case float64:
		return v != 0
	case string:
		return v != ""
	case list:
		return len(v) > 0
	case tuple:
		return len(v) > 0
	case object:
		return len(v) > 0
	}
	return false
}

// meter bounds the work of one evaluation.
type meter struct {
	left int
}

// bytesPerStep is how many bytes of text one step may compare.
const bytesPerStep = 64

// spend takes steps away and reports whether there are any left. Whoever gets
// false returns at once with any result: the evaluation is over.
func (m *meter) spend(steps int) bool {
	m.left -= steps
	return m.left >= 0
}

// equal is Python's a == b, which never fails.
func (m *meter) equal(a, b any) bool {
	if !m.spend(1) {
		return false
	}
	switch a := a.(type) {
	case nil:
		return b == nil
	case string:
		b, ok := b.(string)
		return ok && len(a) == len(b) && m.spend(len(a)/bytesPerStep) && a == b
	case list:
		b, ok := b.(list)
		return ok && m.equalItems(a, b)
	case tuple:
		b, ok := b.(tuple)
		return ok && m.equalItems(a, b)
	case object:
		b, ok := b.(object)
		if !ok || len(a) != len(b) {
			return false
		}
		for key, value := range a {
			other, ok := b[key]
			if !ok || !m.equal(value, other) {
				return false
			}
		}
		return true
	}
	return isNumber(b) && compareNumbers(a, b) == 0
}

func (m *meter) equalItems(a, b []any) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !m.equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

// mismatch says that an operator has no meaning for its operands, and which of
// them can't be right.
type mismatch struct {
	message, hint string
	left, right   bool
}

// order is Python's ordering of a and b: -1, 0 or 1.
func (m *meter) order(a, b any) (int, *mismatch) {
	if !m.spend(1) {
		return 0, nil
	}
	switch left := a.(type) {
	case string:
		if right, ok := b.(string); ok {
			m.spend(min(len(left), len(right)) / bytesPerStep)
			return strings.Compare(left, right), nil
		}
	case list:
		if right, ok := b.(list); ok {
			return m.orderItems(left, right)
		}
	case tuple:
		if right, ok := b.(tuple); ok {
			return m.orderItems(left, right)
		}
	default:
		if isNumber(a) && isNumber(b) {
			return compareNumbers(a, b), nil
		}
	}
	return 0, unordered(a, b)
}

// orderItems orders by the first items that differ, then by length.
func (m *meter) orderItems(a, b []any) (int, *mismatch) {
	for i := range min(len(a), len(b)) {
		if !m.equal(a[i], b[i]) {
			return m.order(a[i], b[i])
		}
	}
	return compareNumbers(int64(len(a)), int64(len(b))), nil
}

// unordered is the mismatch of two values that have no order. None and objects
// have no order with anything, so they alone are what can't be right; otherwise
// either may be.
func unordered(a, b any) *mismatch {
	leftNever, rightNever := neverOrdered(a), neverOrdered(b)
	either := !leftNever && !rightNever
	return &mismatch{
		message: kindOf(a) + " and " + kindOf(b) + " have no order",
		hint:    "compare numbers with numbers and texts with texts",
		left:    leftNever || either,
		right:   rightNever || either,
	}
}

func neverOrdered(value any) bool {
	if value == nil {
		return true
	}
	_, ok := value.(object)
	return ok
}

// contains is Python's item in container.
func (m *meter) contains(item, container any) (bool, *mismatch) {
	if !m.spend(1) {
		return false, nil
	}
	switch c := container.(type) {
	case string:
		part, ok := item.(string)
		if !ok {
			return false, &mismatch{
				message: kindOf(item) + " can't be part of a text",
				hint:    "only a text can be in a text",
				left:    true, right: true,
			}
		}
		m.spend(len(c) / bytesPerStep)
		return strings.Contains(c, part), nil
	case list:
		return m.containsItem(item, c), nil
	case tuple:
		return m.containsItem(item, c), nil
	case object:
		if !m.hashable(item) {
			return false, &mismatch{
				message: kindOf(item) + " can't be a key of an object",
				hint:    "the keys of an object are texts",
				left:    true,
			}
		}
		key, ok := item.(string)
		_, found := c[key]
		return ok && found, nil
	}
	return false, &mismatch{
		message: kindOf(container) + " holds nothing that could be looked for",
		hint:    "in needs a list, a tuple, a text or an object on its right",
		right:   true,
	}
}

func (m *meter) containsItem(item any, items []any) bool {
	for _, candidate := range items {
		if m.equal(item, candidate) {
			return true
		}
	}
	return false
}

// hashable reports whether Python could look value up as a key.
func (m *meter) hashable(value any) bool {
	switch v := value.(type) {
	case list, object:
		return false
	case tuple:
		for _, item := range v {
			if !m.spend(1) || !m.hashable(item) {
				return false
			}
		}
	}
	return true
}

// compare applies operator to two values.
func (m *meter) compare(op operator, a, b any) (bool, *mismatch) {
	switch op {
	case equals:
		return m.equal(a, b), nil
	case unequal:
		return !m.equal(a, b), nil
	case isIn:
		return m.contains(a, b)
	case notIn:
		found, problem := m.contains(a, b)
		return !found, problem
	}
	order, problem := m.order(a, b)
	switch op {
	case less:
		return order < 0, problem
	case lessOrEqual:
		return order <= 0, problem
	case greater:
		return order > 0, problem
	default:
		return order >= 0, problem
	}
}

// appendCodePoint appends a code point as UTF-8. A half of a surrogate pair,
// which UTF-8 has no form for, gets the three bytes that it would have: so
// different halves stay different and order by number, as in Python.
func appendCodePoint(buffer []byte, code rune) []byte {
	if isSurrogate(code) {
		return append(buffer, 0xE0|byte(code>>12), 0x80|byte(code>>6&0x3F), 0x80|byte(code&0x3F))
	}
	return utf8.AppendRune(buffer, code)
}

func isSurrogate(code rune) bool { return code >= 0xD800 && code <= 0xDFFF }

// codePointLength is the length in bytes of the first code point of a text that
// is not empty.
func codePointLength(value string) int {
	character, width := utf8.DecodeRuneInString(value)
	if character == utf8.RuneError && width == 1 && len(value) >= 3 {
		return 3
	}
	return width
}
