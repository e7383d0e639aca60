package cond

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// quoted reads a text whose prefix, if any, was just read; start is where the
// prefix begins.
func (l *lexer) quoted(prefix string, start int) token {
	raw := false
	switch strings.ToLower(prefix) {
	case "", "u":
	case "r":
		raw = true
	case "f", "fr", "rf", "t":
		l.add(start, "f-strings are not part of conditions", "compare the reference itself with ==")
	case "b", "br", "rb":
		l.add(start, "bytes literals are not part of conditions", "outputs are JSON and hold text: remove the "+prefix)
	default:
		l.add(start, "a text can't follow directly on "+quote(prefix), "put an operator between them")
	}
	delimiter := l.source[l.position : l.position+1]
	if strings.HasPrefix(l.source[l.position:], strings.Repeat(delimiter, 3)) {
		l.add(l.position, "triple quotes are not part of conditions", "use one quotation mark on each side")
		return l.abandon(start)
	}
	l.position++
	value := make([]byte, 0, 32)
	for l.position < len(l.source) {
		switch c := l.source[l.position]; {
		case c == delimiter[0]:
			l.position++
			return token{text, span{start, l.position}, string(value)}
		case c == '\n' || c == '\r':
			l.add(start, "the text is not closed on its line", "add the closing "+delimiter)
			return l.abandon(start)
		case c == '\\' && raw:
			value = l.rawEscape(value)
		case c == '\\':
			value = l.escape(value)
		default:
			value = append(value, c)
			l.position++
		}
	}
	l.add(start, "the text is not closed", "add the closing "+delimiter)
	return l.abandon(start)
}

// abandon ends the source after a text that has no end.
func (l *lexer) abandon(start int) token {
	l.position = len(l.source)
	return token{text, span{start, l.position}, ""}
}

// rawEscape keeps a backslash of a raw text and the character behind it, even
// if that is the quotation mark.
func (l *lexer) rawEscape(value []byte) []byte {
	value = append(value, '\\')
	l.position++
	if l.position < len(l.source) {
		_, width := utf8.DecodeRuneInString(l.source[l.position:])
		value = append(value, l.source[l.position:l.position+width]...)
		l.position += width
	}
	return value
}

// simpleEscapes are the escapes of one character.
var simpleEscapes = map[byte]byte{
	'\\': '\\', '\'': '\'', '"': '"', 'a': '\a', 'b': '\b', 'f': '\f',
	'n': '\n', 'r': '\r', 't': '\t', 'v': '\v',
}

// escape reads one escape and appends what it stands for.
func (l *lexer) escape(value []byte) []byte {
	start := l.position
	l.position++
	if l.position == len(l.source) {
		return value
	}
	c := l.source[l.position]
	l.position++
	if plain, ok := simpleEscapes[c]; ok {
		return append(value, plain)
	}
	switch c {
	case '\r':
		if strings.HasPrefix(l.source[l.position:], "\n") {
			l.position++
		}
		return value
	case '\n':
		return value
	case '0', '1', '2', '3', '4', '5', '6', '7':
		l.position--
		return l.codePoint(value, start, l.digits(3, 8), 8)
	case 'x':
		return l.exactly(value, start, 2)
	case 'u':
		return l.exactly(value, start, 4)
	case 'U':
		return l.exactly(value, start, 8)
	case 'N':
		l.add(start, "names of characters (\\N{...}) are not part of conditions", "write the character itself")
		return value
	}
	_, width := utf8.DecodeRuneInString(l.source[l.position-1:])
	l.position += width - 1
	l.add(start, "unknown escape "+quote(l.source[start:l.position]), `write \\ for a backslash`)
	return value
}

// exactly reads an escape of a fixed number of hexadecimal digits.
func (l *lexer) exactly(value []byte, start, digits int) []byte {
	found := l.digits(digits, 16)
	if len(found) < digits {
		l.add(start, fmt.Sprintf("this escape needs %d hexadecimal digits", digits), `write \\ for a backslash`)
		return value
	}
	return l.codePoint(value, start, found, 16)
}

// digits consumes up to limit digits of base.
func (l *lexer) digits(limit, base int) string {
	start := l.position
	for l.position < len(l.source) && l.position-start < limit {
		if _, err := strconv.ParseUint(l.source[l.position:l.position+1], base, 8); err != nil {
			break
		}
		l.position++
	}
	return l.source[start:l.position]
}

// codePoint appends the character with the number digits. Halves of surrogate
// pairs are characters of their own, as in Python.
func (l *lexer) codePoint(value []byte, start int, digits string, base int) []byte {
	code, err := strconv.ParseUint(digits, base, 32)
	if err != nil || code > utf8.MaxRune {
		l.add(start, "there is no character with this number", "the last one is \\U0010FFFF")
		return value
	}
	return appendCodePoint(value, rune(code))
}

// parseNumber returns the value of a number as spelled in Python: int64,
// *big.Int or float64.
func parseNumber(spelling string) (any, bool) {
	lower := strings.ToLower(spelling)
	if len(lower) > 2 && lower[0] == '0' {
		switch lower[1] {
		case 'x':
			return parseInteger(lower[2:], 16, true)
		case 'o':
			return parseInteger(lower[2:], 8, true)
		case 'b':
			return parseInteger(lower[2:], 2, true)
		}
	}
	if strings.ContainsAny(lower, ".e") {
		return parseFloat(lower)
	}
	if strings.Trim(lower, "0_") != "" && lower[0] == '0' {
		return nil, false
	}
	return parseInteger(lower, 10, false)
}

// parseInteger reads digits with single underscores between them; after the
// prefix of a base one may lead.
func parseInteger(digits string, base int, prefixed bool) (any, bool) {
	if prefixed {
		digits = strings.TrimPrefix(digits, "_")
	}
	plain, ok := plainDigits(digits, base)
	if !ok {
		return nil, false
	}
	value, ok := new(big.Int).SetString(plain, base)
	if !ok {
		return nil, false
	}
	return normalInteger(value), true
}

// parseFloat reads digits, point and exponent. A number too large for a float
// is infinite, as in Python.
func parseFloat(lower string) (any, bool) {
	mantissa, exponent, exponential := strings.Cut(lower, "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	if whole == "" && fraction == "" {
		return nil, false
	}
	for _, part := range []*string{&whole, &fraction} {
		digits, ok := plainDigits(*part, 10)
		if *part != "" && !ok {
			return nil, false
		}
		*part = digits
	}
	plain := whole + "." + fraction
	if exponential {
		unsigned := strings.TrimLeft(exponent, "+-")
		digits, ok := plainDigits(unsigned, 10)
		if !ok || len(exponent)-len(unsigned) > 1 {
			return nil, false
		}
		plain += "e" + strings.TrimSuffix(exponent, unsigned) + digits
	}
	// The form was checked above, so the only error left is the range, and there
	// ParseFloat returns the infinity that Python has.
	value, _ := strconv.ParseFloat(plain, 64)
	return value, true
}

// plainDigits removes single underscores between digits of base.
func plainDigits(digits string, base int) (string, bool) {
	if digits == "" || digits[0] == '_' || digits[len(digits)-1] == '_' || strings.Contains(digits, "__") {
		return "", false
	}
	plain := strings.ReplaceAll(digits, "_", "")
	for i := range len(plain) {
		if strings.IndexByte("0123456789abcdef"[:base], plain[i]) < 0 {
			return "", false
		}
	}
	return plain, true
}
