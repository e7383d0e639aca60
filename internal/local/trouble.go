package local

import (
	"context"
	"sync"
	"time"

	"jobq/core/fault"
	"jobq/core/port"
)

// tellAgain is how long the store may refuse writes before it is told again.
const tellAgain = 30 * time.Second

// trouble watches the writes that a worker repeats until they succeed, and tells
// when the store does not take them: on a full disk a run would stand still
// without a word. Safe for concurrent use.
type trouble struct {
	tell func(error)
	// telling keeps what is told in order. It may be held for long: somebody reads it.
	telling sync.Mutex

	mu   sync.Mutex
	last error
	told time.Time
}

// watch returns s with its writes watched.
func (t *trouble) watch(s *port.Store) *port.Store {
	watched := *s
	watched.Records = watchedRecords{s.Records, t}
	watched.Outputs = watchedOutputs{s.Outputs, t}
	watched.Finisher = watchedFinisher{s.Finisher, t}
	return &watched
}

// note takes what became of a write and returns it.
func (t *trouble) note(err error) error {
	if t.quiet(err) {
		return err
	}
	t.telling.Lock()
	defer t.telling.Unlock()
	if t.news(err) && t.tell != nil {
		t.tell(err)
	}
	return err
}

// quiet reports whether err says nothing that could be told.
func (t *trouble) quiet(err error) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return err == nil && t.last == nil || err != nil && !fault.CodeOf(err).Transient()
}

// news keeps err and reports whether it is to be told.
func (t *trouble) news(err error) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	switch {
	case err != nil:
		t.last = err
		if !t.told.IsZero() && now.Sub(t.told) < tellAgain {
			return false
		}
		t.told = now
	case t.last == nil:
		return false // another write has told it
	default:
		t.last, t.told = nil, time.Time{}
	}
	return true
}

// present returns the error of the last write, if the store did not take it.
func (t *trouble) present() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}

type watchedRecords struct {
	port.Records
	t *trouble
}

// Change implements port.Records.
func (w watchedRecords) Change(ctx context.Context, k port.RecordKey, r port.Record, ifMatch port.Tag) (port.Tag, error) {
	tag, err := w.Records.Change(ctx, k, r, ifMatch)
	return tag, w.t.note(err)
}

type watchedOutputs struct {
	port.Blobs
	t *trouble
}

// Put implements port.Blobs.
func (w watchedOutputs) Put(ctx context.Context, name string, body []byte) error {
	return w.t.note(w.Blobs.Put(ctx, name, body))
}

type watchedFinisher struct {
	port.Finisher
	t *trouble
}

// Finish implements port.Finisher.
func (w watchedFinisher) Finish(ctx context.Context, f port.Finish) (port.Tag, error) {
	tag, err := w.Finisher.Finish(ctx, f)
	return tag, w.t.note(err)
}
