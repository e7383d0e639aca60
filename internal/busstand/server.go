package busstand

import (
	"bufio"
	"bytes"
	"container/heap"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Options says how a server behaves. The zero value is a good one.
type Options struct {
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// CountReleased makes the outcome "released" count as a failed delivery.
	// Whether the service does is not documented.
	CountReleased bool
}

// Server is one namespace. Safe for concurrent use.
type Server struct {
	options Options
	admin   *http.Server
	web     *listener
	wg      sync.WaitGroup

	mu     sync.Mutex
	queues map[string]*queue
	conns  map[*conn]bool
	// listeners is what Serve listens on.
	listeners map[net.Listener]bool
	rules     []*Rule
	calls     map[Op]int
	offset    time.Duration
	watched   deadlines
	alarm     *time.Timer
	closed    bool
}

// New returns a server without queues. The caller closes it.
func New(o Options) *Server {
	s := &Server{
		options: o, web: newListener(), queues: map[string]*queue{}, conns: map[*conn]bool{},
		listeners: map[net.Listener]bool{}, calls: map[Op]int{},
	}
	if s.options.Now == nil {
		s.options.Now = time.Now
	}
	s.admin = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	s.alarm = time.AfterFunc(time.Hour, s.ring)
	return s
}

// Start listens on a free port of the loopback interface and returns the
// connection string for it.
func (s *Server) Start() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	s.wg.Go(func() { s.Serve(l) })
	return ConnectionString(l.Addr().String()), nil
}

// ConnectionString returns the connection string of a server at host:port. The
// key is a made-up one: every key is accepted.
func ConnectionString(address string) string {
	return fmt.Sprintf("Endpoint=sb://%s;SharedAccessKeyName=stand-in;SharedAccessKey=c3RhbmQtaW4=;UseDevelopmentEmulator=true", address)
}

// Serve accepts connections from l until Close. It closes l.
func (s *Server) Serve(l net.Listener) {
	defer l.Close()
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.listeners[l] = true
	s.mu.Unlock()
	s.wg.Go(func() {
		// It ends with http.ErrServerClosed, or with the error of Close.
		_ = s.admin.Serve(s.web)
	})
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		s.wg.Go(func() { s.sort(c) })
	}
}

// sort hands a connection to AMQP or HTTP by its first bytes.
func (s *Server) sort(c net.Conn) {
	r := bufio.NewReader(c)
	start, err := r.Peek(4)
	switch {
	case err != nil:
		c.Close()
	case bytes.Equal(start, []byte("AMQP")):
		s.serve(c, r)
	default:
		s.web.offer(peeked{c, r})
	}
}

// Pipe returns a connection to the server that needs no network, for tests on
// virtual time.
func (s *Server) Pipe() net.Conn {
	client, server := net.Pipe()
	s.wg.Go(func() { s.serve(server, bufio.NewReader(server)) })
	return client
}

// Close ends every connection and waits until nothing of the server runs.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.alarm.Stop()
	for l := range s.listeners {
		l.Close()
	}
	for c := range s.conns {
		c.drop()
	}
	s.mu.Unlock()
	s.web.Close()
	s.admin.Close()
	s.wg.Wait()
}

// CreateQueue makes a queue with its dead-letter queue. An existing one stays.
func (s *Server) CreateQueue(name string, c QueueConfig) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.create(name, c)
}

func (s *Server) create(name string, c QueueConfig) bool {
	key := strings.ToLower(name)
	if s.queues[key] != nil {
		return false
	}
	q := newQueue(s, name, c.withDefaults())
	q.dead = newQueue(s, name+"/$DeadLetterQueue", QueueConfig{Lock: q.config.Lock, MaxMessage: q.config.MaxMessage}.withDefaults())
	s.queues[key] = q
	s.queues[key+deadLetterSuffix] = q.dead
	return true
}

// DeleteQueue removes a queue with its messages and detaches its links.
func (s *Server) DeleteQueue(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delete(name)
}

func (s *Server) delete(name string) bool {
	key := strings.ToLower(name)
	if s.queues[key] == nil {
		return false
	}
	delete(s.queues, key)
	delete(s.queues, key+deadLetterSuffix)
	s.detachAll(key, conditionNotFound)
	return true
}

// Advance moves the clock of the server, so that locks end and scheduled
// messages become due.
func (s *Server) Advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.offset += d
	s.wake()
}

// now is the time of the server. The mutex is held, as in all that follows.
func (s *Server) now() time.Time { return s.options.Now().Add(s.offset) }

// watch makes m.queue.end be called at m.due, unless m changes before.
func (s *Server) watch(m *message) {
	heap.Push(&s.watched, deadline{m.due, m, m.version})
	s.alarm.Reset(max(0, s.watched[0].at.Sub(s.now())))
}

func (s *Server) ring() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wake()
}

// wake ends what is due and sets the alarm for what comes next.
func (s *Server) wake() {
	for !s.closed && len(s.watched) > 0 {
		first := s.watched[0]
		if wait := first.at.Sub(s.now()); wait > 0 {
			s.alarm.Reset(wait)
			return
		}
		heap.Pop(&s.watched)
		if first.m.version == first.version {
			first.m.queue.end(first.m)
		}
	}
}

// later calls f with the mutex held after d, unless the server is closed then.
func (s *Server) later(d time.Duration, f func()) {
	if d <= 0 {
		f()
		return
	}
	time.AfterFunc(d, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.closed {
			f()
		}
	})
}

// peeked is a connection whose first bytes are in a reader.
type peeked struct {
	net.Conn
	r *bufio.Reader
}

func (p peeked) Read(b []byte) (int, error) { return p.r.Read(b) }

// listener hands connections that are already accepted to an HTTP server.
type listener struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newListener() *listener {
	return &listener{conns: make(chan net.Conn), done: make(chan struct{})}
}

func (l *listener) offer(c net.Conn) {
	select {
	case l.conns <- c:
	case <-l.done:
		c.Close()
	}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

func (l *listener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }
