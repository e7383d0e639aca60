package msg

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// object appends the members of one JSON object in the form of json.dumps.
type object struct{ buf []byte }

// newObject has room for size bytes before it grows.
func newObject(size int) *object { return &object{buf: append(make([]byte, 0, size), '{')} }

func (o *object) key(k string) *object {
	if len(o.buf) > 1 {
		o.buf = append(o.buf, ", "...)
	}
	o.buf = append(appendString(o.buf, k), ": "...)
	return o
}

func (o *object) text(k, v string) { o.key(k).buf = appendString(o.buf, v) }

// textOrNull writes null for the empty text, as Python does for None.
func (o *object) textOrNull(k, v string) {
	if v == "" {
		o.key(k).buf = append(o.buf, "null"...)
		return
	}
	o.text(k, v)
}

func (o *object) uint(k string, v uint64) { o.key(k).buf = strconv.AppendUint(o.buf, v, 10) }
func (o *object) int(k string, v int64)   { o.key(k).buf = strconv.AppendInt(o.buf, v, 10) }
func (o *object) bool(k string, v bool)   { o.key(k).buf = strconv.AppendBool(o.buf, v) }
func (o *object) raw(k string, v []byte)  { o.key(k).buf = appendJSON(o.buf, v) }

func (o *object) texts(k string, vs []string) {
	o.key(k).buf = append(o.buf, '[')
	for i, v := range vs {
		if i > 0 {
			o.buf = append(o.buf, ", "...)
		}
		o.buf = appendString(o.buf, v)
	}
	o.buf = append(o.buf, ']')
}

func (o *object) end() []byte { return append(o.buf, '}') }

// appendString appends s as json.dumps writes it. Bytes that are not UTF-8
// become U+FFFD.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for len(s) > 0 {
		n := plainPrefix(s)
		if dst = append(dst, s[:n]...); n == len(s) {
			break
		}
		r, size := utf8.DecodeRuneInString(s[n:])
		dst, s = appendRune(dst, r), s[n+size:]
	}
	return append(dst, '"')
}

// plainPrefix returns how many bytes at the front of s are written as they are.
func plainPrefix(s string) int {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return i
		}
	}
	return len(s)
}

const hexDigits = "0123456789abcdef"

func appendRune(dst []byte, r rune) []byte {
	switch r {
	case '"', '\\':
		return append(dst, '\\', byte(r))
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	case '\b':
		return append(dst, '\\', 'b')
	case '\f':
		return append(dst, '\\', 'f')
	}
	if r >= ' ' && r <= '~' {
		return append(dst, byte(r))
	}
	if r > 0xFFFF {
		high, low := utf16.EncodeRune(r)
		return appendUnit(appendUnit(dst, high), low)
	}
	return appendUnit(dst, r)
}

func appendUnit(dst []byte, r rune) []byte {
	return append(dst, '\\', 'u', hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
}

// appendJSON appends src, which must be valid JSON, in the form of json.dumps.
// Numbers keep their source text: what they say exactly must arrive exactly.
func appendJSON(dst, src []byte) []byte {
	for i := 0; i < len(src); {
		switch c := src[i]; c {
		case ' ', '\t', '\r', '\n':
			i++
		case ',', ':':
			dst = append(dst, c, ' ')
			i++
		case '"':
			dst, i = appendQuoted(dst, src, i+1)
		default:
			dst = append(dst, c)
			i++
		}
	}
	return dst
}

// appendQuoted appends the string whose text begins at src[i] and returns the
// position after its closing quote.
func appendQuoted(dst, src []byte, i int) ([]byte, int) {
	dst = append(dst, '"')
	for i < len(src) && src[i] != '"' {
		if src[i] != '\\' || i+1 == len(src) {
			r, size := utf8.DecodeRune(src[i:])
			dst, i = appendRune(dst, r), i+size
			continue
		}
		switch c := src[i+1]; c {
		case 'u':
			// A unit is written as a unit: half a surrogate pair, which Python
			// can send, stays what it is.
			unit, _ := strconv.ParseUint(string(src[i+2:min(i+6, len(src))]), 16, 16)
			dst, i = appendEscapedUnit(dst, rune(unit)), min(i+6, len(src))
		case '/':
			dst, i = append(dst, c), i+2
		default:
			dst, i = append(dst, '\\', c), i+2
		}
	}
	return append(dst, '"'), min(i+1, len(src))
}

func appendEscapedUnit(dst []byte, unit rune) []byte {
	if utf16.IsSurrogate(unit) {
		return appendUnit(dst, unit)
	}
	return appendRune(dst, unit)
}

var errNotObject = errors.New("not a JSON object")

// decodeObject returns the members of the one JSON object in src in order. Of
// members with one key the last value counts, in the place of the first.
func decodeObject(src []byte) ([]Kwarg, error) {
	dec := json.NewDecoder(bytes.NewReader(src))
	first, err := dec.Token()
	if err != nil {
		return nil, err
	}
	if first != json.Delim('{') {
		return nil, errNotObject
	}
	var members []Kwarg
	place := make(map[string]int)
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return nil, err
		}
		// After { and , the decoder accepts nothing but a string.
		key, _ := token.(string)
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, err
		}
		if at, seen := place[key]; seen {
			members[at].Value = value
			continue
		}
		place[key] = len(members)
		members = append(members, Kwarg{Key: key, Value: value})
	}
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON document")
	}
	return members, nil
}
