package logs

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// maxLate bounds the streams of a Late, so that a store that never takes a log costs
// no more than they keep.
const maxLate = 16

// Late stores the ends of streams that their Close could not store. Safe for
// concurrent use.
type Late struct {
	mu      sync.Mutex
	streams []*Stream
	// lost is how many streams were given up for newer ones.
	lost int
	// answers says that the store took something since CatchUp.
	answers atomic.Bool
}

// Close closes s and keeps it where that fails. The error is that of s.
func (l *Late) Close(s *Stream) error {
	err := s.Close()
	switch {
	case err != nil:
		l.keep(s)
	case s.stored.Load():
		l.answers.Store(true)
	}
	return err
}

// CatchUp is Store where the store took something of a stream that was closed since
// the last call. It is not for the time in which somebody waits for a command.
func (l *Late) CatchUp() {
	if l.answers.Swap(false) {
		l.Store()
	}
}

// keep adds s, in the place of the oldest where there are too many.
func (l *Late) keep(s *Stream) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.streams = append(l.streams, s)
	if over := len(l.streams) - maxLate; over > 0 {
		l.streams = slices.Delete(l.streams, 0, over)
		l.lost += over
	}
}

// Store tries to store what is kept, until the first failure and for as long as one
// call may take. It returns how many streams are left or were given up before.
func (l *Late) Store() int {
	end := time.Now().Add(appendBound)
	for {
		s := l.take()
		if s == nil {
			return l.missing()
		}
		if bound := time.Until(end); bound <= 0 || s.flush(true, bound) != nil {
			l.keep(s)
			return l.missing()
		}
	}
}

// take removes one stream and returns it, nil where there is none: no two callers
// store the same.
func (l *Late) take() *Stream {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.streams) == 0 {
		return nil
	}
	s := l.streams[0]
	l.streams = slices.Delete(l.streams, 0, 1)
	return s
}

func (l *Late) missing() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.streams) + l.lost
}
