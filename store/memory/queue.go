package memory

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"jobq/core/fault"
	"jobq/core/port"
)

// queueData is what one queue holds. Every method wants the mutex of the store
// to be held.
type queueData struct {
	name  string
	props port.QueueProps
	// messages is in ascending order of number.
	messages []*message
	// accepted is when each message id was last taken, for deduplication.
	accepted map[string]time.Time
	poison   *queueData
	// source is the queue whose poison queue this is, or nil.
	source *queueData
	// changed is closed when there may be something new to receive.
	changed chan struct{}
}

type message struct {
	number  uint64
	id      string
	body    []byte
	sent    time.Time
	visible time.Time
	// count is the deliveries so far, released those that were given back on
	// purpose: they do not lead towards the delivery limit.
	count, released int
	// receipt numbers what happened to the message; only the newest is valid.
	receipt uint64
	// holder has the message locked until visible, or nil.
	holder *Process
	reason string
}

func (q *queueData) notify() {
	close(q.changed)
	q.changed = make(chan struct{})
}

// free ends the locks of a process that is gone.
func (q *queueData) free(p *Process, now time.Time) {
	for _, m := range q.messages {
		if m.holder == p {
			m.holder = nil
			m.visible = now
		}
	}
}

// settle moves messages that reached the delivery limit to the poison queue.
func (q *queueData) settle(now time.Time) {
	if q.source != nil {
		q.source.settle(now)
	}
	if q.props.DeliveryLimit <= 0 || q.poison == nil {
		return
	}
	for _, m := range slices.Clone(q.messages) {
		if !m.visible.After(now) && m.count-m.released >= q.props.DeliveryLimit {
			q.moveToPoison(m, "delivered "+strconv.Itoa(m.count-m.released)+" times", now)
		}
	}
}

func (q *queueData) moveToPoison(m *message, reason string, now time.Time) {
	q.remove(m)
	m.reason = reason
	m.holder = nil
	m.visible = now
	m.receipt++
	m.count, m.released = 0, 0
	at, _ := q.poison.search(m.number)
	q.poison.messages = slices.Insert(q.poison.messages, at, m)
	q.poison.notify()
}

func (q *queueData) search(number uint64) (int, bool) {
	return slices.BinarySearchFunc(q.messages, number, func(m *message, n uint64) int { return cmp.Compare(m.number, n) })
}

func (q *queueData) remove(m *message) {
	if at, ok := q.search(m.number); ok {
		q.messages = slices.Delete(q.messages, at, at+1)
	}
}

// check says whether m can be sent at all.
func (q *queueData) check(m port.Message) error {
	if limit := q.props.MaxMessage; limit > 0 && len(m.Body) > limit {
		return tooLarge("a message for queue "+q.name, len(m.Body), limit)
	}
	return q.checkDelay(m.Delay)
}

func (q *queueData) checkDelay(delay time.Duration) error {
	if limit := q.props.MaxDelay; limit > 0 && delay > limit {
		return fault.Newf(fault.Invalid, "queue %q delays a message by at most %v, not by %v", q.name, limit, delay)
	}
	return nil
}

// add stores m, which passed check, under number and returns what it made of it,
// nil for a repeat that was dropped.
func (q *queueData) add(m port.Message, number uint64, now time.Time) *message {
	id := cmp.Or(m.ID, "message-"+strconv.FormatUint(number, 10))
	if q.props.Deduplicates {
		if at, ok := q.accepted[id]; ok && now.Sub(at) < q.props.DedupWindow {
			return nil
		}
		q.accepted[id] = now
	}
	made := &message{
		number:  number,
		id:      id,
		body:    bytes.Clone(m.Body),
		sent:    now,
		visible: now.Add(max(m.Delay, 0)),
	}
	q.messages = append(q.messages, made)
	q.notify()
	return made
}

// take locks up to most messages for p. With nothing to take, next is when
// something may become visible, zero for never.
func (q *queueData) take(p *Process, most int, lock time.Duration, now time.Time) (ds []port.Delivery, next time.Time) {
	q.settle(now)
	for _, m := range q.messages {
		if m.visible.After(now) {
			if next.IsZero() || m.visible.Before(next) {
				next = m.visible
			}
			continue
		}
		if len(ds) == most {
			break
		}
		m.count++
		m.receipt++
		m.holder = p
		m.visible = now.Add(lock)
		d := m.delivery()
		d.Receipt = m.receiptText()
		d.Until = m.visible
		ds = append(ds, d)
	}
	return ds, next
}

func (m *message) delivery() port.Delivery {
	return port.Delivery{ID: m.id, Body: bytes.Clone(m.body), Count: m.count, Sent: m.sent, Reason: m.reason}
}

func (m *message) receiptText() string {
	return strconv.FormatUint(m.number, 10) + "." + strconv.FormatUint(m.receipt, 10)
}

// held returns the message that receipt belongs to, or nil when it is gone.
// Fails with fault.LeaseLost when receipt is not the newest.
func (q *queueData) held(receipt string) (*message, error) {
	text, _, _ := strings.Cut(receipt, ".")
	number, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return nil, fault.Newf(fault.Invalid, "%q is not a receipt of queue %q", receipt, q.name)
	}
	at, ok := q.search(number)
	if !ok {
		return nil, nil
	}
	if m := q.messages[at]; m.receiptText() == receipt {
		return m, nil
	}
	return nil, fault.Newf(fault.LeaseLost, "a message of queue %q was taken over by another receiver", q.name)
}

// mustHold is held for callers that need the message to be there.
func (q *queueData) mustHold(receipt string) (*message, error) {
	m, err := q.held(receipt)
	if err == nil && m == nil {
		err = fault.Newf(fault.LeaseLost, "a message of queue %q is gone", q.name)
	}
	return m, err
}
