package amqp

import "fmt"

// The descriptors of the sections of a message.
const (
	sectionHeader      uint64 = 0x70
	sectionDelivery    uint64 = 0x71
	sectionAnnotations uint64 = 0x72
	sectionProperties  uint64 = 0x73
	sectionApplication uint64 = 0x74
	sectionData        uint64 = 0x75
	sectionSequence    uint64 = 0x76
	sectionValue       uint64 = 0x77
	sectionFooter      uint64 = 0x78
)

// Message is a message in its sections. Body holds the sections of the body as
// they are on the wire: data, sequences or one value.
type Message struct {
	Header      Fields
	Annotations Map
	Properties  Fields
	Application Map
	Body        []Described
}

// The places of what is used of Message.Header and Message.Properties.
const (
	HeaderTTL           = 2
	HeaderDeliveryCount = 4

	PropertyMessageID     = 0
	PropertyReplyTo       = 4
	PropertyCorrelationID = 5
	propertyCount         = 13
)

// DecodeMessage reads a whole message. Delivery annotations and the footer are
// dropped: they are meant for the next hop. Fails with ErrMalformed.
func DecodeMessage(b []byte) (*Message, error) {
	m := &Message{}
	for len(b) > 0 {
		v, rest, err := Decode(b)
		if err != nil {
			return nil, err
		}
		d, ok := v.(Described)
		if !ok {
			return nil, fmt.Errorf("%w: a message has a section without a descriptor", ErrMalformed)
		}
		if err := m.add(d); err != nil {
			return nil, err
		}
		b = rest
	}
	return m, nil
}

func (m *Message) add(d Described) error {
	code, _ := d.Descriptor.(uint64)
	list, isList := d.Value.([]any)
	pairs, isMap := d.Value.(Map)
	switch {
	case code == sectionHeader && isList:
		m.Header = list
	case code == sectionProperties && isList:
		m.Properties = list
	case code == sectionAnnotations && isMap:
		m.Annotations = pairs
	case code == sectionApplication && isMap:
		m.Application = pairs
	case code == sectionData, code == sectionSequence, code == sectionValue:
		m.Body = append(m.Body, d)
	case code == sectionDelivery, code == sectionFooter:
	default:
		return fmt.Errorf("%w: a message has a section %v of %T", ErrMalformed, d.Descriptor, d.Value)
	}
	return nil
}

// Append writes m behind b.
func (m *Message) Append(b []byte) []byte {
	if m.Header != nil {
		b = Append(b, Described{sectionHeader, []any(m.Header)})
	}
	if m.Annotations != nil {
		b = Append(b, Described{sectionAnnotations, m.Annotations})
	}
	if m.Properties != nil {
		b = Append(b, Described{sectionProperties, []any(m.Properties)})
	}
	if m.Application != nil {
		b = Append(b, Described{sectionApplication, m.Application})
	}
	for _, d := range m.Body {
		b = Append(b, d)
	}
	return b
}

// Data returns the data sections of the body.
func (m *Message) Data() [][]byte {
	var all [][]byte
	for _, d := range m.Body {
		if data, ok := d.Value.([]byte); ok && d.Descriptor == any(sectionData) {
			all = append(all, data)
		}
	}
	return all
}

// Value returns the value of a body that is one.
func (m *Message) Value() any {
	for _, d := range m.Body {
		if d.Descriptor == any(sectionValue) {
			return d.Value
		}
	}
	return nil
}

// ID returns the message id, empty where it is missing or no string.
func (m *Message) ID() string {
	id, _ := m.Properties.At(PropertyMessageID).(string)
	return id
}

// Reply returns an answer that is correlated with the request whose id is
// correlation.
func Reply(correlation any, application Map, value any) *Message {
	properties := make(Fields, propertyCount)
	properties[PropertyCorrelationID] = correlation
	return &Message{
		Properties:  properties,
		Application: application,
		Body:        []Described{{sectionValue, value}},
	}
}

// With returns fields with the value v at place i, of length n at least.
func (f Fields) With(i int, v any, n int) Fields {
	grown := make(Fields, max(len(f), i+1, n))
	copy(grown, f)
	grown[i] = v
	return grown
}
