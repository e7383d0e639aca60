package busstand

import (
	"bufio"
	"io"
	"net"
	"sync"
	"time"

	"jobq/internal/busstand/amqp"
)

const (
	// maxFrame is the largest frame that the server takes and sends.
	maxFrame = 64 << 10
	// minFrame is what every client must take, rounded up for our headers.
	minFrame = 1024
	// heartbeat is how often a frame goes out at least. Clients close a connection
	// that is silent for a minute.
	heartbeat = 20 * time.Second

	protocolAMQP = 0
	protocolSASL = 3
)

// protocol is the header that begins AMQP or SASL.
func protocol(id byte) [8]byte { return [8]byte{'A', 'M', 'Q', 'P', id, 1, 0, 0} }

// conn is one connection. The mutex of the server guards all but out.
type conn struct {
	s   *Server
	net net.Conn
	out *outbox
	// frame is the largest frame that the client takes.
	frame    int
	sessions map[uint16]*session
	// replies is where answers go, by node and reply address.
	replies map[string]*link
	// tokens is the audiences that a token was put for.
	tokens map[string]bool
}

// serve talks to one client until either side ends it.
func (s *Server) serve(c net.Conn, r *bufio.Reader) {
	k := &conn{
		s: s, net: c, out: newOutbox(), frame: maxFrame,
		sessions: map[uint16]*session{}, replies: map[string]*link{}, tokens: map[string]bool{},
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		c.Close()
		return
	}
	s.conns[k] = true
	s.mu.Unlock()

	var writer sync.WaitGroup
	writer.Go(func() { k.out.drain(c, heartbeat) })
	k.read(r)

	s.mu.Lock()
	delete(s.conns, k)
	for _, session := range k.sessions {
		session.end()
	}
	s.mu.Unlock()
	k.out.close()
	writer.Wait()
	c.Close()
}

// drop ends the connection at once: what was not written is lost.
func (k *conn) drop() { k.net.Close() }

// read handles what comes in until the connection ends.
func (k *conn) read(r *bufio.Reader) {
	for {
		var header [8]byte
		if _, err := io.ReadFull(r, header[:]); err != nil {
			return
		}
		k.out.put(header[:])
		switch header {
		case protocol(protocolSASL):
			if !k.authenticate(r) {
				return
			}
		case protocol(protocolAMQP):
			k.frames(r)
			return
		default:
			return
		}
	}
}

// authenticate takes whoever comes: tokens are put later, for each entity.
func (k *conn) authenticate(r *bufio.Reader) bool {
	k.out.frame(amqp.Frame{Type: amqp.TypeSASL, Code: amqp.SASLMechanisms, Fields: amqp.Fields{
		amqp.Array{amqp.Symbol("ANONYMOUS"), amqp.Symbol("PLAIN"), amqp.Symbol("MSSBCBS"), amqp.Symbol("EXTERNAL")},
	}})
	f, err := amqp.ReadFrame(r, maxFrame)
	if err != nil || f.Code != amqp.SASLInit {
		return false
	}
	k.out.frame(amqp.Frame{Type: amqp.TypeSASL, Code: amqp.SASLOutcome, Fields: amqp.Fields{uint8(0)}})
	return true
}

func (k *conn) frames(r *bufio.Reader) {
	for {
		f, err := amqp.ReadFrame(r, maxFrame)
		if err != nil {
			return
		}
		if f.Performative() && !k.locked(f) {
			return
		}
	}
}

// locked is handle with the mutex.
func (k *conn) locked(f amqp.Frame) bool {
	k.s.mu.Lock()
	defer k.s.mu.Unlock()
	return k.handle(f)
}

// handle returns false when the connection is over.
func (k *conn) handle(f amqp.Frame) bool {
	switch f.Code {
	case amqp.Open:
		k.frame = max(minFrame, int(min(f.Fields.Number(2, maxFrame), maxFrame)))
		k.send(0, amqp.Open, "stand-in", nil, uint32(maxFrame), uint16(65535), nil)
		return true
	case amqp.Begin:
		k.sessions[f.Channel] = begin(k, f)
		return true
	case amqp.Close:
		k.send(0, amqp.Close)
		return false
	}
	session := k.sessions[f.Channel]
	if session == nil {
		// What a client sends before it has heard of the end of a session.
		return true
	}
	session.handle(f)
	return true
}

func (k *conn) send(channel uint16, code uint64, fields ...any) {
	k.out.frame(amqp.Frame{Channel: channel, Code: code, Fields: fields})
}

// outbox is what is to be written to a connection. Safe for concurrent use.
type outbox struct {
	mu      sync.Mutex
	pending []byte
	closed  bool
	// wake has room for one signal that there is something to do.
	wake chan struct{}
}

func newOutbox() *outbox { return &outbox{wake: make(chan struct{}, 1)} }

func (o *outbox) frame(f amqp.Frame) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.pending = amqp.AppendFrame(o.pending, f)
	o.signal()
}

func (o *outbox) put(b []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.pending = append(o.pending, b...)
	o.signal()
}

// close makes drain end when all is written.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.signal()
}

func (o *outbox) signal() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

func (o *outbox) take() ([]byte, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	b := o.pending
	o.pending = nil
	return b, o.closed
}

// drain writes to w until the outbox is closed or w fails, and a heartbeat at
// least every interval.
func (o *outbox) drain(w net.Conn, interval time.Duration) {
	beat := time.NewTicker(interval)
	defer beat.Stop()
	for {
		b, closed := o.take()
		if len(b) > 0 {
			if _, err := w.Write(b); err != nil {
				w.Close()
				return
			}
			continue
		}
		if closed {
			return
		}
		select {
		case <-o.wake:
		case <-beat.C:
			o.frame(amqp.Frame{})
		}
	}
}
