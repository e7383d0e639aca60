package busstand

import (
	"math"
	"net/http"
	"strings"

	"jobq/internal/busstand/amqp"
)

const (
	// maxPeek is the most messages of one answer to a peek.
	maxPeek = 250
	// maxPeekBytes is about the most bytes of one.
	maxPeekBytes = 256 << 10
)

// answer is the result of a request to a node.
type answer struct {
	status int32
	text   string
	value  any
}

// condition is the condition that goes with the status, empty for success.
func (a answer) condition() string {
	switch a.status {
	case http.StatusUnauthorized:
		return Unauthorized
	case http.StatusNotFound:
		return conditionNotFound
	case http.StatusGone:
		return conditionLockLost
	case http.StatusRequestTimeout:
		return Timeout
	case http.StatusServiceUnavailable:
		return ServerBusy
	default:
		return ""
	}
}

// request handles a message to a management node or the node of tokens.
func (l *link) request(payload []byte) {
	id, settled := l.partialID, l.settled
	r, err := amqp.DecodeMessage(payload)
	if err != nil {
		l.settle(id, settled, amqp.Failure(conditionInvalid, err.Error()))
		return
	}
	l.settle(id, settled, nil)
	var a answer
	l.session.conn.s.apply(call{
		op: operation(r), queue: l.entity, conn: l.session.conn,
		do:     func() { a = l.carryOut(r) },
		answer: func() { l.respond(r, a) },
		refuse: func(condition string) { l.respond(r, answer{status: statusOf(condition), text: condition}) },
	})
}

// statusOf is the status of an answer that refuses for a condition.
func statusOf(condition string) int32 {
	switch condition {
	case Unauthorized:
		return http.StatusUnauthorized
	case conditionNotFound:
		return http.StatusNotFound
	case conditionLockLost:
		return http.StatusGone
	case Timeout:
		return http.StatusRequestTimeout
	default:
		return http.StatusServiceUnavailable
	}
}

var operations = map[string]Op{
	"put-token":                              OpToken,
	"com.microsoft:renew-lock":               OpRenew,
	"com.microsoft:update-disposition":       OpSettle,
	"com.microsoft:peek-message":             OpPeek,
	"com.microsoft:schedule-message":         OpSchedule,
	"com.microsoft:cancel-scheduled-message": OpCancel,
}

func operation(r *amqp.Message) Op { return operations[text(r.Application, "operation")] }

func (l *link) carryOut(r *amqp.Message) answer {
	if l.entity == tokenNode {
		return l.putToken(r)
	}
	q := l.session.conn.s.queues[l.entity]
	if q == nil {
		return answer{status: http.StatusNotFound, text: "the queue is gone"}
	}
	body, _ := r.Value().(amqp.Map)
	switch operation(r) {
	case OpRenew:
		return renewLocks(q, body)
	case OpSettle:
		return updateDisposition(q, body)
	case OpPeek:
		return peekMessages(q, body)
	case OpSchedule:
		return scheduleMessages(q, body)
	case OpCancel:
		return cancelScheduled(q, body)
	default:
		return answer{status: http.StatusBadRequest, text: "an operation that the stand-in does not know"}
	}
}

func (l *link) putToken(r *amqp.Message) answer {
	if operation(r) != OpToken {
		return answer{status: http.StatusBadRequest, text: "an operation that the stand-in does not know"}
	}
	entity, _ := address(text(r.Application, "name"))
	l.session.conn.tokens[entity] = true
	return answer{status: http.StatusAccepted}
}

func lockTokens(body amqp.Map) []amqp.UUID {
	v, _ := body.Get("lock-tokens")
	items, _ := v.(amqp.Array)
	var tokens []amqp.UUID
	for _, item := range items {
		if token, ok := item.(amqp.UUID); ok {
			tokens = append(tokens, token)
		}
	}
	return tokens
}

var lockLost = answer{status: http.StatusGone, text: "the lock is gone"}

func renewLocks(q *queue, body amqp.Map) answer {
	var expirations amqp.Array
	for _, token := range lockTokens(body) {
		until, ok := q.renew(token)
		if !ok {
			return lockLost
		}
		expirations = append(expirations, timestamp(until))
	}
	return answer{status: http.StatusOK, value: amqp.Map{{Key: "expirations", Value: expirations}}}
}

var dispositions = map[string]kind{"completed": complete, "abandoned": abandon, "suspended": deadLetter, "defered": putOff}

func updateDisposition(q *queue, body amqp.Map) answer {
	kind, ok := dispositions[text(body, "disposition-status")]
	if !ok {
		return answer{status: http.StatusBadRequest, text: "a disposition that is not known"}
	}
	for _, token := range lockTokens(body) {
		o := outcome{kind: kind, reason: text(body, "deadletter-reason"), description: text(body, "deadletter-description")}
		if !q.settle(token, o) {
			return lockLost
		}
	}
	return answer{status: http.StatusOK, value: amqp.Map{}}
}

// integer reads a number whose type clients choose by its size.
func integer(m amqp.Map, key string) int64 {
	v, _ := m.Get(key)
	switch n := v.(type) {
	case int64:
		return n
	case int32:
		return int64(n)
	case uint32:
		return int64(n)
	case uint64:
		return int64(min(n, math.MaxInt64))
	default:
		return 0
	}
}

func peekMessages(q *queue, body amqp.Map) answer {
	first, most := integer(body, "from-sequence-number"), integer(body, "message-count")
	messages := []any{}
	size := 0
	for _, m := range q.peek(first, int(min(most, maxPeek))) {
		b := m.wire()
		if size += len(b); size > maxPeekBytes && len(messages) > 0 {
			break
		}
		messages = append(messages, amqp.Map{{Key: "message", Value: b}})
	}
	if len(messages) == 0 {
		return answer{status: http.StatusNoContent}
	}
	return answer{status: http.StatusOK, value: amqp.Map{{Key: "messages", Value: messages}}}
}

func scheduleMessages(q *queue, body amqp.Map) answer {
	v, _ := body.Get("messages")
	items, _ := v.([]any)
	var numbers amqp.Array
	for _, item := range items {
		entry, _ := item.(amqp.Map)
		raw, _ := entry.Get("message")
		b, _ := raw.([]byte)
		content, err := amqp.DecodeMessage(b)
		if err != nil {
			return answer{status: http.StatusBadRequest, text: err.Error()}
		}
		// A duplicate has no number of its own.
		number := int64(0)
		if m := q.accept(content); m != nil {
			number = m.sequence
		}
		numbers = append(numbers, number)
	}
	return answer{status: http.StatusOK, value: amqp.Map{{Key: "sequence-numbers", Value: numbers}}}
}

func cancelScheduled(q *queue, body amqp.Map) answer {
	v, _ := body.Get("sequence-numbers")
	items, _ := v.(amqp.Array)
	for _, item := range items {
		number, _ := item.(int64)
		m := q.messages[number]
		if m == nil || m.state != scheduled {
			return answer{status: http.StatusNotFound, text: "no scheduled message has this number"}
		}
		q.remove(m)
	}
	return answer{status: http.StatusOK, value: amqp.Map{}}
}

// respond sends an answer to where the request wants it.
func (l *link) respond(r *amqp.Message, a answer) {
	k := l.session.conn
	to := k.replies[l.entity+" "+r.Properties.Text(amqp.PropertyReplyTo)]
	if to == nil {
		to = k.anyReply(l.entity)
	}
	if to == nil {
		return
	}
	// Clients look for one or the other spelling, as the service sends both.
	properties := amqp.Map{
		{Key: "status-code", Value: a.status}, {Key: "status-description", Value: a.text},
		{Key: "statusCode", Value: a.status}, {Key: "statusDescription", Value: a.text},
	}
	if condition := a.condition(); condition != "" {
		properties = properties.Set("errorCondition", amqp.Symbol(condition))
	}
	m := amqp.Reply(r.Properties.At(amqp.PropertyMessageID), properties, a.value)
	to.backlog = append(to.backlog, m.Append(nil))
	to.resume()
}

// anyReply finds the reply link of clients that name another address than they
// attached.
func (k *conn) anyReply(entity string) *link {
	for key, l := range k.replies {
		if strings.HasPrefix(key, entity+" ") {
			return l
		}
	}
	return nil
}
