package speed

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"jobq/core/port"
)

// calls counts what one side asked of its store: calls, and the messages in them.
type calls struct {
	receives, saves, sends, deletes int
	received, sent, deleted         int
}

// feeder counts calls and fills the inbox whenever everything in it was received,
// off the clock: no counted call begins while it does.
type feeder struct {
	tb    testing.TB
	store *port.Store
	inbox string
	most  int

	mu     sync.RWMutex // held by calls for reading
	bodies [][]byte     // still to be put
	off    time.Duration

	count   sync.Mutex
	calls   calls
	waiting int // put and not received
}

// wrap returns the store that the measured side works on.
func (f *feeder) wrap() *port.Store {
	s := *f.store
	s.States = states{f.store.States, f}
	s.Queues = queues{f.store.Queues, f}
	return &s
}

func (f *feeder) tally(add func(*calls)) {
	f.count.Lock()
	defer f.count.Unlock()
	add(&f.calls)
}

// fill puts the next messages, and takes away what was sent for workers.
func (f *feeder) fill(ctx context.Context) {
	f.count.Lock()
	waiting := f.waiting
	f.count.Unlock()
	if waiting > 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.bodies) == 0 {
		return
	}
	start := time.Now()
	if _, err := f.store.Queues.Queue(taskQueue).Clear(ctx); err != nil {
		f.tb.Error(err)
	}
	n := min(f.most, len(f.bodies))
	for chunk := range slices.Chunk(f.bodies[:n], 100) {
		messages := make([]port.Message, len(chunk))
		for i, body := range chunk {
			messages[i].Body = body
		}
		if errs := f.store.Queues.Queue(f.inbox).Send(ctx, messages); errs != nil {
			f.tb.Errorf("completions cannot be put: %v", errs)
		}
	}
	f.bodies = f.bodies[n:]
	f.count.Lock()
	f.waiting = n
	f.count.Unlock()
	f.off += time.Since(start)
}

// clock returns the time that f takes for work, without that for filling.
func (f *feeder) clock(work func()) time.Duration {
	start := time.Now()
	work()
	f.mu.RLock()
	defer f.mu.RUnlock()
	return time.Since(start) - f.off
}

type states struct {
	port.States
	f *feeder
}

func (s states) Save(ctx context.Context, wf string, doc []byte, ifMatch port.Tag) (port.Tag, error) {
	s.f.mu.RLock()
	defer s.f.mu.RUnlock()
	s.f.tally(func(c *calls) { c.saves++ })
	return s.States.Save(ctx, wf, doc, ifMatch)
}

type queues struct {
	port.Queues
	f *feeder
}

func (q queues) Queue(name string) port.Queue { return queue{q.Queues.Queue(name), q.f} }

type queue struct {
	port.Queue
	f *feeder
}

func (q queue) Receive(ctx context.Context, o port.ReceiveOptions) ([]port.Delivery, error) {
	q.f.fill(ctx)
	q.f.mu.RLock()
	defer q.f.mu.RUnlock()
	ds, err := q.Queue.Receive(ctx, o)
	q.f.tally(func(c *calls) { c.receives++; c.received += len(ds); q.f.waiting -= len(ds) })
	return ds, err
}

func (q queue) Send(ctx context.Context, messages []port.Message) []error {
	q.f.mu.RLock()
	defer q.f.mu.RUnlock()
	q.f.tally(func(c *calls) { c.sends++; c.sent += len(messages) })
	return q.Queue.Send(ctx, messages)
}

func (q queue) Acknowledge(ctx context.Context, ds []port.Delivery) []error {
	q.f.mu.RLock()
	defer q.f.mu.RUnlock()
	q.f.tally(func(c *calls) { c.deletes++; c.deleted += len(ds) })
	return q.Queue.Acknowledge(ctx, ds)
}
