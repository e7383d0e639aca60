package amqp

import (
	"encoding/binary"
	"fmt"
	"io"
)

// The descriptors of performatives, SASL frames, sections and states.
const (
	Open        uint64 = 0x10
	Begin       uint64 = 0x11
	Attach      uint64 = 0x12
	Flow        uint64 = 0x13
	Transfer    uint64 = 0x14
	Disposition uint64 = 0x15
	Detach      uint64 = 0x16
	End         uint64 = 0x17
	Close       uint64 = 0x18
	Error       uint64 = 0x1d

	Accepted uint64 = 0x24
	Rejected uint64 = 0x25
	Released uint64 = 0x26
	Modified uint64 = 0x27
	Source   uint64 = 0x28
	Target   uint64 = 0x29

	SASLMechanisms uint64 = 0x40
	SASLInit       uint64 = 0x41
	SASLOutcome    uint64 = 0x44
)

// The types of a frame.
const (
	TypeAMQP byte = 0
	TypeSASL byte = 1
)

// frameHeader is the shortest header of a frame.
const frameHeader = 8

// Frame is one frame: a performative with its fields, and what follows it. A
// heartbeat has neither.
type Frame struct {
	Type    byte
	Channel uint16
	Code    uint64
	Fields  Fields
	Payload []byte
}

// Performative returns whether f is more than a heartbeat.
func (f Frame) Performative() bool { return f.Code != 0 }

// AppendFrame writes f behind b.
func AppendFrame(b []byte, f Frame) []byte {
	start := len(b)
	b = append(b, 0, 0, 0, 0, 2, f.Type)
	b = binary.BigEndian.AppendUint16(b, f.Channel)
	if f.Performative() {
		b = Append(b, Described{f.Code, []any(f.Fields)})
	}
	b = append(b, f.Payload...)
	binary.BigEndian.PutUint32(b[start:], uint32(len(b)-start))
	return b
}

// ReadFrame reads one frame of at most limit bytes. Fails with ErrMalformed or
// with the error of r; io.EOF means that r ended between two frames.
func ReadFrame(r io.Reader, limit int) (Frame, error) {
	var head [frameHeader]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return Frame{}, err
	}
	size := uint32At(head[:])
	if size < frameHeader || size > uint32(limit) {
		return Frame{}, fmt.Errorf("%w: a frame of %d bytes, the limit is %d", ErrMalformed, size, limit)
	}
	body := make([]byte, size-frameHeader)
	if _, err := io.ReadFull(r, body); err != nil {
		return Frame{}, err
	}
	return parseFrame(head, body)
}

func parseFrame(head [frameHeader]byte, body []byte) (Frame, error) {
	f := Frame{Type: head[5], Channel: binary.BigEndian.Uint16(head[6:])}
	extended := int(head[4])*4 - frameHeader
	if extended < 0 || extended > len(body) {
		return Frame{}, fmt.Errorf("%w: a data offset of %d", ErrMalformed, head[4])
	}
	if body = body[extended:]; len(body) == 0 {
		return f, nil
	}
	value, rest, err := Decode(body)
	if err != nil {
		return Frame{}, err
	}
	code, fields, ok := composite(value)
	if !ok || code == 0 {
		return Frame{}, fmt.Errorf("%w: a frame without a performative", ErrMalformed)
	}
	f.Code, f.Fields, f.Payload = code, fields, rest
	return f, nil
}

// composite splits a described list.
func composite(v any) (uint64, Fields, bool) {
	d, ok := v.(Described)
	if !ok {
		return 0, nil, false
	}
	code, ok := d.Descriptor.(uint64)
	list, isList := d.Value.([]any)
	return code, list, ok && isList
}

// Fields are the fields of a composite type by place. A missing field and one
// of another type read as the zero value, as the specification has defaults for
// nearly all.
type Fields []any

// At returns field i, or nil.
func (f Fields) At(i int) any {
	if i < len(f) {
		return f[i]
	}
	return nil
}

// Uint32 returns field i as a number and whether there is one.
func (f Fields) Uint32(i int) (uint32, bool) {
	v, ok := f.At(i).(uint32)
	return v, ok
}

// Number returns field i, or fallback where there is none.
func (f Fields) Number(i int, fallback uint32) uint32 {
	if v, ok := f.Uint32(i); ok {
		return v
	}
	return fallback
}

// Bool returns field i, false where there is none.
func (f Fields) Bool(i int) bool {
	v, _ := f.At(i).(bool)
	return v
}

// Text returns field i, a string or symbol, empty where there is none.
func (f Fields) Text(i int) string {
	switch v := f.At(i).(type) {
	case string:
		return v
	case Symbol:
		return string(v)
	default:
		return ""
	}
}

// Composite returns field i, a described list, split.
func (f Fields) Composite(i int) (uint64, Fields, bool) { return composite(f.At(i)) }

// Failure returns an error composite.
func Failure(condition, text string) Described {
	return Described{Error, []any{Symbol(condition), text}}
}
