package spec

import (
	"cmp"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"jobq/core/dag"
)

func isNull(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null"
}

// kindOf says what n is in the words of people.
func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "map"
	case yaml.SequenceNode:
		return "list"
	}
	switch n.ShortTag() {
	case "!!null":
		return "null value"
	case "!!bool":
		return "true/false value"
	case "!!int", "!!float":
		return "number"
	}
	return "text"
}

// standardTag reports whether the meaning of a tag is plain. Others would need a
// reader of their own, so they are refused and not ignored.
func standardTag(n *yaml.Node) bool {
	switch n.ShortTag() {
	case "!!str", "!!int", "!!float", "!!bool", "!!null", "!!timestamp", "!!merge", "!!map", "!!seq", "!":
		return true
	}
	return false
}

// checkTag reports a tag that is not one of the standard ones.
func (r *reader) checkTag(n *yaml.Node, path dag.Path) bool {
	if standardTag(n) {
		return true
	}
	r.fault(n, path, "the tag "+dag.Quote(n.Tag)+" is not known", "remove the tag")
	return false
}

// textOf returns the text of a scalar as its author wrote it. Null, lists and
// maps are faults. what names the value in messages.
func (r *reader) textOf(n *yaml.Node, path dag.Path, what string) (string, bool) {
	switch {
	case n.Kind == yaml.MappingNode || n.Kind == yaml.SequenceNode:
		r.fault(n, path, what+" is a "+kindOf(n)+", not a text", "write a text; in quotes if it begins with a bracket")
		return "", false
	case isNull(n):
		message := what + " has no value"
		if n.Value != "" {
			message = what + " is null, not a text"
		}
		r.fault(n, path, message, nullRemedy(path, what))
		return "", false
	case !r.checkTag(n, path):
		return "", false
	}
	return n.Value, true
}

// nullRemedy says what to write where null is not taken for a text: dropping a
// dependency, or a command, would be the worst reading of all.
func nullRemedy(path dag.Path, what string) string {
	switch {
	case path.Field == dag.FieldDependsOn:
		return "name a task, or remove the entry; a task called null is written in quotes"
	case what == "cmd":
		return "give it a command line; one that does nothing is `cmd: \"true\"`"
	}
	return `give it a value; the empty text is written "", the text null "null"`
}

// wordOf returns the text of p if it is one of words.
func (r *reader) wordOf(p pair, path dag.Path, words []string) (string, bool) {
	remedy := "use " + strings.Join(words, " or ")
	if path.Field == dag.FieldDepPolicy {
		remedy = "use " + strings.Join(words, ", ") + ", or a number without quotes"
	}
	if p.value.Kind != yaml.ScalarNode {
		r.fault(p.value, path, p.key.Value+" is a "+kindOf(p.value), remedy)
		return "", false
	}
	best, distance := "", 4
	for _, word := range words {
		if p.value.Value == word {
			return word, true
		}
		if d, near := dag.Near(p.value.Value, word); near && d < distance {
			best, distance = word, d
		}
	}
	if best != "" {
		remedy = "did you mean " + best + "?"
	}
	r.fault(p.value, path, p.key.Value+" is "+dag.Quote(p.value.Value)+", which is none of its values", remedy)
	return "", false
}

func (r *reader) queueOf(p pair, path dag.Path) string {
	name, ok := r.textOf(p.value, path, p.key.Value)
	if !ok {
		return ""
	}
	// An empty queue would pass for one that is not given.
	if name == "" {
		r.fault(p.value, path, p.key.Value+" is empty", "name a queue, or remove the key")
	}
	return name
}

// integerOf returns the whole number of p, or 0 with a fault whose remedy is
// rule, or the range if rule is empty.
func (r *reader) integerOf(p pair, path dag.Path, least, most int, rule string) int {
	rule = cmp.Or(rule, fmt.Sprintf("give a whole number from %d to %d", least, most))
	tag := p.value.ShortTag()
	switch {
	case p.value.Kind != yaml.ScalarNode:
		r.fault(p.value, path, p.key.Value+" is a "+kindOf(p.value)+", not a number", rule)
		return 0
	case tag != "!!int" && tag != "!!float":
		r.fault(p.value, path, p.key.Value+" is the "+kindOf(p.value)+" "+dag.Quote(p.value.Value)+", not a number", rule+"; without quotes")
		return 0
	}
	text, ok := numberText(p.value.Value)
	if !ok {
		r.fault(p.value, path, p.key.Value+" is "+dag.Quote(p.value.Value)+", which is not a plain number", rule)
		return 0
	}
	value, ok := new(big.Rat).SetString(text)
	// A huge exponent would make a huge number; nothing here needs one.
	if len(text) > 32 || strings.ContainsAny(text, "eE") || !ok || !value.IsInt() {
		r.fault(p.value, path, p.key.Value+" is "+dag.Quote(p.value.Value)+", not a whole number", rule)
		return 0
	}
	if value.Cmp(big.NewRat(int64(least), 1)) < 0 || value.Cmp(big.NewRat(int64(most), 1)) > 0 {
		r.fault(p.value, path, fmt.Sprintf("%s is %s; it must be between %d and %d", p.key.Value, p.value.Value, least, most), rule)
		return 0
	}
	return int(value.Num().Int64())
}

// durationOf returns the duration of p, or 0 with a fault.
func (r *reader) durationOf(p pair, path dag.Path) time.Duration {
	const rule = "give a duration such as 30s, 10m or 2h, or a number of seconds"
	tag := p.value.ShortTag()
	if p.value.Kind != yaml.ScalarNode || tag == "!!bool" {
		r.fault(p.value, path, p.key.Value+" is a "+kindOf(p.value)+", not a duration", rule)
		return 0
	}
	text := p.value.Value
	if tag == "!!int" || tag == "!!float" {
		if seconds, ok := numberText(text); ok {
			f, _ := strconv.ParseFloat(seconds, 64)
			text = strconv.FormatFloat(f, 'f', -1, 64)
		}
	}
	d, err := parseDuration(text)
	if err != "" {
		r.fault(p.value, path, p.key.Value+" is "+dag.Quote(p.value.Value)+", "+err, rule)
	}
	return d
}

// parseDuration reads numbers with units in a row, or one number of seconds.
// The second result says what is wrong, empty for nothing.
func parseDuration(text string) (time.Duration, string) {
	const malformed = "which is not a duration"
	total, rest, terms := 0.0, strings.TrimSpace(text), 0
	if rest == "" {
		return 0, malformed
	}
	if rest[0] == '-' {
		return 0, "which is below zero"
	}
	for rest != "" {
		digits := 0
		for digits < len(rest) && (rest[digits] == '.' || '0' <= rest[digits] && rest[digits] <= '9') {
			digits++
		}
		n, err := strconv.ParseFloat(rest[:digits], 64)
		if err != nil {
			return 0, malformed
		}
		rest = rest[digits:]
		unit := time.Second
		if rest != "" || terms > 0 {
			size, name := unitOf(rest)
			if size == 0 {
				return 0, malformed
			}
			unit, rest = size, rest[len(name):]
		}
		total += n * float64(unit)
		terms++
	}
	switch {
	case total > float64(dag.MaxTimeout):
		return 0, "which is more than ten years"
	case total < 1:
		return 0, "which is no time at all"
	}
	return time.Duration(total), ""
}

// unitOf returns the unit that text begins with. Longer names come first.
func unitOf(text string) (time.Duration, string) {
	for _, u := range [...]struct {
		name string
		size time.Duration
	}{
		{"ms", time.Millisecond}, {"us", time.Microsecond}, {"µs", time.Microsecond}, {"ns", time.Nanosecond},
		{"s", time.Second}, {"m", time.Minute}, {"h", time.Hour}, {"d", 24 * time.Hour}, {"w", 7 * 24 * time.Hour},
	} {
		if strings.HasPrefix(text, u.name) {
			return u.size, u.name
		}
	}
	return 0, ""
}
