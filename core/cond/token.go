package cond

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// tokenKind classifies a token.
type tokenKind uint8

const (
	endOfSource tokenKind = iota
	// lineBreak is the end of a line outside brackets with something behind it.
	lineBreak
	identifier
	keyword
	number
	text
	symbol
)

// token is a word of the source. The text of a text token is its value, that of
// every other token its spelling.
type token struct {
	kind tokenKind
	span
	text string
}

// keywords are the reserved words of Python 3. They can't be names after a dot.
var keywords = map[string]bool{
	"False": true, "None": true, "True": true, "and": true, "as": true,
	"assert": true, "async": true, "await": true, "break": true, "class": true,
	"continue": true, "def": true, "del": true, "elif": true, "else": true,
	"except": true, "finally": true, "for": true, "from": true, "global": true,
	"if": true, "import": true, "in": true, "is": true, "lambda": true,
	"nonlocal": true, "not": true, "or": true, "pass": true, "raise": true,
	"return": true, "try": true, "while": true, "with": true, "yield": true,
}

// symbols are tried in this order, so that a longer one wins over its start.
// Those that no condition may hold are here for the sake of a good hint.
var symbols = []string{
	"===", "!==", "${{", "**", "//", "<<", ">>", "<=", ">=", "==", "!=", "<>",
	":=", "=>", "&&", "||", "}}", "(", ")", "[", "]", "{", "}", "<", ">", "=",
	"!", "+", "-", "*", "/", "%", "@", "&", "|", "^", "~", ",", ".", ":", ";",
	"?", "$", "`", `\`,
}

// lexer cuts a source into tokens, one at a time: the parser may move position
// to read a piece again in another way.
type lexer struct {
	*faultList
	position int
	// brackets counts the open ones: inside them a line break is a space.
	brackets int
}

// next returns the next token. At a character that no token starts with it
// records a fault and ends the source.
func (l *lexer) next() token {
	start := l.position
	if l.space() && l.brackets == 0 && start > 0 && l.position < len(l.source) {
		return token{kind: lineBreak, span: span{l.position, l.position}}
	}
	start = l.position
	if start == len(l.source) {
		return token{kind: endOfSource, span: span{start, start}}
	}
	character, _ := utf8.DecodeRuneInString(l.source[start:])
	switch {
	case character == '"' || character == '\'':
		return l.quoted("", start)
	case isDigit(l.source, start) || character == '.' && isDigit(l.source, start+1):
		return l.number()
	case character == '_' || unicode.IsLetter(character):
		return l.word()
	}
	for _, spelling := range symbols {
		if strings.HasPrefix(l.source[start:], spelling) {
			return l.symbol(spelling)
		}
	}
	l.add(start, "unexpected character "+quote(string(character)), strangeHint(character))
	l.position = len(l.source)
	return token{kind: endOfSource, span: span{start, start}}
}

// space skips blanks, comments and line breaks and reports whether a line ended.
func (l *lexer) space() (ended bool) {
	for l.position < len(l.source) {
		switch l.source[l.position] {
		case ' ', '\t', '\f':
			l.position++
		case '\n', '\r':
			l.position++
			ended = true
		case '#':
			length := strings.IndexAny(l.source[l.position:], "\r\n")
			if length < 0 {
				length = len(l.source) - l.position
			}
			l.position += length
		default:
			return ended
		}
	}
	return ended
}

// symbol reads one symbol and counts brackets.
func (l *lexer) symbol(spelling string) token {
	start := l.position
	l.position += len(spelling)
	switch spelling {
	case "(", "[", "{":
		l.brackets++
	case ")", "]", "}":
		l.brackets = max(0, l.brackets-1)
	}
	return token{symbol, span{start, l.position}, spelling}
}

// word reads a name, a keyword, or a text with a prefix.
func (l *lexer) word() token {
	start := l.position
	for l.position < len(l.source) {
		character, width := utf8.DecodeRuneInString(l.source[l.position:])
		if character != '_' && !unicode.IsLetter(character) && !unicode.IsDigit(character) && !unicode.IsMark(character) {
			break
		}
		l.position += width
	}
	word := l.source[start:l.position]
	if l.position < len(l.source) && (l.source[l.position] == '"' || l.source[l.position] == '\'') {
		return l.quoted(word, start)
	}
	kind := identifier
	if keywords[word] {
		kind = keyword
	}
	return token{kind, span{start, l.position}, word}
}

// number reads everything that could belong to a number; parseNumber judges it.
func (l *lexer) number() token {
	start := l.position
	hexadecimal := strings.HasPrefix(l.source[start:], "0x") || strings.HasPrefix(l.source[start:], "0X")
	for l.position < len(l.source) {
		c := l.source[l.position]
		signed := (c == '+' || c == '-') && !hexadecimal && l.position > start &&
			(l.source[l.position-1]|0x20) == 'e' && isDigit(l.source, l.position+1)
		if c != '.' && !isNameByte(c) && !signed {
			break
		}
		l.position++
	}
	return token{number, span{start, l.position}, l.source[start:l.position]}
}

// isDigit reports whether source has an ASCII digit at offset.
func isDigit(source string, offset int) bool {
	return offset < len(source) && source[offset] >= '0' && source[offset] <= '9'
}

// isNameByte reports whether c can stand in a name after a dot.
func isNameByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
