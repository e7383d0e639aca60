package busstand

import (
	"net/url"
	"slices"
	"strings"

	"jobq/internal/busstand/amqp"
)

const (
	// grant is the credit of clients that send.
	grant = 1000

	deadLetterSuffix = "/$deadletterqueue"
	managementSuffix = "/$management"
	tokenNode        = "$cbs"

	batchFormat = 0x80013700
	// maxRequest is how large requests and answers of nodes may be.
	maxRequest = 1 << 20
)

// link is one direction of one address.
type link struct {
	session *session
	name    string
	handle  uint32
	// entity is the queue in lower case, or the node of tokens.
	entity     string
	management bool
	// queue is set where messages of a queue go in or out.
	queue *queue
	// out says that the server is the sender.
	out bool
	// deletes says that what is delivered needs no settling.
	deletes bool
	drain   bool
	// count is the deliveries so far, credit how many more may come.
	count, credit uint32
	// backlog is what waits for credit on a link that carries answers.
	backlog [][]byte
	reply   string
	// partial is what came of a message whose transfer goes on.
	partial   []byte
	partialID uint32
	format    uint32
	settled   bool
}

// address takes an address apart: a path, maybe behind a scheme and a host.
func address(text string) (entity string, management bool) {
	if u, err := url.Parse(text); err == nil && u.Scheme != "" && u.Host != "" {
		text = u.Path
	}
	entity = strings.ToLower(strings.Trim(text, "/"))
	entity, management = strings.CutSuffix(entity, managementSuffix)
	return entity, management || entity == tokenNode
}

func (s *session) attach(f amqp.Fields) {
	handle, _ := f.Uint32(1)
	l := &link{session: s, name: f.Text(0), handle: handle, out: f.Bool(2)}
	place := 6
	if l.out {
		place = 5
	}
	_, node, _ := f.Composite(place)
	l.entity, l.management = address(node.Text(0))
	if mode, ok := f.At(3).(uint8); ok && l.out {
		l.deletes = mode == 1
	}
	if _, target, ok := f.Composite(6); ok && l.out {
		l.reply = target.Text(0)
	}
	s.links[handle] = l
	s.conn.s.apply(call{
		op: OpAttach, queue: l.entity, conn: s.conn,
		do: func() {},
		answer: func() {
			if condition := l.refusal(); condition != "" {
				l.refuse(f, condition)
				return
			}
			l.accept(f)
		},
		refuse: func(condition string) { l.refuse(f, condition) },
	})
}

// refusal is why the client may not have the link, empty where it may.
func (l *link) refusal() string {
	if l.entity == tokenNode {
		return ""
	}
	s := l.session.conn.s
	q := s.queues[l.entity]
	switch {
	case !l.session.conn.mayUse(l.entity):
		return Unauthorized
	case q == nil:
		return conditionNotFound
	case !l.management && !l.out && q.dead == nil:
		return conditionRefused
	}
	if !l.management {
		l.queue = q
	}
	return ""
}

// mayUse says whether a token was put for an entity, what holds it, or all.
func (k *conn) mayUse(entity string) bool {
	for {
		if k.tokens[entity] {
			return true
		}
		if entity == "" {
			return false
		}
		entity = entity[:max(0, strings.LastIndexByte(entity, '/'))]
	}
}

func (l *link) accept(f amqp.Fields) {
	var first any
	if l.out {
		first = uint32(0)
	}
	l.session.send(amqp.Attach, l.name, l.handle, !l.out, f.At(3), f.At(4), f.At(5), f.At(6), nil, nil, first, uint64(l.largest()))
	switch {
	case !l.out:
		l.credit = grant
		l.session.tell(l)
	case l.management:
		l.session.conn.replies[l.entity+" "+l.reply] = l
	default:
		l.queue.receivers = append(l.queue.receivers, l)
	}
}

// largest is how many bytes a message may have.
func (l *link) largest() int {
	if l.queue == nil {
		return maxRequest
	}
	return l.queue.config.MaxMessage
}

// refuse answers an attach with a link to nowhere and ends it.
func (l *link) refuse(f amqp.Fields, condition string) {
	source, target := f.At(5), f.At(6)
	if l.out {
		source = nil
	} else {
		target = nil
	}
	var first any
	if l.out {
		first = uint32(0)
	}
	l.session.send(amqp.Attach, l.name, l.handle, !l.out, f.At(3), f.At(4), source, target, nil, nil, first)
	l.detach(condition, "the stand-in has no such link for this client")
}

func (l *link) detach(condition, text string) {
	l.forget()
	l.session.send(amqp.Detach, l.handle, true, amqp.Failure(condition, text))
}

// forget takes l out of everything that knows it.
func (l *link) forget() {
	delete(l.session.links, l.handle)
	if l.queue != nil {
		l.queue.receivers = slices.DeleteFunc(l.queue.receivers, func(o *link) bool { return o == l })
	}
	if k := l.session.conn; k.replies[l.entity+" "+l.reply] == l {
		delete(k.replies, l.entity+" "+l.reply)
	}
}

// flow takes the credit that a client gives.
func (l *link) flow(f amqp.Fields) {
	if !l.out {
		return
	}
	l.credit = f.Number(5, 0) + f.Number(6, 0) - l.count
	l.drain = f.Bool(8)
	l.resume()
	if l.drain {
		l.count += l.credit
		l.credit = 0
		l.session.tell(l)
		l.drain = false
	} else if f.Bool(9) {
		l.session.tell(l)
	}
}

// resume sends what waits for room or credit.
func (l *link) resume() {
	if l.queue != nil && l.out {
		l.queue.dispatch()
	}
	for len(l.backlog) > 0 && l.credit > 0 && l.session.room >= l.session.frames(len(l.backlog[0])) {
		l.count++
		l.credit--
		token := newToken()
		l.session.transfer(l, token[:], l.backlog[0], true)
		l.backlog = l.backlog[1:]
	}
}

func (l *link) canDeliver(m *message) bool {
	// The message grows by its annotations.
	const annotations = 1024
	size := annotations
	for _, data := range m.content.Data() {
		size += len(data)
	}
	return l.credit > 0 && l.session.room >= l.session.frames(size)
}

func (l *link) deliver(m *message) {
	l.count++
	l.credit--
	id := l.session.transfer(l, tag(m.token), m.wire(), l.deletes)
	if !l.deletes {
		l.session.unsettled[id] = delivery{m.queue, m.token}
	}
}

// transfer takes one frame of a message.
func (l *link) transfer(f amqp.Fields, payload []byte) {
	if l.partial == nil {
		l.partialID = f.Number(1, 0)
		l.format = f.Number(3, 0)
		l.settled = f.Bool(4)
		l.partial = []byte{}
	}
	l.partial = append(l.partial, payload...)
	if len(l.partial) > l.largest() {
		l.detach(conditionTooLarge, "the message is larger than the link allows")
		return
	}
	if f.Bool(5) {
		return
	}
	whole := l.partial
	l.partial = nil
	if l.credit == 0 {
		l.detach(conditionLimit, "more was sent than there was credit for")
		return
	}
	l.count++
	l.credit--
	if l.credit < grant/2 {
		l.credit = grant
		l.session.tell(l)
	}
	if l.management {
		l.request(whole)
	} else {
		l.receive(whole)
	}
}

func (l *link) settle(id uint32, settled bool, failure any) {
	if settled {
		return
	}
	state := amqp.Described{Descriptor: amqp.Accepted, Value: []any{}}
	if failure != nil {
		state = amqp.Described{Descriptor: amqp.Rejected, Value: []any{failure}}
	}
	l.session.send(amqp.Disposition, true, id, id, true, state)
}

// receive stores a message or a batch.
func (l *link) receive(payload []byte) {
	id, settled := l.partialID, l.settled
	contents, err := unpack(payload, l.format)
	if err != nil {
		l.settle(id, settled, amqp.Failure(conditionInvalid, err.Error()))
		return
	}
	l.session.conn.s.apply(call{
		op: OpSend, queue: l.queue.name, conn: l.session.conn,
		do: func() {
			for _, content := range contents {
				l.queue.accept(content)
			}
		},
		answer: func() { l.settle(id, settled, nil) },
		refuse: func(condition string) {
			l.settle(id, settled, amqp.Failure(condition, "the stand-in was told to refuse"))
		},
	})
}

// unpack returns the messages of a transfer: the data sections of a batch are
// whole messages.
func unpack(payload []byte, format uint32) ([]*amqp.Message, error) {
	content, err := amqp.DecodeMessage(payload)
	if err != nil || format != batchFormat {
		return []*amqp.Message{content}, err
	}
	var all []*amqp.Message
	for _, data := range content.Data() {
		m, err := amqp.DecodeMessage(data)
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}
