package amqp_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jobq/internal/busstand/amqp"
)

// samples has at least one value of every type.
func samples() []any {
	return []any{
		nil, true, false, uint8(7), int8(-7), uint16(7), int16(-7), uint32(0), uint32(70_000), int32(-70_000),
		uint64(0), uint64(math.MaxUint64), int64(math.MinInt64), float32(1.5), 2.5, amqp.Char('é'), amqp.Timestamp(1_700_000_000_123),
		amqp.UUID{1, 2, 3}, []byte("bytes"), []byte{}, "text é", "", amqp.Symbol("symbol"), []any{}, []any{uint32(1), "two", nil},
		amqp.Map{{Key: "a", Value: uint64(1)}, {Key: amqp.Symbol("b"), Value: []any{"c"}}},
		amqp.Array{}, amqp.Array{int64(1), int64(2)}, amqp.Array{amqp.Timestamp(5)}, amqp.Array{amqp.UUID{9}}, amqp.Array{"a", "bc"},
		amqp.Array{amqp.Array{"a"}, amqp.Array{"b"}}, amqp.Array{[]any{"a"}, []any{true}},
		amqp.Described{Descriptor: uint64(0x24), Value: []any{}}, amqp.Decimal{Constructor: 0x84, Bytes: "12345678"},
	}
}

func TestValuesSurviveTheWire(t *testing.T) {
	t.Parallel()
	for _, want := range samples() {
		b := amqp.Append(nil, want)
		got, rest, err := amqp.Decode(append(b, "rest"...))
		if err != nil || string(rest) != "rest" {
			t.Errorf("Decode(%#v) = rest %q, error %v", want, rest, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Decode(Append(%#v)) differs (-want +got):\n%s", want, diff)
		}
	}
}

// TestShortFormsAreRead has the encodings that other clients choose and this
// package never writes.
func TestShortFormsAreRead(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		wire []byte
		want any
	}{
		"true":           {[]byte{0x41}, true},
		"false":          {[]byte{0x42}, false},
		"zero uint":      {[]byte{0x43}, uint32(0)},
		"zero ulong":     {[]byte{0x44}, uint64(0)},
		"small uint":     {[]byte{0x52, 200}, uint32(200)},
		"small ulong":    {[]byte{0x53, 200}, uint64(200)},
		"small int":      {[]byte{0x54, 0xff}, int32(-1)},
		"small long":     {[]byte{0x55, 0xfe}, int64(-2)},
		"empty list":     {[]byte{0x45}, []any{}},
		"short list":     {[]byte{0xc0, 3, 2, 0x41, 0x42}, []any{true, false}},
		"short map":      {[]byte{0xc1, 5, 2, 0xa3, 1, 'k', 0x41}, amqp.Map{{Key: amqp.Symbol("k"), Value: true}}},
		"short array":    {[]byte{0xe0, 4, 2, 0x53, 1, 2}, amqp.Array{uint64(1), uint64(2)}},
		"array of truth": {[]byte{0xe0, 2, 3, 0x41}, amqp.Array{true, true, true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, _, err := amqp.Decode(tc.wire)
			if err != nil {
				t.Fatalf("Decode(% x) = error %v", tc.wire, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Decode(% x) differs (-want +got):\n%s", tc.wire, diff)
			}
		})
	}
}

func TestBadBytesAreRefused(t *testing.T) {
	t.Parallel()
	for name, wire := range map[string][]byte{
		"nothing":                       {},
		"unknown code":                  {0x99},
		"cut number":                    {0x70, 0, 0},
		"cut string":                    {0xa1, 9, 'x'},
		"string that is not UTF-8":      {0xa1, 1, 0xff},
		"boolean of two":                {0x56, 2},
		"huge binary":                   {0xb0, 0xff, 0xff, 0xff, 0xff},
		"more elements than bytes":      {0xd0, 0, 0, 0, 5, 0x7f, 0xff, 0xff, 0xff, 0x40},
		"bytes left in a list":          {0xc0, 3, 1, 0x41, 0x42},
		"map without the last value":    {0xc1, 2, 1, 0x41},
		"four billion times nothing":    {0xf0, 0, 0, 0, 5, 0x7f, 0xff, 0xff, 0xff, 0x40},
		"array of described values":     {0xe0, 4, 1, 0x00, 0x41, 0x41},
		"nesting without end":           bytes.Repeat([]byte{0x00}, 1000),
		"array without its constructor": {0xe0, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if v, _, err := amqp.Decode(wire); !errors.Is(err, amqp.ErrMalformed) {
				t.Errorf("Decode(% x) = %v, error %v; want ErrMalformed", wire, v, err)
			}
		})
	}
}

func TestFramesSurviveTheWire(t *testing.T) {
	t.Parallel()
	want := []amqp.Frame{
		{},
		{Type: amqp.TypeSASL, Code: amqp.SASLInit, Fields: amqp.Fields{amqp.Symbol("ANONYMOUS")}, Payload: []byte{}},
		{Channel: 7, Code: amqp.Transfer, Fields: amqp.Fields{uint32(1), nil, true}, Payload: []byte("payload")},
	}
	var b []byte
	for _, f := range want {
		b = amqp.AppendFrame(b, f)
	}
	r := bytes.NewReader(b)
	for _, f := range want {
		got, err := amqp.ReadFrame(r, 1<<16)
		if err != nil {
			t.Fatalf("ReadFrame = error %v", err)
		}
		if diff := cmp.Diff(f, got); diff != "" {
			t.Errorf("ReadFrame differs (-want +got):\n%s", diff)
		}
	}
	if _, err := amqp.ReadFrame(r, 1<<16); err != io.EOF {
		t.Errorf("ReadFrame at the end = error %v, want io.EOF", err)
	}
	for name, b := range map[string][]byte{
		"longer than the limit": {0, 1, 0, 1, 2, 0, 0, 0},
		"shorter than a header": {0, 0, 0, 7, 2, 0, 0, 0},
		"offset into nowhere":   {0, 0, 0, 8, 9, 0, 0, 0},
		"offset into itself":    {0, 0, 0, 8, 1, 0, 0, 0},
		"no performative":       {0, 0, 0, 9, 2, 0, 0, 0, 0x41},
	} {
		if _, err := amqp.ReadFrame(bytes.NewReader(b), 1<<16); !errors.Is(err, amqp.ErrMalformed) {
			t.Errorf("ReadFrame of a frame that is %s = error %v, want ErrMalformed", name, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, v := range samples() {
		f.Add(amqp.Append(nil, v))
	}
	m := amqp.Reply("id", amqp.Map{{Key: "status-code", Value: int32(200)}}, amqp.Map{})
	f.Add(m.Append(nil))
	f.Add(amqp.AppendFrame(nil, amqp.Frame{Code: amqp.Open, Fields: amqp.Fields{"id"}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if frame, err := amqp.ReadFrame(bytes.NewReader(b), 1<<16); err == nil {
			again, err := amqp.ReadFrame(bytes.NewReader(amqp.AppendFrame(nil, frame)), 1<<20)
			if err != nil {
				t.Fatalf("a frame does not survive: %v", err)
			}
			equal(t, frame, again)
		}
		if m, err := amqp.DecodeMessage(b); err == nil {
			again, err := amqp.DecodeMessage(m.Append(nil))
			if err != nil {
				t.Fatalf("a message does not survive: %v", err)
			}
			equal(t, m, again)
		}
		v, rest, err := amqp.Decode(b)
		if err != nil {
			return
		}
		if len(rest) >= len(b) {
			t.Fatalf("Decode read nothing of % x", b)
		}
		wire := amqp.Append(nil, v)
		again, _, err := amqp.Decode(wire)
		if err != nil {
			t.Fatalf("%#v does not survive: %v", v, err)
		}
		// Bytes, so that a NaN equals itself.
		if !bytes.Equal(wire, amqp.Append(nil, again)) {
			t.Fatalf("%#v became %#v", v, again)
		}
	})
}

func equal(t *testing.T, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }),
		cmp.Comparer(func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) })); diff != "" {
		t.Fatalf("differs (-want +got):\n%s", diff)
	}
}
