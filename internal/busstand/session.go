package busstand

import (
	"maps"
	"slices"

	"jobq/internal/busstand/amqp"
)

// window is how many transfers the server takes before it must hear more.
const window = 5000

// session is one session of a connection.
type session struct {
	conn    *conn
	channel uint16
	links   map[uint32]*link
	// nextIn counts the transfers that came, sinceFlow those that the client was
	// not told about.
	nextIn    uint32
	sinceFlow uint32
	// nextOut numbers the transfers that go out, room is how many may.
	nextOut, room uint32
	nextDelivery  uint32
	// unsettled is what was delivered and not settled by the client.
	unsettled map[uint32]delivery
}

// delivery is a message in the hands of a client.
type delivery struct {
	queue *queue
	token amqp.UUID
}

func begin(k *conn, f amqp.Frame) *session {
	s := &session{
		conn: k, channel: f.Channel, links: map[uint32]*link{}, unsettled: map[uint32]delivery{},
		nextIn: f.Fields.Number(1, 0), room: f.Fields.Number(2, window),
	}
	k.send(f.Channel, amqp.Begin, f.Channel, s.nextOut, uint32(window), uint32(window), uint32(1<<20))
	return s
}

// end forgets the session. Locks of its deliveries stay until they end.
func (s *session) end() {
	for _, l := range s.links {
		l.forget()
	}
	delete(s.conn.sessions, s.channel)
}

func (s *session) send(code uint64, fields ...any) { s.conn.send(s.channel, code, fields...) }

func (s *session) handle(f amqp.Frame) {
	switch f.Code {
	case amqp.End:
		s.end()
		s.send(amqp.End)
		return
	case amqp.Attach:
		s.attach(f.Fields)
		return
	case amqp.Disposition:
		s.disposition(f.Fields)
		return
	case amqp.Flow:
		s.flow(f.Fields)
		return
	}
	handle, _ := f.Fields.Uint32(0)
	l := s.links[handle]
	switch {
	case f.Code == amqp.Transfer:
		s.nextIn++
		s.sinceFlow++
		if l != nil {
			l.transfer(f.Fields, f.Payload)
		}
		if s.sinceFlow >= window/2 {
			s.tell(nil)
		}
	case f.Code == amqp.Detach && l != nil:
		l.forget()
		s.send(amqp.Detach, handle, true)
	}
}

// flow takes what the client has room for, of the session and maybe of a link.
func (s *session) flow(f amqp.Fields) {
	seen := f.Number(0, 0)
	s.room = seen + f.Number(1, window) - s.nextOut
	if handle, ok := f.Uint32(4); ok {
		if l := s.links[handle]; l != nil {
			l.flow(f)
		}
	} else if f.Bool(9) {
		s.tell(nil)
	}
	for _, handle := range slices.Sorted(maps.Keys(s.links)) {
		if l := s.links[handle]; l != nil {
			l.resume()
		}
	}
}

// tell sends the state of the session and of a link, if given.
func (s *session) tell(l *link) {
	s.sinceFlow = 0
	fields := []any{s.nextIn, uint32(window), s.nextOut, uint32(window)}
	if l != nil {
		fields = append(fields, l.handle, l.count, l.credit, uint32(0), l.drain)
	}
	s.send(amqp.Flow, fields...)
}

// frames returns how many transfers a payload needs.
func (s *session) frames(payload int) uint32 {
	room := s.conn.frame - transferOverhead
	return uint32(max(1, (payload+room-1)/room))
}

// transferOverhead is more than a transfer takes beside its payload.
const transferOverhead = 512

// transfer sends a message in as many frames as it needs and returns its
// delivery id.
func (s *session) transfer(l *link, tag, payload []byte, settled bool) uint32 {
	id := s.nextDelivery
	s.nextDelivery++
	size := s.conn.frame - transferOverhead
	for first := true; first || len(payload) > 0; first = false {
		part := payload[:min(size, len(payload))]
		payload = payload[len(part):]
		fields := amqp.Fields{l.handle, nil, nil, nil, nil, len(payload) > 0}
		if first {
			fields = amqp.Fields{l.handle, id, tag, uint32(0), settled, len(payload) > 0}
		}
		s.conn.out.frame(amqp.Frame{Channel: s.channel, Code: amqp.Transfer, Fields: fields, Payload: part})
		s.nextOut++
		s.room--
	}
	return id
}

// disposition is how the client settles deliveries.
func (s *session) disposition(f amqp.Fields) {
	if !f.Bool(0) {
		// Of messages that the client sent; the server settles those at once.
		return
	}
	first := f.Number(1, 0)
	last := f.Number(2, first)
	settled := f.Bool(3)
	o, ok := parseOutcome(f, s.conn.s.options.CountReleased)
	if !ok {
		return
	}
	for _, id := range s.between(first, last) {
		d := s.unsettled[id]
		delete(s.unsettled, id)
		s.settle(id, d, o, f.At(4), settled)
	}
}

// between returns the unsettled deliveries of a range that a client may make as
// wide as it likes.
func (s *session) between(first, last uint32) []uint32 {
	if first == last {
		if _, ok := s.unsettled[first]; ok {
			return []uint32{first}
		}
		return nil
	}
	ids := slices.Sorted(maps.Keys(s.unsettled))
	return slices.DeleteFunc(ids, func(id uint32) bool { return id-first > last-first })
}

func (s *session) settle(id uint32, d delivery, o outcome, state any, settled bool) {
	found := true
	lost := func(condition string) {
		s.send(amqp.Disposition, false, id, id, true, amqp.Described{Descriptor: amqp.Rejected, Value: []any{amqp.Failure(condition, "the lock is gone")}})
	}
	s.conn.s.apply(call{
		op: OpSettle, queue: d.queue.name, conn: s.conn,
		do: func() { found = d.queue.settle(d.token, o) && found },
		answer: func() {
			switch {
			case settled:
			case !found:
				lost(conditionLockLost)
			case o.kind == deadLetter:
				// With its error the client would take it for a refusal.
				s.send(amqp.Disposition, false, id, id, true, amqp.Described{Descriptor: amqp.Rejected, Value: []any{}})
			default:
				s.send(amqp.Disposition, false, id, id, true, state)
			}
		},
		refuse: lost,
	})
}

// parseOutcome reads the state of a disposition. False for one that settles
// nothing.
func parseOutcome(f amqp.Fields, countReleased bool) (outcome, bool) {
	code, fields, ok := f.Composite(4)
	if !ok {
		return outcome{}, false
	}
	switch code {
	case amqp.Accepted:
		return outcome{kind: complete}, true
	case amqp.Released:
		if countReleased {
			return outcome{kind: abandon}, true
		}
		return outcome{kind: release}, true
	case amqp.Modified:
		if fields.Bool(1) {
			return outcome{kind: putOff}, true
		}
		return outcome{kind: abandon}, true
	case amqp.Rejected:
		o := outcome{kind: deadLetter}
		if _, failure, ok := fields.Composite(0); ok {
			info, _ := failure.At(2).(amqp.Map)
			o.reason, o.description = text(info, propertyReason), text(info, propertyDescription)
		}
		return o, true
	default:
		return outcome{}, false
	}
}

func text(m amqp.Map, key string) string {
	v, _ := m.Get(key)
	s, _ := v.(string)
	return s
}
