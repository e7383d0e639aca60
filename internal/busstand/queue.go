package busstand

import (
	"container/heap"
	"crypto/rand"
	"fmt"
	"slices"
	"time"

	"jobq/internal/busstand/amqp"
)

// QueueConfig is how a queue behaves. Zero fields have the defaults that the
// service has.
type QueueConfig struct {
	// Lock is how long a delivery is locked; 1 min.
	Lock time.Duration
	// DedupWindow is how long a message id is remembered; 0 for never.
	DedupWindow time.Duration
	// MaxDeliveries is the number of failed deliveries that makes a dead letter; 10.
	MaxDeliveries int
	// MaxMessage is the largest message or batch in bytes; 256 KiB.
	MaxMessage int
}

func (c QueueConfig) withDefaults() QueueConfig {
	if c.Lock <= 0 {
		c.Lock = time.Minute
	}
	if c.MaxDeliveries <= 0 {
		c.MaxDeliveries = 10
	}
	if c.MaxMessage <= 0 {
		c.MaxMessage = 256 << 10
	}
	return c
}

// queue holds messages. The mutex of the server guards it.
type queue struct {
	s      *Server
	name   string
	config QueueConfig
	// dead is the dead-letter queue, nil in one.
	dead     *queue
	last     int64
	messages map[int64]*message
	// order is every sequence number that was given, ascending; those of
	// messages that are gone are dropped when they are the majority.
	order []int64
	// ready has the sequence numbers of active messages, and of some that are no
	// longer active.
	ready numbers
	locks map[amqp.UUID]*message
	// known is when each message id was accepted, oldest first in history.
	known   map[string]time.Time
	history []string
	// receivers take turns.
	receivers []*link
	created   time.Time
}

func newQueue(s *Server, name string, c QueueConfig) *queue {
	q := &queue{s: s, name: name, config: c, messages: map[int64]*message{}, locks: map[amqp.UUID]*message{}, known: map[string]time.Time{}, created: s.now()}
	return q
}

// accept stores a message and reports whether it was new.
func (q *queue) accept(content *amqp.Message) *message {
	now := q.s.now()
	if id := content.ID(); id != "" && q.config.DedupWindow > 0 {
		q.forget(now)
		if _, ok := q.known[id]; ok {
			return nil
		}
		q.known[id] = now
		q.history = append(q.history, id)
	}
	m := &message{queue: q, content: content, enqueued: now}
	if ttl, ok := content.Header.Uint32(amqp.HeaderTTL); ok {
		m.expires = now.Add(time.Duration(ttl) * time.Millisecond)
	}
	q.add(m)
	if at := scheduledFor(content); at.After(now) {
		m.state, m.due = scheduled, at
		q.s.watch(m)
	} else {
		q.activate(m)
	}
	return m
}

// forget drops the ids that are older than the window.
func (q *queue) forget(now time.Time) {
	for len(q.history) > 0 && now.Sub(q.known[q.history[0]]) >= q.config.DedupWindow {
		delete(q.known, q.history[0])
		q.history = q.history[1:]
	}
}

// add gives m the next sequence number.
func (q *queue) add(m *message) {
	q.last++
	m.queue, m.sequence = q, q.last
	q.messages[m.sequence] = m
	q.order = append(q.order, m.sequence)
}

func (q *queue) remove(m *message) {
	delete(q.messages, m.sequence)
	delete(q.locks, m.token)
	m.version++
	if len(q.order) > 64 && len(q.order) > 2*len(q.messages) {
		q.order = slices.DeleteFunc(q.order, func(n int64) bool { return q.messages[n] == nil })
	}
}

func (q *queue) activate(m *message) {
	m.state = active
	m.version++
	heap.Push(&q.ready, m.sequence)
	q.dispatch()
}

// next takes the first active message, or returns nil.
func (q *queue) next() *message {
	for len(q.ready) > 0 {
		m := q.messages[q.ready[0]]
		if m == nil || m.state != active {
			heap.Pop(&q.ready)
			continue
		}
		if !m.expires.IsZero() && !m.expires.After(q.s.now()) {
			q.remove(m)
			continue
		}
		return m
	}
	return nil
}

// dispatch delivers what is active to the receivers that have credit, in turn.
func (q *queue) dispatch() {
	for {
		m := q.next()
		if m == nil {
			return
		}
		at := slices.IndexFunc(q.receivers, func(l *link) bool { return l.canDeliver(m) })
		if at < 0 {
			return
		}
		l := q.receivers[at]
		q.receivers = append(slices.Delete(q.receivers, at, at+1), l)
		heap.Pop(&q.ready)
		if l.deletes {
			q.remove(m)
			l.deliver(m)
			continue
		}
		q.lock(m)
		l.deliver(m)
	}
}

func (q *queue) lock(m *message) {
	m.token = newToken()
	m.state, m.due = locked, q.s.now().Add(q.config.Lock)
	m.version++
	q.locks[m.token] = m
	q.s.watch(m)
}

// renew makes a lock last for its full time from now; false when it is lost.
func (q *queue) renew(token amqp.UUID) (time.Time, bool) {
	m := q.locks[token]
	if m == nil {
		return time.Time{}, false
	}
	m.due = q.s.now().Add(q.config.Lock)
	m.version++
	q.s.watch(m)
	return m.due, true
}

// outcome is how a delivery ends.
type outcome struct {
	kind                kind
	reason, description string
}

type kind int

const (
	complete kind = iota
	abandon
	release
	putOff
	deadLetter
)

// settle ends the delivery with that token; false when the lock is lost.
func (q *queue) settle(token amqp.UUID, o outcome) bool {
	m := q.locks[token]
	if m == nil {
		return false
	}
	delete(q.locks, token)
	switch o.kind {
	case complete:
		q.remove(m)
	case abandon:
		q.fail(m)
	case release:
		q.activate(m)
	case putOff:
		m.state = deferred
		m.version++
	case deadLetter:
		q.bury(m, o.reason, o.description)
	}
	return true
}

// fail counts a delivery without success.
func (q *queue) fail(m *message) {
	delete(q.locks, m.token)
	m.failed++
	if q.dead != nil && int(m.failed) >= q.config.MaxDeliveries {
		q.bury(m, "MaxDeliveryCountExceeded", fmt.Sprintf("Message could not be consumed after %d delivery attempts.", m.failed))
		return
	}
	q.activate(m)
}

func (q *queue) bury(m *message, reason, description string) {
	if q.dead == nil {
		q.activate(m)
		return
	}
	q.remove(m)
	content := *m.content
	content.Application = slices.Clone(content.Application).Set(propertyReason, reason).Set(propertyDescription, description)
	letter := &message{content: &content, enqueued: m.enqueued, source: q.name}
	q.dead.add(letter)
	q.dead.activate(letter)
}

// end is called when m.due has come.
func (q *queue) end(m *message) {
	switch m.state {
	case locked:
		q.fail(m)
	case scheduled:
		// It is appended as if it were sent now, with a new sequence number.
		q.remove(m)
		m.enqueued = q.s.now()
		q.add(m)
		q.activate(m)
	}
}

// peek returns up to most messages from a sequence number on.
func (q *queue) peek(from int64, most int) []*message {
	at, _ := slices.BinarySearch(q.order, from)
	var found []*message
	for _, n := range q.order[at:] {
		if m := q.messages[n]; m != nil && len(found) < most {
			found = append(found, m)
		}
	}
	return found
}

// count returns the numbers of active (locked included) and scheduled messages.
func (q *queue) count() (now, later int) {
	for _, m := range q.messages {
		if m.state == scheduled {
			later++
		} else {
			now++
		}
	}
	return now, later
}

func newToken() amqp.UUID {
	var token amqp.UUID
	// crypto/rand never fails: it ends the program instead.
	_, _ = rand.Read(token[:])
	return token
}

// numbers is a heap with the smallest number first.
type numbers []int64

func (n numbers) Len() int           { return len(n) }
func (n numbers) Less(i, j int) bool { return n[i] < n[j] }
func (n numbers) Swap(i, j int)      { n[i], n[j] = n[j], n[i] }
func (n *numbers) Push(x any)        { *n = append(*n, x.(int64)) }

func (n *numbers) Pop() any {
	old := *n
	last := old[len(old)-1]
	*n = old[:len(old)-1]
	return last
}

// deadline is a moment at which a message changes by itself.
type deadline struct {
	at      time.Time
	m       *message
	version int
}

// deadlines is a heap with the earliest first.
type deadlines []deadline

func (d deadlines) Len() int           { return len(d) }
func (d deadlines) Less(i, j int) bool { return d[i].at.Before(d[j].at) }
func (d deadlines) Swap(i, j int)      { d[i], d[j] = d[j], d[i] }
func (d *deadlines) Push(x any)        { *d = append(*d, x.(deadline)) }

func (d *deadlines) Pop() any {
	old := *d
	last := old[len(old)-1]
	*d = old[:len(old)-1]
	return last
}
