package cond

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

const callHint = "the only functions are all, any, count and almost_all"

// quote returns text in double quotes, with everything unprintable escaped.
func quote(text string) string { return strconv.Quote(text) }

// unexpected ends the source at the current token; wanted says what could stand
// there.
func (p *parser) unexpected(wanted string) {
	at := p.current.start
	switch p.current.kind {
	case endOfSource:
		p.fail(at, "the condition ends where "+wanted+" is expected", "")
	case lineBreak:
		p.fail(at, "a new line ends the condition", "put parentheses around a condition of several lines")
	case text:
		p.fail(at, "expected "+wanted+", found a text", "")
	default:
		p.fail(at, "expected "+wanted+", found "+quote(p.current.text), tokenHint(p.current.text))
	}
}

// tokenHint says what a word of another language is in a condition.
func tokenHint(word string) string {
	switch word {
	case "&&":
		return "write and"
	case "||":
		return "write or"
	case "!":
		return "write not"
	case "?":
		return "conditional expressions are not part of conditions"
	case "=":
		return "write == to compare"
	case ";":
		return "a condition is one expression"
	case ",":
		return "a condition is one expression; write and, or between two"
	case ":=":
		return "assignments are not part of conditions"
	case "$", "${{", "}}", "{":
		return "write the expression alone, without ${{ }} or braces"
	case "lambda", "await", "yield", "import", "for", "if", "async":
		return "a condition is one expression of references, literals, comparisons, and, or, not"
	case "not":
		return "put parentheses around the negation"
	case ")", "]", "}":
		return "it closes no bracket"
	}
	return wordHint(word)
}

// wordHint corrects the case of words that Python has.
func wordHint(word string) string {
	lower := strings.ToLower(word)
	if lower == word && word != "nil" {
		return ""
	}
	switch lower {
	case "and", "or", "not", "in":
		return "write " + lower + ": operators are in lower case"
	case "true":
		return "write True or true"
	case "false":
		return "write False or false"
	case "none", "null", "nil":
		return "write None or null"
	}
	return ""
}

// nameHint says how a name could have been meant.
func nameHint(name string) string {
	if hint := wordHint(name); hint != "" {
		return hint
	}
	return "outputs are read as inputs.TASK.FIELD, texts stand in quotation marks"
}

// arithmeticHint says what an operator could have been meant as.
func arithmeticHint(spelling string) string {
	switch spelling {
	case "&":
		return "write and"
	case "|":
		return "write or"
	case "-", "/":
		return `a name with such a character stands in brackets: inputs["train-a"].mae; a result is for the task to compute and write as an output`
	}
	return "let the task compute the result and write it as an output"
}

// numberHint says what is wrong with the spelling of a number; word is the part
// of it that is a word of its own, such as the "and" of "0.1and".
func numberHint(spelling string) (hint, word string) {
	trimmed := strings.TrimRight(spelling, "abcdefghijklmnopqrstuvwxyz")
	switch suffix := spelling[len(trimmed):]; suffix {
	case "and", "or", "in", "not", "is", "if":
		return "put a blank before " + suffix, suffix
	case "j":
		return "complex numbers are not part of conditions", ""
	}
	if strings.TrimLeft(spelling, "0") != spelling && !strings.ContainsAny(spelling, ".eExXoObB") {
		return "remove the zeros in front, or write 0o for an octal number", ""
	}
	return "write it as 42, 3.14 or 1e-3; a name that starts with a digit stands in brackets and quotation marks", ""
}

// strangeHint says what to do about a character that no token has.
func strangeHint(character rune) string {
	switch character {
	case '“', '”', '„', '‘', '’', '«', '»':
		return `write " or '`
	case '\u00a0', '\u200b', '\ufeff', '\u2003', '\u3000':
		return "replace it by an ordinary blank"
	case '≤', '≥', '≠', '＜', '＞', '＝':
		return "write <=, >=, !=, <, >, =="
	}
	return ""
}

// String spells the reference so that it can be copied into a condition.
func (r *reference) String() string {
	return r.spell(r.name, r.star)
}

// spell spells the reference with another name in its place.
func (r *reference) spell(name string, star bool) string {
	var b strings.Builder
	b.WriteString("inputs")
	switch {
	case star:
		b.WriteString(".*")
	case r.dotted && isPlainName(name):
		b.WriteString("." + name)
	default:
		b.WriteString("[" + quote(name) + "]")
	}
	for _, s := range r.path {
		switch {
		case s.indexed:
			b.WriteString("[" + strconv.Itoa(s.index) + "]")
		case s.dotted && isPlainName(s.key):
			b.WriteString("." + s.key)
		default:
			b.WriteString("[" + quote(s.key) + "]")
		}
	}
	return b.String()
}

// isPlainName reports whether name can stand after a dot.
func isPlainName(name string) bool {
	for i := range len(name) {
		if !isNameByte(name[i]) {
			return false
		}
	}
	return name != "" && !isDigit(name, 0) && !keywords[name] && !strings.HasPrefix(name, "__")
}

// closest returns the candidate that name was most likely meant to be, or "".
func closest(name string, candidates []string) string {
	// Two changes, or one in three letters; of a single letter nothing is left.
	best, found := max(min(len(name)-1, 2), len(name)/3)+1, ""
	for _, candidate := range candidates {
		if strings.EqualFold(candidate, name) {
			return candidate
		}
		if d := distance(name, candidate, best); d < best {
			best, found = d, candidate
		}
	}
	return found
}

// distance counts the changes that turn a into b, up to limit.
func distance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, diagonal+1, row[j]+1)
		}
		if slices.Min(row) >= limit {
			return limit
		}
	}
	return row[len(b)]
}

// sortFaults puts faults into the order of the source.
func sortFaults(faults []Fault) {
	slices.SortStableFunc(faults, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}
