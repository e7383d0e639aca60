package cond_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"jobq/core/cond"
)

// question is one request to testdata/oracle.py.
type question struct {
	Expr    string             `json:"expr"`
	Outputs map[string]*string `json:"outputs"`
}

// askPython gives requests to one Python process and returns its answers.
func askPython[T any](t *testing.T, requests []T) []string {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3 here: nothing is compared with it")
	}
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines)
	for _, request := range requests {
		if err := encoder.Encode(request); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.CommandContext(t.Context(), python, "-W", "ignore", "testdata/oracle.py")
	command.Stdin = &lines
	var complaint bytes.Buffer
	command.Stderr = &complaint
	output, err := command.Output()
	if err != nil {
		t.Fatalf("the oracle failed: %v\n%s", err, complaint.Bytes())
	}
	answers := strings.Split(strings.TrimSuffix(string(output), "\n"), "\n")
	if len(answers) != len(requests) {
		t.Fatalf("the oracle gave %d answers to %d questions", len(answers), len(requests))
	}
	return answers
}

// TestRandomConditionsAgreeWithPython asks the same questions every time; with
// JOBQ_TEST_LONG set it asks many more.
func TestRandomConditionsAgreeWithPython(t *testing.T) {
	t.Parallel()
	number := 20_000
	if os.Getenv("JOBQ_TEST_LONG") != "" {
		number = 100_000
	}
	g := &generator{rand.New(rand.NewPCG(20, 26))}
	var questions []question
	var ours []string
	counts := map[string]int{}
	for len(questions) < number {
		q, parents := g.question()
		program, faults := cond.Compile(q.Expr, parents)
		if len(faults) > 0 {
			counts["refused"]++
			continue
		}
		inputs := map[string]cond.Input{}
		for name, output := range q.Outputs {
			if output != nil {
				inputs[name] = cond.Input{Output: []byte(*output), Completed: true}
			}
		}
		result := program.Evaluate(inputs)
		counts[result.Outcome.String()]++
		words := []string{result.Outcome.String()}
		for _, name := range slices.Sorted(slices.Values(result.Blames)) {
			words = append(words, strconv.QuoteToASCII(name))
		}
		questions, ours = append(questions, q), append(ours, strings.Join(words, " "))
	}
	disagreements := 0
	for i, python := range askPython(t, questions) {
		if python != ours[i] {
			outputs, _ := json.Marshal(questions[i].Outputs)
			t.Errorf("%s\non %s\nours:   %s\nPython: %s", questions[i].Expr, outputs, ours[i], python)
			if disagreements++; disagreements == 10 {
				t.FailNow()
			}
		}
	}
	for _, outcome := range []string{"true", "false", "error"} {
		if counts[outcome] < number/5 {
			t.Errorf("only %d of %d conditions came out %s: the generator is lopsided", counts[outcome], number, outcome)
		}
	}
	t.Log(counts)
}

// generator makes random conditions and outputs.
type generator struct {
	*rand.Rand
}

func pick[T any](g *generator, choices ...T) T { return choices[g.IntN(len(choices))] }

// kinds of values: operands of one kind can be compared.
const (
	numeric = iota
	textual
	listed
	kinds
)

// fieldsOf are the fields that hold values of a kind, most of the time.
var fieldsOf = [kinds][]string{{"x", "y", "ok"}, {"s", "t"}, {"l", "m"}}

func (g *generator) question() (question, []string) {
	q := question{Outputs: map[string]*string{}}
	parents := []string{}
	for _, name := range []string{"a", "b", "train-1", "train-2", "train-a", "x[1]", "p/q", "true", "été"} {
		if g.IntN(3) > 0 && len(parents) > 0 {
			continue
		}
		parents = append(parents, name)
		q.Outputs[name] = nil
		if g.IntN(25) > 0 {
			output := g.output()
			q.Outputs[name] = &output
		}
	}
	e := expressions{generator: g, parents: parents}
	q.Expr = e.expression(1 + g.IntN(4))
	if g.IntN(4) == 0 {
		q.Expr = g.mutated(q.Expr)
	}
	return q, parents
}

// output is mostly an object with the fields that references look for.
func (g *generator) output() string {
	if g.IntN(40) == 0 {
		return g.value(g.IntN(kinds))
	}
	var fields []string
	for kind, names := range fieldsOf {
		for _, name := range names {
			if g.IntN(60) > 0 {
				fields = append(fields, fmt.Sprintf("%q: %s", name, g.value(kind)))
			}
		}
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

// value is a JSON value, mostly of a kind; few distinct ones, so that equal ones
// meet.
func (g *generator) value(kind int) string {
	if g.IntN(40) == 0 {
		kind = g.IntN(kinds)
	}
	switch kind {
	case textual:
		return pick(g, `""`, `"a"`, `"abc"`, `"b"`, `"1"`, `"\u00e9"`, `"é\n"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\ude00"`, `"\uffff"`)
	case listed:
		return g.container()
	}
	if g.IntN(2) == 0 {
		return pick(g, "0", "1", "2", "1.0", "0.5", "-1", "2.5", "true", "false")
	}
	return pick(g, "null", "-0.0", "-0", "1e3", "1000", "1e999", "-1e400", "9007199254740993", "9007199254740992.0",
		"9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "9.223372036854775807e18",
		"100000000000000000000000", "1e23", "99999999999999991611392.0", "5e-324", "0.1", "0.30000000000000004")
}

// container is a list or an object, often of scalars of one kind.
func (g *generator) container() string {
	items := make([]string, g.IntN(4))
	kind := g.IntN(kinds)
	for i := range items {
		if kind == listed && g.IntN(2) == 0 {
			kind = numeric
		}
		items[i] = g.value(kind)
	}
	if g.IntN(6) > 0 {
		return "[" + strings.Join(items, ", ") + "]"
	}
	for i := range items {
		items[i] = fmt.Sprintf("%q:%s", pick(g, "x", "y", "1", "abc", ""), items[i])
	}
	return "{" + strings.Join(items, ",") + "}"
}

// expressions makes conditions over some parents.
type expressions struct {
	*generator
	parents []string
	// pattern is the pattern of the aggregate around, if any.
	pattern string
}

func (e expressions) expression(depth int) string {
	if depth == 0 {
		return e.operand(0, e.IntN(kinds))
	}
	switch e.IntN(10) {
	case 0, 1:
		return "not " + e.bracketed(depth-1)
	case 2, 3, 4:
		word := pick(e.generator, " and ", " or ")
		parts := make([]string, 2+e.IntN(2))
		for i := range parts {
			parts[i] = e.bracketed(depth - 1)
		}
		return strings.Join(parts, word)
	case 5:
		return e.bracketed(depth-1) + pick(e.generator, " and ", " or ") + e.comparison(depth-1)
	}
	return e.comparison(depth - 1)
}

func (e expressions) bracketed(depth int) string {
	if e.IntN(3) == 0 {
		return "(" + e.expression(depth) + ")"
	}
	return e.comparison(depth)
}

func (e expressions) comparison(depth int) string {
	kind := e.IntN(kinds)
	text := e.operand(depth, kind)
	for range 1 + e.IntN(4)/3 {
		if e.IntN(4) == 0 {
			text += pick(e.generator, " in ", " not in ") + e.membership(depth, kind)
			kind = listed
			continue
		}
		text += pick(e.generator, " == ", " != ", " < ", "<=", " > ", ">=") + e.operand(depth, kind)
	}
	return text
}

// membership is what can stand behind in.
func (e expressions) membership(depth, kind int) string {
	if e.IntN(2) == 0 {
		return e.reference(pick(e.generator, listed, listed, textual))
	}
	items := make([]string, e.IntN(4))
	for i := range items {
		items[i] = e.operand(depth, kind)
	}
	list := strings.Join(items, ", ")
	switch {
	case e.IntN(2) == 0:
		return "[" + list + "]"
	case len(items) == 1:
		return "(" + list + ",)"
	}
	return "(" + list + ")"
}

// operand is mostly of a kind.
func (e expressions) operand(depth, kind int) string {
	if e.IntN(40) == 0 {
		kind = e.IntN(kinds)
	}
	switch e.IntN(10) {
	case 0, 1, 2:
		if kind != listed {
			return e.literal(kind)
		}
	case 3:
		if depth > 0 && kind == numeric {
			return "(" + e.expression(depth-1) + ")"
		}
	case 4, 5:
		if e.pattern == "" && kind == numeric {
			return e.aggregate(depth)
		}
	}
	return e.reference(kind)
}

func (e expressions) aggregate(depth int) string {
	inner := e
	inner.pattern = pick(e.generator, `inputs.*`, `inputs["*"]`, `inputs["train-*"]`, `inputs['train-?']`, `inputs["[!t]*"]`, `inputs["?"]`)
	condition := inner.expression(depth)
	for !strings.Contains(condition, inner.pattern) {
		condition += pick(e.generator, " and ", " or ", " < ", " == ") + inner.reference(numeric)
	}
	switch function := pick(e.generator, "all", "any", "count", "almost_all"); function {
	case "almost_all":
		return fmt.Sprintf("almost_all(%s, %d)", condition, e.IntN(3))
	default:
		return function + "(" + condition + ")"
	}
}

func (e expressions) reference(kind int) string {
	text := e.pattern
	if text == "" || e.IntN(4) == 0 {
		name := pick(e.generator, e.parents...)
		text = "inputs[" + strconv.Quote(name) + "]"
		if (name == "a" || name == "b" || name == "true") && e.IntN(2) == 0 {
			text = "inputs." + name
		}
	}
	if e.IntN(40) == 0 {
		return text
	}
	field := pick(e.generator, fieldsOf[kind]...)
	text += pick(e.generator, ".", ".", " . ") + field
	if e.IntN(4) == 0 {
		text = strings.TrimSuffix(text, "."+field) + pick(e.generator, "['", `["`)
		text += field + text[len(text)-1:] + "]"
	}
	if e.IntN(25) == 0 {
		text += pick(e.generator, "[0]", "[-1]", "[ 1 ]", "[-2]", ".x", `["1"]`)
	}
	return text
}

func (e expressions) literal(kind int) string {
	if kind == textual {
		return pick(e.generator, `""`, `'a'`, `"abc"`, `"b"`, `"1"`, `"é"`, `"\xe9"`, `r"\n"`, `u'é\n'`, `"\uFFFF"`,
			`"\U0001f600"`, `"\ud83d"`, `"\ud83d\ude00"`, `"inputs.*"`, `'\''`, `"\101"`)
	}
	return pick(e.generator, "0", "1", "-1", "+2", "1.0", ".5", "2.5", "1e3", "1_000", "0x1", "0b10", "0o1", "1e999", "-1e999",
		"True", "False", "None", "true", "false", "null", "9007199254740993", "9223372036854775808", "-9223372036854775808",
		"100000000000000000000000", "1e23", "0.1", "0.3", "5e-324", "- 1")
}

// mutated changes one small piece of a condition. Most of what comes out is
// refused; what is not must still mean what it means to Python.
func (g *generator) mutated(text string) string {
	characters := []rune(text)
	at := g.IntN(len(characters) + 1)
	end := min(len(characters), at+g.IntN(4))
	piece := pick(g, "", "", "(", ")", "[", "]", "not ", " in ", " and ", "-", "+", ".", ",", "\"", "'", "0", "1", "_", "e1",
		" ", "\n", "#", "\\", "==", "<", "is", "if", "inputs", ".*", "r", "u")
	return string(characters[:at]) + piece + string(characters[end:])
}

func TestPatternsMatchAsInPython(t *testing.T) {
	t.Parallel()
	type request struct {
		Pattern string   `json:"pattern"`
		Names   []string `json:"names"`
	}
	g := &generator{rand.New(rand.NewPCG(7, 7))}
	word := func(limit int, alphabet string) string {
		characters := make([]rune, g.IntN(limit))
		for i := range characters {
			characters[i] = pick(g, []rune(alphabet)...)
		}
		return string(characters)
	}
	requests := make([]request, 8_000)
	for i := range requests {
		requests[i].Pattern = word(10, `ab-![]*?^\&|~/zé`) + pick(g, "", "*")
		if g.IntN(2) == 0 {
			requests[i].Pattern = word(3, "ab*?") + "[" + word(7, `ab-!]^\[cdz`) + "]" + word(3, "ab*?")
		}
		for range 8 {
			requests[i].Names = append(requests[i].Names, word(5, "ab-!]^\\[cdz/é\n*"))
		}
	}
	matched := 0
	for i, python := range askPython(t, requests) {
		for j, name := range requests[i].Names {
			ours := cond.MatchPattern(requests[i].Pattern, name)
			if ours != (python[j] == '1') {
				t.Fatalf("pattern %q, name %q: ours %v, Python %c", requests[i].Pattern, name, ours, python[j])
			}
			if ours {
				matched++
			}
		}
	}
	if matched < 2_000 {
		t.Errorf("only %d pairs match: the generator is lopsided", matched)
	}
}
