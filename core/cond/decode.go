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

// decode reads one JSON value. Where it is an object and wanted is not nil, only
// the wanted fields are kept; the rest is checked all the same.
//
// encoding/json would do but for three things that a condition needs: integers
// apart from floats and exact, halves of surrogate pairs kept apart, and ten
// thousand small outputs in a few milliseconds. What is accepted is what
// encoding/json accepts, except for text that is not UTF-8 and integers without
// end.
func decode(data []byte, wanted []string) (any, error) {
	d := decoder{data: data}
	value, err := d.value(0, true, wanted)
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

// value reads the next value at a level of nesting. Without keep it only checks
// and returns nothing of use.
func (d *decoder) value(level int, keep bool, wanted []string) (any, error) {
	d.space()
	switch c := d.peek(); {
	case c == '{':
		return d.object(level+1, keep, wanted)
	case c == '[':
		return d.list(level+1, keep)
	case c == '"':
		value, err := d.text()
		if err != nil || !keep {
			return nil, err
		}
		return string(value), nil
	case c == '-' || c >= '0' && c <= '9':
		return d.number(keep)
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

func (d *decoder) object(level int, keep bool, wanted []string) (any, error) {
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
		keepField := keep && (wanted == nil || isWanted(wanted, key))
		value, err := d.value(level, keepField, nil)
		if err != nil {
			return nil, err
		}
		if keepField {
			// Of equal keys the last one counts, as in Python and encoding/json.
			members[string(key)] = value
		}
		if d.space(); d.take('}') {
			return members, nil
		}
		if !d.take(',') {
			return nil, errNotJSON
		}
	}
}

// isWanted compares without making a string of the key.
func isWanted(wanted []string, key []byte) bool {
	for _, name := range wanted {
		if name == string(key) {
			return true
		}
	}
	return false
}

func (d *decoder) list(level int, keep bool) (any, error) {
	if level > maximumLevels {
		return nil, errTooDeep
	}
	d.position++
	items := list{}
	if d.space(); d.take(']') {
		return items, nil
	}
	for {
		item, err := d.value(level, keep, nil)
		if err != nil {
			return nil, err
		}
		if keep {
			items = append(items, item)
		}
		if d.space(); d.take(']') {
			return items, nil
		}
		if !d.take(',') {
			return nil, errNotJSON
		}
	}
}

// number reads an integer, or with a fraction or exponent a float.
func (d *decoder) number(keep bool) (any, error) {
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
	if integer && digits > maximumDigits {
		return nil, errTooLarge
	}
	if !keep {
		return nil, nil
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

// text reads a string that starts at the quotation mark. The bytes are part of
// the data where nothing is escaped.
func (d *decoder) text() ([]byte, error) {
	d.position++
	start := d.position
	for d.position < len(d.data) {
		switch c := d.data[d.position]; {
		case c == '"':
			d.position++
			return d.valid(start, d.position-1)
		case c == '\\':
			return d.escapedText(start)
		case c < ' ':
			return nil, errNotJSON
		default:
			d.position++
		}
	}
	return nil, errNotJSON
}

// valid returns a part of the data that must be UTF-8. It can't be written to.
func (d *decoder) valid(start, end int) ([]byte, error) {
	part := d.data[start:end:end]
	if !utf8.Valid(part) {
		return nil, errNotUTF8
	}
	return part, nil
}

// escapedText goes on with a text of which the part from start to position is
// plain.
func (d *decoder) escapedText(start int) ([]byte, error) {
	value, err := d.valid(start, d.position)
	if err != nil {
		return nil, err
	}
	for d.position < len(d.data) {
		switch c := d.data[d.position]; {
		case c == '"':
			d.position++
			return value, nil
		case c == '\\':
			if value, err = d.escape(value); err != nil {
				return nil, err
			}
		case c < ' ':
			return nil, errNotJSON
		default:
			character, width := utf8.DecodeRune(d.data[d.position:])
			if character == utf8.RuneError && width == 1 {
				return nil, errNotUTF8
			}
			value = append(value, d.data[d.position:d.position+width]...)
			d.position += width
		}
	}
	return nil, errNotJSON
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
