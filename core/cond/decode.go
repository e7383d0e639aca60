package cond

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"unicode/utf8"
)

// Limits of an output that a condition can read.
const (
	maximumDigits = 4300   // of one integer, as in Python
	maximumLevels = 10_000 // of nested lists and objects, as in encoding/json
)

// Reasons why an output can't be read; decode adds the byte.
var (
	errNotJSON  = errors.New("is not JSON")
	errNotUTF8  = errors.New("is not UTF-8")
	errTooDeep  = fmt.Errorf("is nested deeper than %d levels", maximumLevels)
	errTooLarge = fmt.Errorf("holds an integer of more than %d digits", maximumDigits)
)

// decode reads one JSON value. encoding/json would do but for three things that
// a condition needs: integers apart from floats and exact, halves of surrogate
// pairs kept apart, and ten thousand small outputs in a few milliseconds. What
// is accepted is what encoding/json accepts, except for text that is not UTF-8.
func decode(data []byte) (any, error) {
	d := decoder{data: data}
	value, err := d.value(0)
	if err == nil {
		if d.space(); d.position < len(data) {
			err = errNotJSON
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w (byte %d)", err, d.position+1)
	}
	return value, nil
}

// decoder walks over data once.
type decoder struct {
	data     []byte
	position int
}

// peek returns the next byte, or 0 at the end.
func (d *decoder) peek() byte {
	if d.position < len(d.data) {
		return d.data[d.position]
	}
	return 0
}

// take consumes the next byte if it is c.
func (d *decoder) take(c byte) bool {
	if d.peek() != c || d.position == len(d.data) {
		return false
	}
	d.position++
	return true
}

func (d *decoder) space() {
	for d.position < len(d.data) {
		switch d.data[d.position] {
		case ' ', '\t', '\n', '\r':
			d.position++
		default:
			return
		}
	}
}

// value reads the next value at a level of nesting.
func (d *decoder) value(level int) (any, error) {
	d.space()
	switch c := d.peek(); {
	case c == '{':
		return d.object(level + 1)
	case c == '[':
		return d.list(level + 1)
	case c == '"':
		return d.text()
	case c == '-' || c >= '0' && c <= '9':
		return d.number()
	case c == 't':
		return true, d.word("true")
	case c == 'f':
		return false, d.word("false")
	case c == 'n':
		return nil, d.word("null")
	}
	return nil, errNotJSON
}

func (d *decoder) word(word string) error {
	for i := range len(word) {
		if !d.take(word[i]) {
			return errNotJSON
		}
	}
	return nil
}

func (d *decoder) object(level int) (any, error) {
	if level > maximumLevels {
		return nil, errTooDeep
	}
	d.position++
	members := object{}
	if d.space(); d.take('}') {
		return members, nil
	}
	for {
		if d.space(); d.peek() != '"' {
			return nil, errNotJSON
		}
		key, err := d.text()
		if err != nil {
			return nil, err
		}
		if d.space(); !d.take(':') {
			return nil, errNotJSON
		}
		// Of equal keys the last one counts, as in Python and encoding/json.
		if members[key], err = d.value(level); err != nil {
			return nil, err
		}
		if d.space(); d.take('}') {
			return members, nil
		}
		if !d.take(',') {
			return nil, errNotJSON
		}
	}
}

func (d *decoder) list(level int) (any, error) {
	if level > maximumLevels {
		return nil, errTooDeep
	}
	d.position++
	items := list{}
	if d.space(); d.take(']') {
		return items, nil
	}
	for {
		item, err := d.value(level)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
		if d.space(); d.take(']') {
			return items, nil
		}
		if !d.take(',') {
			return nil, errNotJSON
		}
	}
}

// number reads an integer, or with a fraction or exponent a float.
func (d *decoder) number() (any, error) {
	start := d.position
	d.take('-')
	first := d.position
	if !d.take('0') && !d.digits() {
		return nil, errNotJSON
	}
	digits := d.position - first
	integer := true
	if d.take('.') {
		integer = false
		if !d.digits() {
			return nil, errNotJSON
		}
	}
	if d.take('e') || d.take('E') {
		integer = false
		if !d.take('+') {
			d.take('-')
		}
		if !d.digits() {
			return nil, errNotJSON
		}
	}
	spelling := string(d.data[start:d.position])
	if !integer {
		// The form was checked, so an error is the range: the value is infinite.
		value, _ := strconv.ParseFloat(spelling, 64)
		return value, nil
	}
	if value, err := strconv.ParseInt(spelling, 10, 64); err == nil {
		return value, nil
	}
	if digits > maximumDigits {
		return nil, errTooLarge
	}
	value, _ := new(big.Int).SetString(spelling, 10)
	return value, nil
}

// digits consumes digits and reports whether there was one.
func (d *decoder) digits() bool {
	start := d.position
	for c := d.peek(); c >= '0' && c <= '9'; c = d.peek() {
		d.position++
	}
	return d.position > start
}

// text reads a string that starts at the quotation mark.
func (d *decoder) text() (string, error) {
	d.position++
	start := d.position
	for d.position < len(d.data) {
		switch c := d.data[d.position]; {
		case c == '"':
			d.position++
			return validText(d.data[start : d.position-1])
		case c == '\\':
			return d.escapedText(start)
		case c < ' ':
			return "", errNotJSON
		default:
			d.position++
		}
	}
	return "", errNotJSON
}

func validText(data []byte) (string, error) {
	if !utf8.Valid(data) {
		return "", errNotUTF8
	}
	return string(data), nil
}

// escapedText goes on with a text of which the part from start to position is
// plain.
func (d *decoder) escapedText(start int) (string, error) {
	if !utf8.Valid(d.data[start:d.position]) {
		return "", errNotUTF8
	}
	value := append([]byte(nil), d.data[start:d.position]...)
	for d.position < len(d.data) {
		switch c := d.data[d.position]; {
		case c == '"':
			d.position++
			return string(value), nil
		case c == '\\':
			var err error
			if value, err = d.escape(value); err != nil {
				return "", err
			}
		case c < ' ':
			return "", errNotJSON
		default:
			character, width := utf8.DecodeRune(d.data[d.position:])
			if character == utf8.RuneError && width == 1 {
				return "", errNotUTF8
			}
			value = append(value, d.data[d.position:d.position+width]...)
			d.position += width
		}
	}
	return "", errNotJSON
}

// jsonEscapes are the escapes of one character.
var jsonEscapes = map[byte]byte{
	'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t',
}

// escape reads one escape.
func (d *decoder) escape(value []byte) ([]byte, error) {
	d.position++
	c := d.peek()
	if c == 'u' {
		return d.unicodeEscape(value)
	}
	plain, ok := jsonEscapes[c]
	if !ok {
		return nil, errNotJSON
	}
	d.position++
	return append(value, plain), nil
}

// unicodeEscape reads \uXXXX; two halves of a surrogate pair in a row make one
// character, any other half stays what it is.
func (d *decoder) unicodeEscape(value []byte) ([]byte, error) {
	code, ok := d.hexadecimal()
	if !ok {
		return nil, errNotJSON
	}
	if code >= 0xD800 && code < 0xDC00 && d.position+1 < len(d.data) &&
		d.data[d.position] == '\\' && d.data[d.position+1] == 'u' {
		before := d.position
		d.position++
		low, ok := d.hexadecimal()
		if !ok {
			return nil, errNotJSON
		}
		if low >= 0xDC00 && low <= 0xDFFF {
			return utf8.AppendRune(value, (code-0xD800)<<10+(low-0xDC00)+0x10000), nil
		}
		d.position = before
	}
	return appendCodePoint(value, code), nil
}

// hexadecimal reads the u and the four digits behind it.
func (d *decoder) hexadecimal() (rune, bool) {
	if d.position+5 > len(d.data) {
		return 0, false
	}
	code := rune(0)
	for _, c := range d.data[d.position+1 : d.position+5] {
		digit := rune(0)
		switch {
		case c >= '0' && c <= '9':
			digit = rune(c - '0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			digit = rune(c|0x20-'a') + 10
		default:
			return 0, false
		}
		code = code<<4 | digit
	}
	d.position += 5
	return code, true
}
