package logs

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"jobq/core/fault"
)

// CloseBound is how long Close may take: somebody waits for the end.
const CloseBound = appendBound

const (
	// chunk is the size at which collected output is stored at once.
	chunk = 64 << 10
	// every is how long output may wait to be stored.
	every = time.Second
	// maxKept bounds what a store that did not answer still gets.
	maxKept = 4 << 20
	// appendBound is how long storing one chunk may take.
	appendBound = 10 * time.Second
	// firstPause and longestPause lie between the tries of Close.
	firstPause   = 50 * time.Millisecond
	longestPause = time.Second
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
	store func(data []byte, bound time.Duration) error
	line  LineFunc

	// storing holds an entry while somebody stores; kept is his.
	storing chan struct{}
	kept    backlog
	// failed says that the store did not take the last chunk.
	failed atomic.Bool
	// stored says that the store took something.
	stored atomic.Bool

	mu      sync.Mutex
	fresh   backlog
	timer   *time.Timer
	closed  bool
	writers []*lines
	// ticks is the timer that was started and has not run to its end.
	ticks sync.WaitGroup
}

// New returns a Stream that stores under name. It makes no call before there is
// output. The end of ctx does not end the stream: output comes until the
// command is gone. line may be nil.
func New(ctx context.Context, to Appender, name string, line LineFunc) *Stream {
	live := context.WithoutCancel(ctx)
	return &Stream{
		line:    line,
		storing: make(chan struct{}, 1),
		store: func(data []byte, bound time.Duration) error {
			bounded, cancel := context.WithTimeout(live, bound)
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
// something could not be stored; Late may store that later. It may be called once,
// after the last write.
func (s *Stream) Close() error {
	end := time.Now().Add(CloseBound)
	s.mu.Lock()
	s.closed = true
	if s.timer != nil && s.timer.Stop() {
		s.ticks.Done()
	}
	writers := s.writers
	s.mu.Unlock()
	s.ticks.Wait()
	for _, w := range writers {
		w.end()
	}
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		err := s.flush(true, time.Until(end))
		if err == nil || !fault.CodeOf(err).Transient() || time.Until(end) <= pause {
			return err
		}
		time.Sleep(pause)
	}
}

func (s *Stream) add(p []byte) {
	s.mu.Lock()
	s.fresh.add(p)
	full := len(s.fresh.data) >= chunk
	if !full {
		s.startTimer()
	}
	s.mu.Unlock()
	if full {
		s.flush(false, appendBound) // a failure stays for the next tick
	}
}

// startTimer makes sure that what waits is stored within a second. mu is held.
func (s *Stream) startTimer() {
	if s.timer == nil && !s.closed {
		s.ticks.Add(1)
		s.timer = time.AfterFunc(every, s.tick)
	}
}

// tick stores what has waited, and comes again while something waits.
func (s *Stream) tick() {
	defer s.ticks.Done()
	err := s.flush(true, appendBound)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer = nil
	if err != nil || len(s.fresh.data) > 0 {
		s.startTimer()
	}
}

// flush stores everything that is there. After a failure only a caller who
// insists tries again, and nobody else waits for him, so that a store that is
// away does not hold the command. One that is merely slow does: then nothing is
// lost. bound is that of the one call of the store.
func (s *Stream) flush(insist bool, bound time.Duration) error {
	if !insist && s.failed.Load() {
		s.mu.Lock()
		s.startTimer()
		s.mu.Unlock()
		return nil
	}
	s.storing <- struct{}{}
	defer func() { <-s.storing }()
	s.mu.Lock()
	s.kept.move(&s.fresh)
	s.mu.Unlock()
	if len(s.kept.data) == 0 {
		return nil
	}
	err := s.store(s.kept.bytes(), bound)
	s.failed.Store(err != nil)
	if err == nil {
		s.kept = backlog{}
		s.stored.Store(true)
	}
	return err
}
