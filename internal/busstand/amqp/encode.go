package amqp

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Append writes v behind b. The types are those of Decode; int and time.Time
// are not among them on purpose, since peers check types. Panics for another
// type: what is written is made by this program or was decoded.
func Append(b []byte, v any) []byte {
	if code, ok := constructor(v); ok {
		return appendBody(append(b, code), code, v)
	}
	d := v.(Described)
	b = append(b, codeDescribed)
	// Clients read the descriptor of a performative in its short form alone.
	if code, ok := d.Descriptor.(uint64); ok && code <= math.MaxUint8 {
		return Append(append(b, codeSmallUlong, byte(code)), d.Value)
	}
	return Append(Append(b, d.Descriptor), d.Value)
}

// constructor returns the code that v is written with, alone or in an array;
// false for a described value, which has none.
func constructor(v any) (byte, bool) {
	switch v := v.(type) {
	case nil:
		return codeNull, true
	case bool:
		return codeBoolean, true
	case uint8:
		return codeUbyte, true
	case int8:
		return codeByte, true
	case uint16:
		return codeUshort, true
	case int16:
		return codeShort, true
	case uint32:
		return codeUint, true
	case int32:
		return codeInt, true
	case uint64:
		return codeUlong, true
	case int64:
		return codeLong, true
	case float32:
		return codeFloat, true
	case float64:
		return codeDouble, true
	case Char:
		return codeChar, true
	case Timestamp:
		return codeTimestamp, true
	case UUID:
		return codeUUID, true
	case Decimal:
		return v.Constructor, true
	case []byte:
		return codeBinary32, true
	case string:
		return codeString32, true
	case Symbol:
		return codeSymbol32, true
	case []any:
		return codeList32, true
	case Map:
		return codeMap32, true
	case Array:
		return codeArray32, true
	case Described:
		return 0, false
	default:
		panic(fmt.Sprintf("amqp: no type for %T", v))
	}
}

func appendBody(b []byte, code byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return b
	case bool:
		if v {
			return append(b, 1)
		}
		return append(b, 0)
	case uint8:
		return append(b, v)
	case int8:
		return append(b, byte(v))
	case uint16:
		return binary.BigEndian.AppendUint16(b, v)
	case int16:
		return binary.BigEndian.AppendUint16(b, uint16(v))
	case uint32:
		return binary.BigEndian.AppendUint32(b, v)
	case int32:
		return binary.BigEndian.AppendUint32(b, uint32(v))
	case uint64:
		return binary.BigEndian.AppendUint64(b, v)
	case int64:
		return binary.BigEndian.AppendUint64(b, uint64(v))
	case float32:
		return binary.BigEndian.AppendUint32(b, math.Float32bits(v))
	case float64:
		return binary.BigEndian.AppendUint64(b, math.Float64bits(v))
	case Char:
		return binary.BigEndian.AppendUint32(b, uint32(v))
	case Timestamp:
		return binary.BigEndian.AppendUint64(b, uint64(v))
	case UUID:
		return append(b, v[:]...)
	case Decimal:
		return append(b, v.Bytes...)
	case []byte:
		return append(binary.BigEndian.AppendUint32(b, uint32(len(v))), v...)
	case string:
		return append(binary.BigEndian.AppendUint32(b, uint32(len(v))), v...)
	case Symbol:
		return append(binary.BigEndian.AppendUint32(b, uint32(len(v))), v...)
	case []any:
		return appendCompound(b, len(v), func(b []byte) []byte {
			for _, item := range v {
				b = Append(b, item)
			}
			return b
		})
	case Map:
		return appendCompound(b, 2*len(v), func(b []byte) []byte {
			for _, e := range v {
				b = Append(Append(b, e.Key), e.Value)
			}
			return b
		})
	case Array:
		return appendCompound(b, len(v), func(b []byte) []byte { return appendArray(b, v) })
	default:
		panic(fmt.Sprintf("amqp: no body for %T with the code %#x", v, code))
	}
}

// appendCompound writes size and count around what items writes.
func appendCompound(b []byte, count int, items func([]byte) []byte) []byte {
	start := len(b)
	b = binary.BigEndian.AppendUint32(b, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(count))
	b = items(b)
	binary.BigEndian.PutUint32(b[start:], uint32(len(b)-start-4))
	return b
}

// appendArray writes the constructor that all items share, then the items.
func appendArray(b []byte, items Array) []byte {
	code := byte(codeNull)
	if len(items) > 0 {
		code, _ = constructor(items[0])
	}
	b = append(b, code)
	for _, item := range items {
		b = appendBody(b, code, item)
	}
	return b
}
