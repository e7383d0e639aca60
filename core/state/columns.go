package state

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
)

// encoder appends columns of n tasks to b.
type encoder struct {
	b []byte
	n int
}

// section writes id, length and what body appends. The length is patched in
// afterwards at a fixed width, so that nothing is copied.
func (e *encoder) section(id uint64, body func()) {
	const width = 4
	e.b = binary.AppendUvarint(e.b, id)
	at := len(e.b)
	e.b = append(e.b, make([]byte, width)...)
	body()
	n := len(e.b) - at - width
	for i := range width {
		e.b[at+i] = byte(n>>(7*i)) | 0x80
	}
	e.b[at+width-1] &= 0x7f
}

func (e *encoder) uint(v uint64)   { e.b = binary.AppendUvarint(e.b, v) }
func (e *encoder) uint32(v uint32) { e.uint(uint64(v)) }
func (e *encoder) int(v int64)     { e.b = binary.AppendVarint(e.b, v) }

func (e *encoder) text(s string) {
	e.uint(uint64(len(s)))
	e.b = append(e.b, s...)
}

func (e *encoder) statuses(column []TaskStatus) {
	for _, s := range column {
		e.b = append(e.b, byte(s))
	}
}

func (e *encoder) uints(column []uint32) {
	for _, v := range column {
		e.uint(uint64(v))
	}
}

func (e *encoder) sparseUints(column []uint32) {
	last := 0
	for i, v := range column {
		if v != 0 {
			e.uint(uint64(i - last))
			e.uint(uint64(v))
			last = i
		}
	}
}

// times writes milliseconds since base plus one, 0 for unknown; a time before
// base is written as the negative it is.
func (e *encoder) times(column []int64, base int64) {
	for _, v := range column {
		switch {
		case v == 0:
			e.int(0)
		case v >= base:
			e.int(v - base + 1)
		default:
			e.int(v - base)
		}
	}
}

// keyed calls value for each key of m in ascending order, after the distance
// from the key before.
func keyed[V any](e *encoder, m map[int32]V, value func(V)) {
	last := int32(0)
	entry := func(k int32, v V) {
		e.uint(uint64(k - last))
		value(v)
		last = k
	}
	if len(m) < e.n/16 {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			entry(k, m[k])
		}
		return
	}
	// Asking for every task is quicker than sorting the keys of most.
	for k := range int32(e.n) {
		if v, ok := m[k]; ok {
			entry(k, v)
		}
	}
}

// ascending writes the length of v and the distances between its members, which
// ascend: one byte a member, as a rule.
func (e *encoder) ascending(v []int32) {
	e.uint(uint64(len(v)))
	last := int32(0)
	for _, p := range v {
		e.uint(uint64(p - last))
		last = p
	}
}

const hasMD5 = 0x80

func (e *encoder) output(o Output) {
	kind := byte(o.Kind)
	if o.HasMD5 {
		kind |= hasMD5
	}
	e.b = append(e.b, kind)
	if o.HasMD5 {
		e.b = append(e.b, o.MD5[:]...)
	}
	if o.Kind != CanonicalOutput {
		e.text(o.Text)
	}
}

// exits writes each distinct text once, in front.
func (e *encoder) exits(m map[int32]Exit) {
	seen := map[string]uint64{}
	var words []string
	place := func(s string) uint64 {
		n, ok := seen[s]
		if !ok {
			n = uint64(len(words))
			seen[s] = n
			words = append(words, s)
		}
		return n
	}
	rest := encoder{n: e.n, b: make([]byte, 0, 8*len(m))}
	// Most tasks end as the one before did: what was written of it is the same.
	var last Exit
	var written []byte
	keyed(&rest, m, func(x Exit) {
		if written != nil && x == last {
			rest.b = append(rest.b, written...)
			return
		}
		begin := len(rest.b)
		known := uint64(0)
		if x.Known {
			known = 1
		}
		rest.uint(known)
		rest.int(int64(x.Code))
		rest.uint(place(x.Signal))
		rest.uint(place(x.Word))
		rest.uint(place(x.Worker))
		rest.uint(uint64(x.Start))
		last, written = x, rest.b[begin:]
	})
	e.uint(uint64(len(words)))
	for _, s := range words {
		e.text(s)
	}
	e.b = append(e.b, rest.b...)
}

// decoder reads columns from the front of b; the first fault stops it.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf(format, args...)
	}
	d.b = nil
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.fail("a number is cut off")
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) uint32() uint32 {
	v := d.uvarint()
	if v > math.MaxUint32 {
		d.fail("number %d is too large", v)
		return 0
	}
	return uint32(v)
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.fail("a number is cut off")
		return 0
	}
	d.b = d.b[n:]
	return v
}

// take returns the next n bytes, nil when there are fewer.
func (d *decoder) take(n uint64) []byte {
	if n > uint64(len(d.b)) {
		d.fail("%d bytes wanted, %d left", n, len(d.b))
		return nil
	}
	v := d.b[:n:n]
	d.b = d.b[n:]
	return v
}

func (d *decoder) byte() byte {
	b := d.take(1)
	if b == nil {
		return 0
	}
	return b[0]
}

func (d *decoder) bytes() []byte { return d.take(d.uvarint()) }

func (d *decoder) text() string { return string(d.bytes()) }

func (d *decoder) uints(column []uint32) {
	for i := range column {
		column[i] = d.uint32()
	}
}

func (d *decoder) times(column []int64, base int64) {
	for i := range column {
		switch v := d.varint(); {
		case v > 0:
			column[i] = v + base - 1
		case v < 0:
			column[i] = v + base
		}
	}
}

// keys calls value with each key of a sparse column of n tasks.
func (d *decoder) keys(n int, value func(k int32)) {
	last, first := uint64(0), true
	for len(d.b) > 0 && d.err == nil {
		step := d.uvarint()
		if !first && step == 0 || step >= uint64(n) || last+step >= uint64(n) {
			d.fail("task %d+%d of %d", last, step, n)
			return
		}
		last, first = last+step, false
		value(int32(last))
	}
}

func (d *decoder) sparseUints(column []uint32) {
	d.keys(len(column), func(k int32) { column[k] = d.uint32() })
}

// sparse reads a column that has entries, of about size bytes each, for some of
// n tasks.
func sparse[V any](d *decoder, n, size int, read func() V) map[int32]V {
	m := make(map[int32]V, min(n, len(d.b)/size))
	d.keys(n, func(k int32) { m[k] = read() })
	return m
}

func (d *decoder) ascending() []int32 {
	count := d.uvarint()
	if count > uint64(len(d.b)) {
		d.fail("%d parents in %d bytes", count, len(d.b))
		return nil
	}
	v := make([]int32, count)
	last := uint64(0)
	for i := range v {
		step := d.uvarint()
		if i > 0 && step == 0 || step > math.MaxInt32 || last+step > math.MaxInt32 {
			d.fail("parent %d+%d", last, step)
			return nil
		}
		last += step
		v[i] = int32(last)
	}
	return v
}

func (d *decoder) output() Output {
	kind := d.byte()
	o := Output{Kind: OutputKind(kind &^ hasMD5), HasMD5: kind&hasMD5 != 0}
	if o.Kind > OtherOutput {
		d.fail("output of kind %d", o.Kind)
	}
	if o.HasMD5 {
		copy(o.MD5[:], d.take(uint64(len(o.MD5))))
	}
	if o.Kind != CanonicalOutput {
		o.Text = d.text()
	}
	return o
}

func (d *decoder) exits(n int) map[int32]Exit {
	if len(d.b) == 0 {
		return map[int32]Exit{}
	}
	count := d.uvarint()
	if count > uint64(len(d.b)) {
		d.fail("%d words in %d bytes", count, len(d.b))
		return nil
	}
	words := make([]string, count)
	for i := range words {
		words[i] = d.text()
	}
	word := func() string {
		i := d.uvarint()
		if i >= uint64(len(words)) {
			d.fail("word %d of %d", i, len(words))
			return ""
		}
		return words[i]
	}
	return sparse(d, n, 8, func() Exit {
		return Exit{Known: d.uvarint() == 1, Code: int(d.varint()), Signal: word(), Word: word(), Worker: word(), Start: d.uint32()}
	})
}
