package cond

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	// MaximumLength is the length of the longest source, in bytes.
	MaximumLength = 4096
	// MaximumNesting is how deep parentheses, brackets and "not" may nest.
	MaximumNesting = 100
)

// Expression is a condition that was read and is not yet held against the
// parents of a task.
type Expression struct {
	source     string
	root       node
	nodes      []node
	references []*reference
	aggregates []*aggregate
}

// Source returns the text that the expression was parsed from.
func (e *Expression) Source() string { return e.source }

// Parse reads source. It returns either an expression or at least one fault: all
// of them where a fault leaves the rest readable, in the order of the source.
func Parse(source string) (*Expression, []Fault) {
	p := &parser{Expression: &Expression{source: source}}
	p.lexer = lexer{faultList: &faultList{source: source}}
	switch {
	case len(source) > MaximumLength:
		p.add(0, fmt.Sprintf("the condition has %d bytes, the limit is %d", len(source), MaximumLength),
			"let a task compute the decision and write it as an output")
	case !utf8.ValidString(source):
		p.add(0, "the condition is not UTF-8", "save the file as UTF-8")
	case strings.ContainsRune(source, 0):
		p.add(strings.IndexByte(source, 0), "the condition holds a NUL character", "remove it")
	default:
		p.condition()
	}
	if len(p.faults) > 0 {
		sortFaults(p.faults)
		return nil, p.faults
	}
	return p.Expression, nil
}

// parser is a recursive descent over the tokens of one source. A fault that
// leaves the rest readable is added and the parser goes on; fail ends the source.
type parser struct {
	lexer
	*Expression
	current token
	// last is where the token before the current one ends.
	last int
	// nesting counts the open brackets and negations.
	nesting int
	// within is the aggregate whose condition is being read.
	within *aggregate
	failed bool
}

// condition reads the whole source.
func (p *parser) condition() {
	p.advance()
	if p.current.kind == endOfSource {
		p.fail(p.current.start, "the condition is empty", "write an expression, or leave the condition out")
		return
	}
	p.root = p.expression()
	if !p.failed && p.current.kind != endOfSource {
		p.unexpected("an operator or the end of the condition")
	}
	if len(p.faults) == 0 {
		p.checkPlaces(p.root, false)
		p.checkQuoted()
	}
}

// advance moves to the next token.
func (p *parser) advance() {
	p.last = p.current.end
	before := len(p.faults)
	p.current = p.lexer.next()
	if p.current.kind == endOfSource && len(p.faults) > before {
		p.failed = true
	}
}

// fault records something wrong after which the rest can still be read. After a
// failure nothing more is recorded: it would only be its consequence.
func (p *parser) fault(offset int, message, hint string) {
	if !p.failed {
		p.add(offset, message, hint)
	}
}

// fail records a fault and ends the source.
func (p *parser) fail(offset int, message, hint string) {
	p.fault(offset, message, hint)
	p.failed = true
	p.position = len(p.source)
	p.current = token{kind: endOfSource, span: span{p.position, p.position}}
}

// at reports whether the current token is this symbol or keyword.
func (p *parser) at(spelling string) bool {
	return (p.current.kind == symbol || p.current.kind == keyword) && p.current.text == spelling
}

// take consumes the current token if it is this symbol or keyword.
func (p *parser) take(spelling string) bool {
	if !p.at(spelling) {
		return false
	}
	p.advance()
	return true
}

// expect consumes a closing bracket.
func (p *parser) expect(spelling string) {
	if !p.take(spelling) {
		p.unexpected(quote(spelling))
	}
}

// enter counts a level of nesting and reports whether it is still allowed.
func (p *parser) enter(offset int) bool {
	p.nesting++
	if p.nesting > MaximumNesting {
		p.fail(offset, fmt.Sprintf("the condition nests deeper than %d levels", MaximumNesting), "")
		return false
	}
	return true
}

// begin gives the next number to a node that starts at offset.
func (p *parser) begin(offset int) base {
	p.nodes = append(p.nodes, nil)
	return base{span: span{start: offset}, id: len(p.nodes) - 1}
}

// finish completes a node behind the last token.
func (p *parser) finish(b *base, n node) node {
	b.end = max(p.last, b.start)
	p.nodes[b.id] = n
	return n
}

// expression reads everything between two brackets or commas.
func (p *parser) expression() node {
	n := p.logical(true)
	switch {
	case p.at("if"):
		p.fail(p.current.start, "conditional expressions are not part of conditions",
			"`A if C else B` is `(C and A) or (not C and B)` for two conditions A and B")
	case p.at("for") || p.at("async"):
		p.fail(p.current.start, "comprehensions are not part of conditions",
			`use an aggregate such as any(inputs["train-*"].loss < 0.1)`)
	case p.at(":="):
		p.fail(p.current.start, "assignments are not part of conditions", "compare with ==")
	}
	return n
}

// logical reads a chain of "or", or one level below a chain of "and".
func (p *parser) logical(or bool) node {
	word, operand := "and", p.negation
	if or {
		word, operand = "or", func() node { return p.logical(false) }
	}
	start := p.current.start
	first := operand()
	if !p.at(word) {
		return first
	}
	n := &logical{base: p.begin(start), or: or, operands: []node{first}}
	for p.take(word) {
		n.operands = append(n.operands, operand())
	}
	return p.finish(&n.base, n)
}

// negation reads "not" before a negation or a comparison.
func (p *parser) negation() node {
	if !p.at("not") {
		return p.comparison()
	}
	start := p.current.start
	p.advance()
	n := &negation{base: p.begin(start)}
	if p.enter(start) {
		n.operand = p.negation()
	}
	p.nesting--
	return p.finish(&n.base, n)
}

// comparison reads a chain of comparisons, or a single operand.
func (p *parser) comparison() node {
	start := p.current.start
	left := p.operand()
	chain := &comparison{}
	for {
		op, ok := p.operator()
		if !ok {
			break
		}
		if len(chain.links) == 0 {
			chain.base = p.begin(start)
		}
		next := &link{base: p.begin(start), operator: op, left: left}
		start = p.current.start
		next.right = p.operand()
		p.finish(&next.base, next)
		chain.links = append(chain.links, next)
		left = next.right
	}
	if len(chain.links) == 0 {
		return left
	}
	return p.finish(&chain.base, chain)
}

// operator consumes a comparison operator.
func (p *parser) operator() (operator, bool) {
	if p.current.kind != symbol && p.current.kind != keyword {
		return 0, false
	}
	at := p.current.start
	switch p.current.text {
	case "not":
		p.advance()
		if !p.take("in") {
			p.fail(at, "`not` can't stand here", "write `and not`, or `not in`")
			return 0, false
		}
		return notIn, true
	case "is":
		p.advance()
		p.take("not")
		p.fault(at, "`is` is not part of conditions", "write == or != instead: == None, != None")
		return equals, true
	case "=", "===", "!==", "<>", "=>":
		p.fault(at, quote(p.current.text)+" is no operator of conditions", "the operators are == != < <= > >= in, not in")
		p.advance()
		return equals, true
	}
	for op, spelling := range operatorTexts {
		if p.take(spelling) {
			return operator(op), true
		}
	}
	return 0, false
}

// operand reads a value. Arithmetic behind it is reported once and read over.
func (p *parser) operand() node {
	n := p.primary()
	for reported := false; p.arithmetic(); reported = true {
		if !reported {
			p.fault(p.current.start, "arithmetic is not part of conditions: "+quote(p.current.text), arithmeticHint(p.current.text))
		}
		p.advance()
		p.primary()
	}
	return n
}

// arithmetic reports whether the current token is an operator of Python that
// conditions don't have.
func (p *parser) arithmetic() bool {
	if p.current.kind != symbol {
		return false
	}
	switch p.current.text {
	case "+", "-", "*", "/", "//", "%", "**", "@", "<<", ">>", "&", "|", "^":
		return true
	}
	return false
}

// primary reads a literal, a group, a list, a reference or an aggregate.
func (p *parser) primary() node {
	start := p.current.start
	switch p.current.kind {
	case number:
		return p.closed(p.number(start, false))
	case text:
		return p.closed(p.text())
	case identifier:
		return p.name()
	case keyword:
		switch p.current.text {
		case "True", "False", "None":
			return p.closed(p.constant())
		}
	case symbol:
		switch p.current.text {
		case "(":
			return p.closed(p.group())
		case "[":
			return p.closed(p.list())
		case "+", "-", "~":
			return p.signed()
		}
	}
	p.unexpected("a value")
	return p.nothing(start)
}

// nothing stands where a fault left no value.
func (p *parser) nothing(start int) node {
	n := &literal{base: p.begin(start)}
	return p.finish(&n.base, n)
}

// closed refuses an access or a call behind n: only references have them.
func (p *parser) closed(n node) node {
	switch {
	case p.at("."), p.at("["):
		p.fail(p.current.start, "only a reference has fields and items",
			"write the access directly behind it, without parentheses: inputs.TASK.FIELD")
	case p.at("("):
		p.fail(p.current.start, "a call is not part of conditions", callHint)
	}
	return n
}

// number reads a number; negative says that a minus was read before it.
func (p *parser) number(start int, negative bool) node {
	n := &literal{base: p.begin(start)}
	value, ok := parseNumber(p.current.text)
	if !ok {
		hint, word := numberHint(p.current.text)
		p.fault(p.current.start, quote(p.current.text)+" is not a number", hint)
		p.position -= len(word)
	}
	if negative {
		value = negated(value)
	}
	n.value = value
	p.advance()
	return p.finish(&n.base, n)
}

// signed reads a number with a sign.
func (p *parser) signed() node {
	start, sign := p.current.start, p.current.text
	p.advance()
	if p.current.kind == number && sign != "~" {
		return p.closed(p.number(start, sign == "-"))
	}
	p.fault(start, "arithmetic is not part of conditions: "+quote(sign), "one sign may stand before a number, nowhere else")
	if p.enter(start) {
		p.primary()
	}
	p.nesting--
	return p.nothing(start)
}

func (p *parser) text() node {
	n := &literal{base: p.begin(p.current.start), value: p.current.text}
	p.advance()
	p.adjacentText()
	return p.finish(&n.base, n)
}

// adjacentText refuses a second text right behind a first: Python joins them,
// which hides a lost comma and a quotation mark doubled as in SQL.
func (p *parser) adjacentText() {
	for p.current.kind == text {
		p.fault(p.current.start, "two texts side by side", `write one text, or a comma between them; a quotation mark inside a text is \" or \'`)
		p.advance()
	}
}

// constant reads one of the words that stand for a value.
func (p *parser) constant() node {
	n := &literal{base: p.begin(p.current.start), value: constants[p.current.text]}
	p.advance()
	return p.finish(&n.base, n)
}

// constants are Python's words for values and the aliases of the seed.
var constants = map[string]any{
	"True": true, "False": false, "None": nil,
	"true": true, "false": false, "null": nil,
}

// group reads parentheses: an expression in them, or a tuple.
func (p *parser) group() node {
	start := p.current.start
	p.advance()
	if !p.enter(start) {
		return p.nothing(start)
	}
	defer func() { p.nesting-- }()
	if p.take(")") {
		n := &sequence{base: p.begin(start), tuple: true}
		return p.finish(&n.base, n)
	}
	first := p.expression()
	if !p.at(",") {
		p.expect(")")
		return first
	}
	n := &sequence{base: p.begin(start), tuple: true, items: []node{first}}
	for p.take(",") && !p.at(")") {
		n.items = append(n.items, p.expression())
	}
	p.expect(")")
	return p.finish(&n.base, n)
}

// list reads a list.
func (p *parser) list() node {
	n := &sequence{base: p.begin(p.current.start)}
	p.advance()
	if p.enter(n.start) {
		for !p.failed && !p.at("]") {
			n.items = append(n.items, p.expression())
			if !p.take(",") {
				break
			}
		}
		p.expect("]")
	}
	p.nesting--
	return p.finish(&n.base, n)
}
