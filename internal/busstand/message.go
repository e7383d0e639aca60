package busstand

import (
	"math"
	"slices"
	"time"

	"jobq/internal/busstand/amqp"
)

// state is where a message is in its life. Numbers are those of the wire.
type state int32

const (
	active    state = 0
	deferred  state = 1
	scheduled state = 2
	// locked is active on the wire.
	locked state = 3
)

// message is a message in a queue. The mutex of the server guards it.
type message struct {
	queue    *queue
	content  *amqp.Message
	sequence int64
	state    state
	enqueued time.Time
	// due is when a scheduled message becomes active and when a lock ends.
	due time.Time
	// expires is zero for a message that lives for ever.
	expires time.Time
	// failed is the number of deliveries that ended without success.
	failed uint32
	token  amqp.UUID
	// source is the queue that a dead letter comes from.
	source string
	// version changes with every change of state, so that old deadlines are known.
	version int
}

const (
	annotationScheduled = amqp.Symbol("x-opt-scheduled-enqueue-time")
	annotationLocked    = amqp.Symbol("x-opt-locked-until")
	annotationEnqueued  = amqp.Symbol("x-opt-enqueued-time")
	annotationSequence  = amqp.Symbol("x-opt-sequence-number")
	annotationOriginal  = amqp.Symbol("x-opt-enqueue-sequence-number")
	annotationState     = amqp.Symbol("x-opt-message-state")
	annotationSource    = amqp.Symbol("x-opt-deadletter-source")

	propertyReason      = "DeadLetterReason"
	propertyDescription = "DeadLetterErrorDescription"
)

// wire returns m as a receiver sees it.
func (m *message) wire() []byte {
	content := *m.content
	ttl := any(uint32(math.MaxUint32))
	if v, ok := content.Header.Uint32(amqp.HeaderTTL); ok {
		ttl = v
	}
	const headerFields = 5
	content.Header = content.Header.With(amqp.HeaderTTL, ttl, headerFields).With(amqp.HeaderDeliveryCount, m.failed, headerFields)
	if content.Properties == nil {
		content.Properties = amqp.Fields{nil}
	}
	shown := m.state
	if shown == locked {
		shown = active
	}
	content.Annotations = slices.Clone(content.Annotations).
		Set(annotationSequence, m.sequence).
		Set(annotationOriginal, m.sequence).
		Set(annotationEnqueued, timestamp(m.enqueued)).
		Set(annotationState, int32(shown))
	if m.state == locked {
		content.Annotations = content.Annotations.Set(annotationLocked, timestamp(m.due))
	}
	if m.source != "" {
		content.Annotations = content.Annotations.Set(annotationSource, m.source)
	}
	return content.Append(nil)
}

// scheduledFor returns the time that the sender asked for, zero for now.
func scheduledFor(content *amqp.Message) time.Time {
	v, _ := content.Annotations.Get(string(annotationScheduled))
	if at, ok := v.(amqp.Timestamp); ok {
		return time.UnixMilli(int64(at))
	}
	return time.Time{}
}

func timestamp(t time.Time) amqp.Timestamp { return amqp.Timestamp(t.UnixMilli()) }

// tag returns a lock token as the delivery tag that carries it: a GUID of .NET,
// whose first three parts are little-endian.
func tag(token amqp.UUID) []byte {
	return []byte{
		token[3], token[2], token[1], token[0], token[5], token[4], token[7], token[6],
		token[8], token[9], token[10], token[11], token[12], token[13], token[14], token[15],
	}
}
