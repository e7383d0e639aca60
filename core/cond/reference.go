package cond

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// name reads whatever starts with a name.
func (p *parser) name() node {
	start, word := p.current.start, p.current.text
	if _, ok := constants[word]; ok {
		return p.closed(p.constant())
	}
	switch word {
	case "inputs":
		return p.reference()
	case string(all), string(anyOf), string(count), string(almostAll):
		return p.closed(p.aggregate())
	}
	p.advance()
	if p.at("(") {
		p.fault(start, "unknown function "+quote(word), callHint)
	} else {
		p.fault(start, "unknown name "+quote(word), nameHint(word))
	}
	p.skipAccesses()
	return p.nothing(start)
}

// skipAccesses skips the fields, items and calls behind a name that is none.
func (p *parser) skipAccesses() {
	for !p.failed {
		switch {
		case p.take("."):
			if p.current.kind == identifier || p.current.kind == keyword {
				p.advance()
			}
		case p.at("["), p.at("("):
			p.skipGroup()
		default:
			return
		}
	}
}

// reference reads inputs and the accesses behind it.
func (p *parser) reference() node {
	r := &reference{base: p.begin(p.current.start), within: p.within}
	p.advance()
	if !p.referenceName(r) {
		p.fault(r.start, "inputs alone is no value", "name a parent: inputs.TASK or inputs[\"TASK\"]")
		return p.nothing(r.start)
	}
	p.repair(r)
	for {
		switch {
		case p.at("."), p.atDotNumber():
			p.field(r)
		case p.at("["):
			p.subscript(r)
		case p.at("("):
			p.fault(p.current.start, "a call is not part of conditions", callHint)
			p.skipGroup()
		default:
			return p.completed(r)
		}
	}
}

// completed files a reference that was read to its end.
func (p *parser) completed(r *reference) node {
	p.finish(&r.base, r)
	if r.misspelled != "" {
		p.fault(r.start, r.misspelled, "write "+r.String())
	}
	r.slot = len(p.references)
	p.references = append(p.references, r)
	if r.within != nil {
		r.within.references = append(r.within.references, r)
	}
	return r
}

// referenceName reads the parent's name, and reports whether there was one.
func (p *parser) referenceName(r *reference) bool {
	if p.at("[") {
		s, ok := p.key()
		if ok && s.indexed {
			p.fault(r.start, "the outputs of parents have names, not numbers", `write inputs["TASK"]`)
		}
		r.name = s.key
		return true
	}
	if !p.at(".") && !p.atDotNumber() {
		return false
	}
	if p.take(".") && p.take("*") {
		r.name, r.star = "*", true
		return true
	}
	r.dotted = true
	r.name = p.dottedName(r)
	return true
}

// dottedName reads the name behind a dot. One that only brackets could hold is
// read all the same, so that the fault can show the whole reference in brackets.
func (p *parser) dottedName(r *reference) string {
	word := p.current.text
	problem := ""
	switch {
	case p.current.kind == keyword:
		problem = quote(word) + " is a reserved word of Python and can't follow a dot"
	case p.current.kind == number:
		problem = "a name after a dot can't start with a digit"
		word = p.reread(p.current.start)
	case p.at("*"):
		p.fail(p.current.start, "a star stands only directly behind inputs", "write inputs.*")
		return ""
	case p.current.kind != identifier:
		p.unexpected("a name")
		return ""
	case strings.HasPrefix(word, "__"):
		problem = "a name with two underscores in front can't follow a dot"
	case strings.ContainsFunc(word, func(c rune) bool { return c >= utf8.RuneSelf }):
		problem = "a name with characters outside ASCII can't follow a dot: Python would rewrite some of them, names of tasks are never rewritten"
	}
	if r.misspelled == "" {
		r.misspelled = problem
	}
	p.advance()
	return word
}

// reread makes the characters of a name out of a number token at start, which
// may have a dot in front.
func (p *parser) reread(start int) string {
	if p.source[start] == '.' {
		start++
	}
	p.position = start
	for p.position < len(p.source) && isNameByte(p.source[p.position]) {
		p.position++
	}
	p.current.end = p.position
	return p.source[start:p.position]
}

// atDotNumber reports whether the lexer took a dot and digits for a number.
func (p *parser) atDotNumber() bool {
	return p.current.kind == number && p.current.text[0] == '.'
}

// field reads a dot and a name.
func (p *parser) field(r *reference) {
	p.take(".")
	r.path = append(r.path, step{key: p.dottedName(r), dotted: true})
	p.repair(r)
}

// repair handles the commonest mistake, a name such as train-gnn or prep/x after
// a dot: it reads the rest of the name, so that the fault can show the reference
// in brackets and the rest of the condition is still checked.
func (p *parser) repair(r *reference) {
	adjacent := p.current.kind == symbol && p.current.start == p.last && !p.failed
	if !adjacent || p.current.text != "-" && p.current.text != "/" ||
		p.current.end == len(p.source) || !isNameByte(p.source[p.current.end]) {
		return
	}
	last := &r.name
	if len(r.path) > 0 {
		last = &r.path[len(r.path)-1].key
	} else if !r.dotted {
		return
	}
	end := p.current.start
	for end < len(p.source) && (isNameByte(p.source[end]) || p.source[end] == '-' || p.source[end] == '/') {
		end++
	}
	*last += p.source[p.current.start:end]
	r.misspelled = "a name with " + quote(p.current.text) + " can't follow a dot: Python reads it as arithmetic"
	p.position, p.current.end = end, end
	p.advance()
}

// subscript reads a key or an index in brackets.
func (p *parser) subscript(r *reference) {
	s, _ := p.key()
	r.path = append(r.path, s)
}

// key reads the brackets of a subscript.
func (p *parser) key() (step, bool) {
	open := p.current.start
	p.advance()
	if !p.enter(open) {
		return step{}, false
	}
	defer func() { p.nesting-- }()
	s, ok := p.keyLiteral()
	if ok && p.take("]") {
		return s, true
	}
	switch {
	case p.failed:
	case p.at(":"):
		p.fault(open, "slices are not part of conditions", "compare single items, or let the task write the part as an output of its own")
	default:
		p.fault(open, "brackets hold one name in quotation marks or one whole number", `write ["NAME"] or [0]`)
	}
	p.skipTo(1)
	return step{}, false
}

// keyLiteral reads a text or a whole number with an optional sign.
func (p *parser) keyLiteral() (step, bool) {
	if p.current.kind == text {
		s := step{key: p.current.text}
		p.advance()
		p.adjacentText()
		return s, true
	}
	negative := p.at("-")
	if negative || p.at("+") {
		p.advance()
	}
	if p.current.kind != number {
		return step{}, false
	}
	n := p.number(p.current.start, negative).(*literal)
	switch n.value.(type) {
	case nil, float64:
		return step{}, n.value == nil
	}
	return step{indexed: true, index: clampInteger(n.value)}, true
}

// skipGroup skips a bracket that was not read and everything in it.
func (p *parser) skipGroup() {
	p.advance()
	p.skipTo(1)
}

// skipTo skips behind the bracket that closes the given number of open ones.
func (p *parser) skipTo(open int) {
	for open > 0 && p.current.kind != endOfSource {
		if p.current.kind == symbol {
			switch p.current.text {
			case "(", "[", "{":
				open++
			case ")", "]", "}":
				open--
			}
		}
		p.advance()
	}
	if open > 0 {
		p.fail(len(p.source), "a bracket is not closed", "")
	}
}

// aggregate reads all(...), any(...), count(...) or almost_all(..., N).
func (p *parser) aggregate() node {
	a := &aggregate{base: p.begin(p.current.start), function: function(p.current.text)}
	p.advance()
	if !p.at("(") {
		p.fault(a.start, quote(string(a.function))+" is a function and has no value of its own",
			fmt.Sprintf(`call it: %s(inputs["train-*"].ok)`, a.function))
		return p.nothing(a.start)
	}
	if p.within != nil {
		p.fault(a.start, "an aggregate can't stand inside another", "combine two aggregates with and, or")
	}
	open := p.current.start
	p.advance()
	if !p.enter(open) {
		return p.nothing(a.start)
	}
	outer := p.within
	p.within = a
	if p.at(")") {
		p.fault(open, string(a.function)+" needs a condition", fmt.Sprintf(`write %s(inputs["train-*"].ok)`, a.function))
	} else {
		a.condition = p.expression()
	}
	p.within = outer
	p.limit(a)
	p.nesting--
	a.slot = len(p.aggregates)
	p.aggregates = append(p.aggregates, a)
	return p.finish(&a.base, a)
}

// limit reads what is behind the condition of an aggregate up to the closing
// parenthesis: for almost_all the number of inputs that may fail.
func (p *parser) limit(a *aggregate) {
	const hint = "write almost_all(CONDITION, N): at most N inputs may fail CONDITION"
	second := p.take(",") && !p.at(")")
	switch {
	case a.function != almostAll && second:
		p.fault(p.current.start, string(a.function)+" takes one condition", "")
		p.skipTo(1)
		return
	case a.function == almostAll && !second:
		if !p.failed {
			p.fault(a.start, "almost_all needs a limit", hint)
		}
	case a.function == almostAll:
		at := p.current.start
		value, ok := parseNumber(p.current.text)
		if p.current.kind != number || !ok || isFloat(value) {
			p.fault(at, "the limit of almost_all is a whole number, 0 or more", hint)
			p.skipTo(1)
			return
		}
		a.limit = clampInteger(value)
		p.advance()
		p.take(",")
	}
	p.expect(")")
}
