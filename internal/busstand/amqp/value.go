package amqp

// Symbol is a text of the protocol's own vocabulary.
type Symbol string

// Timestamp is milliseconds since the Unix epoch.
type Timestamp int64

// UUID is a UUID in RFC 4122 byte order.
type UUID [16]byte

// Described is a value with a descriptor that gives it a meaning.
type Described struct {
	Descriptor any
	Value      any
}

// Entry is one key of a Map with its value.
type Entry struct{ Key, Value any }

// Map is a map in the order of the wire.
type Map []Entry

// Get returns the value of a key that is a string or a symbol of that text.
func (m Map) Get(key string) (any, bool) {
	for _, e := range m {
		if e.Key == any(key) || e.Key == any(Symbol(key)) {
			return e.Value, true
		}
	}
	return nil, false
}

// Set gives key a value, in its place where it has one.
func (m Map) Set(key, value any) Map {
	for i, e := range m {
		if e.Key == key {
			m[i].Value = value
			return m
		}
	}
	return append(m, Entry{key, value})
}

// Array is a list of values of one type.
type Array []any

// Decimal is a decimal number that is carried but not understood: its
// constructor and its bytes.
type Decimal struct {
	Constructor byte
	Bytes       string
}

// The format codes of the specification, part 1.6.
const (
	codeDescribed  = 0x00
	codeNull       = 0x40
	codeTrue       = 0x41
	codeFalse      = 0x42
	codeUint0      = 0x43
	codeUlong0     = 0x44
	codeList0      = 0x45
	codeUbyte      = 0x50
	codeByte       = 0x51
	codeSmallUint  = 0x52
	codeSmallUlong = 0x53
	codeSmallInt   = 0x54
	codeSmallLong  = 0x55
	codeBoolean    = 0x56
	codeUshort     = 0x60
	codeShort      = 0x61
	codeUint       = 0x70
	codeInt        = 0x71
	codeFloat      = 0x72
	codeChar       = 0x73
	codeDecimal32  = 0x74
	codeUlong      = 0x80
	codeLong       = 0x81
	codeDouble     = 0x82
	codeTimestamp  = 0x83
	codeDecimal64  = 0x84
	codeDecimal128 = 0x94
	codeUUID       = 0x98
	codeBinary8    = 0xa0
	codeString8    = 0xa1
	codeSymbol8    = 0xa3
	codeBinary32   = 0xb0
	codeString32   = 0xb1
	codeSymbol32   = 0xb3
	codeList8      = 0xc0
	codeMap8       = 0xc1
	codeList32     = 0xd0
	codeMap32      = 0xd1
	codeArray8     = 0xe0
	codeArray32    = 0xf0
)
