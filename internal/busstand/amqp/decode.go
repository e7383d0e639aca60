package amqp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"
)

// ErrMalformed is what every refusal of bytes wraps.
var ErrMalformed = errors.New("malformed AMQP")

// The bounds of nesting and of elements that take no byte on the wire, so that
// few bytes cannot ask for much memory.
const (
	maxDepth     = 32
	maxZeroWidth = 1024
)

// Decode reads one value from the front of b and returns the rest.
//
// The types are nil, bool, uint8, uint16, uint32, uint64, int8, int16, int32,
// int64, float32, float64, Char, Decimal, Timestamp, UUID, []byte, string,
// Symbol, []any for a list, Map, Array and Described. Bytes are not copied.
// Fails with ErrMalformed.
func Decode(b []byte) (value any, rest []byte, err error) {
	d := decoder{b: b}
	value = d.value(0)
	return value, d.b, d.err
}

// Char is one Unicode character.
type Char rune

// decoder reads from b; after a failure it returns zero values only.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
	}
	d.b = nil
}

// take returns the next n bytes, or nil after a failure.
func (d *decoder) take(n int) []byte {
	if d.err != nil || n < 0 || n > len(d.b) {
		d.fail("%d bytes are wanted and %d are there", n, len(d.b))
		return nil
	}
	part := d.b[:n:n]
	d.b = d.b[n:]
	return part
}

// number returns the next n bytes (1, 2, 4 or 8) as an unsigned number.
func (d *decoder) number(n int) uint64 {
	var v uint64
	for _, c := range d.take(n) {
		v = v<<8 | uint64(c)
	}
	return v
}

// length returns a size or count of n bytes.
func (d *decoder) length(n int) int {
	v := d.number(n)
	if v > math.MaxInt32 {
		d.fail("a length of %d", v)
		return 0
	}
	return int(v)
}

func (d *decoder) value(depth int) any {
	if depth > maxDepth {
		d.fail("values nest deeper than %d", maxDepth)
		return nil
	}
	c := d.take(1)
	if c == nil {
		return nil
	}
	if c[0] == codeDescribed {
		descriptor := d.value(depth + 1)
		return Described{descriptor, d.value(depth + 1)}
	}
	return d.body(c[0], depth)
}

// body reads what follows a constructor.
func (d *decoder) body(code byte, depth int) any {
	switch code {
	case codeNull:
		return nil
	case codeTrue:
		return true
	case codeFalse:
		return false
	case codeBoolean:
		return d.boolean()
	case codeList0:
		return []any{}
	case codeBinary8, codeBinary32:
		return d.take(d.length(width(code)))
	case codeString8, codeString32:
		return d.text(code)
	case codeSymbol8, codeSymbol32:
		return Symbol(d.take(d.length(width(code))))
	case codeList8, codeList32, codeMap8, codeMap32, codeArray8, codeArray32:
		return d.compound(code, depth)
	default:
		return d.fixed(code)
	}
}

// width returns the bytes of the size of a variable or compound type: those
// with the lower code have one.
func width(code byte) int {
	if code&0xf0 == 0xa0 || code&0xf0 == 0xc0 || code&0xf0 == 0xe0 {
		return 1
	}
	return 4
}

func (d *decoder) boolean() bool {
	v := d.number(1)
	if v > 1 {
		d.fail("a boolean of %d", v)
	}
	return v == 1
}

func (d *decoder) text(code byte) string {
	b := d.take(d.length(width(code)))
	if !utf8.Valid(b) {
		d.fail("a string that is not UTF-8")
	}
	return string(b)
}

func (d *decoder) fixed(code byte) any {
	switch code {
	case codeUint0:
		return uint32(0)
	case codeUlong0:
		return uint64(0)
	case codeUbyte:
		return uint8(d.number(1))
	case codeByte:
		return int8(d.number(1))
	case codeSmallUint:
		return uint32(d.number(1))
	case codeSmallUlong:
		return d.number(1)
	case codeSmallInt:
		return int32(int8(d.number(1)))
	case codeSmallLong:
		return int64(int8(d.number(1)))
	case codeUshort:
		return uint16(d.number(2))
	case codeShort:
		return int16(d.number(2))
	case codeUint:
		return uint32(d.number(4))
	case codeInt:
		return int32(d.number(4))
	case codeFloat:
		return math.Float32frombits(uint32(d.number(4)))
	case codeChar:
		return Char(d.number(4))
	case codeUlong:
		return d.number(8)
	case codeLong:
		return int64(d.number(8))
	case codeDouble:
		return math.Float64frombits(d.number(8))
	case codeTimestamp:
		return Timestamp(d.number(8))
	case codeUUID:
		var u UUID
		copy(u[:], d.take(len(u)))
		return u
	case codeDecimal32, codeDecimal64, codeDecimal128:
		return Decimal{code, string(d.take(1 << (code>>4 - 5)))}
	default:
		d.fail("no type has the code %#x", code)
		return nil
	}
}

// compound reads a list, map or array from exactly the bytes that its size
// names.
func (d *decoder) compound(code byte, depth int) any {
	n := width(code)
	inner := decoder{b: d.take(d.length(n)), err: d.err}
	count := inner.length(n)
	var v any
	switch code {
	case codeArray8, codeArray32:
		v = inner.array(count, depth)
	case codeMap8, codeMap32:
		v = inner.pairs(count, depth)
	default:
		v = inner.list(count, depth)
	}
	if inner.err == nil && len(inner.b) > 0 {
		inner.fail("%d bytes are left in a list, map or array", len(inner.b))
	}
	if inner.err != nil {
		d.err, d.b = inner.err, nil
	}
	return v
}

func (d *decoder) list(count, depth int) []any {
	// Every element has at least its constructor.
	if count > len(d.b) {
		d.fail("%d elements in %d bytes", count, len(d.b))
		return nil
	}
	items := make([]any, 0, count)
	for range count {
		items = append(items, d.value(depth+1))
	}
	return items
}

func (d *decoder) pairs(count, depth int) Map {
	if count%2 != 0 {
		d.fail("a map of %d keys and values", count)
	}
	items := d.list(count, depth)
	if d.err != nil {
		return nil
	}
	m := make(Map, 0, count/2)
	for i := 0; i < len(items); i += 2 {
		m = append(m, Entry{items[i], items[i+1]})
	}
	return m
}

func (d *decoder) array(count, depth int) Array {
	if depth+1 > maxDepth {
		d.fail("values nest deeper than %d", maxDepth)
		return nil
	}
	c := d.take(1)
	if c == nil {
		return nil
	}
	if c[0] == codeDescribed {
		d.fail("an array of described values")
		return nil
	}
	if count > maxZeroWidth && count > len(d.b) {
		d.fail("%d elements in %d bytes", count, len(d.b))
		return nil
	}
	items := make(Array, 0, count)
	for range count {
		items = append(items, d.body(c[0], depth+1))
	}
	return items
}

// uint32At is the number at the front of b, which has four bytes or more.
func uint32At(b []byte) uint32 { return binary.BigEndian.Uint32(b) }
