package logs

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"
)

const (
	// chunk is the size at which collected output is stored at once.
	chunk = 64 << 10
	// every is how long output may wait to be stored.
	every = time.Second
	// maxKept bounds what is kept while the store does not answer.
	maxKept = 4 << 20
	// appendBound is how long storing one chunk may take.
	appendBound = 10 * time.Second
	// closeTries is how often Close tries to store the rest.
	closeTries = 3
)

// Appender adds data to the end of the stream called name.
type Appender interface {
	Append(ctx context.Context, name string, data []byte) error
}

// LineFunc receives one line without its end. The bytes are valid during the
// call only. A line of more than 64 KiB comes in pieces.
type LineFunc func(source string, line []byte)

// Stream collects the output of one command. Its writers may be used by one
// goroutine each at the same time.
type Stream struct {
	store func(data []byte) error
	line  LineFunc

	// storing serialises what goes to the store; kept, lost and failed are its.
	storing sync.Mutex
	kept    []byte
	lost    int
	failed  bool

	mu      sync.Mutex
	fresh   []byte
	timer   *time.Timer
	closed  bool
	writers []*lines
}

// New returns a Stream that stores under name. It makes no call before there is
// output. The end of ctx does not end the stream: output comes until the
// command is gone. line may be nil.
func New(ctx context.Context, to Appender, name string, line LineFunc) *Stream {
	live := context.WithoutCancel(ctx)
	return &Stream{
		line: line,
		store: func(data []byte) error {
			bounded, cancel := context.WithTimeout(live, appendBound)
			defer cancel()
			return to.Append(bounded, name, data)
		},
	}
}

// Writer returns a writer for one source, such as stdout. It never fails.
func (s *Stream) Writer(source string) io.Writer {
	w := &lines{stream: s, source: source}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writers = append(s.writers, w)
	return w
}

// Close stores what is left and ends the stream. The error is the store's, where
// something could not be stored. It may be called once, after the last write.
func (s *Stream) Close() error {
	s.mu.Lock()
	s.closed = true
	if s.timer != nil {
		s.timer.Stop()
	}
	writers := s.writers
	s.mu.Unlock()
	for _, w := range writers {
		w.end()
	}
	var err error
	for range closeTries {
		if err = s.flush(true); err == nil {
			return nil
		}
	}
	return err
}

func (s *Stream) add(p []byte) {
	s.mu.Lock()
	s.fresh = append(s.fresh, p...)
	full := len(s.fresh) >= chunk
	if !full && s.timer == nil && !s.closed {
		s.timer = time.AfterFunc(every, s.tick)
	}
	s.mu.Unlock()
	if full {
		s.flush(false) // a failure stays for the next tick
	}
}

// tick stores what has waited, and comes again while something waits.
func (s *Stream) tick() {
	err := s.flush(true)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer = nil
	if (err != nil || len(s.fresh) > 0) && !s.closed {
		s.timer = time.AfterFunc(every, s.tick)
	}
}

// flush stores everything that is there. After a failure only a caller who
// insists tries again, so that a store that is away does not hold the command.
func (s *Stream) flush(insist bool) error {
	s.storing.Lock()
	defer s.storing.Unlock()
	s.mu.Lock()
	fresh := s.fresh
	s.fresh = nil
	s.mu.Unlock()
	s.keep(fresh)
	if len(s.kept) == 0 || s.failed && !insist {
		return nil
	}
	data := s.kept
	if s.lost > 0 {
		data = append(fmt.Appendf(nil, "[jobq: %d bytes of output were lost here]\n", s.lost), data...)
	}
	err := s.store(data)
	s.failed = err != nil
	if err == nil {
		s.kept, s.lost = nil, 0
	}
	return err
}

// keep adds fresh to what waits for the store and drops the oldest above the bound.
func (s *Stream) keep(fresh []byte) {
	if len(s.kept) == 0 {
		s.kept = fresh
	} else {
		s.kept = append(s.kept, fresh...)
	}
	if over := len(s.kept) - maxKept; over > 0 {
		s.lost += over
		s.kept = append([]byte(nil), s.kept[over:]...)
	}
}
