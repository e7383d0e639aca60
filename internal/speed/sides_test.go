package speed

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"jobq/core/coord"
	"jobq/core/port"
	"jobq/core/sched"
)

const (
	workflow = "w"
	inbox    = "workflow-completions"

	// These are the coordinator's own: see coord.Options.
	batchSize   = 32
	maxReceives = 64
	lock        = time.Minute
	chunkSize   = 100
)

// measured is what one side did and how long it took.
type measured struct {
	calls
	took time.Duration
	// doc and message are what the side wrote: the last state, and a message to a
	// worker.
	doc     []byte
	message []byte
}

// runCoordinator drains w with a coordinator that has its defaults.
func runCoordinator(tb testing.TB, on bed, w workload) measured {
	tb.Helper()
	ctx := tb.Context()
	f := &feeder{tb: tb, store: on.open(tb), inbox: inbox, most: on.most}
	c := coord.New(f.wrap(), sched.Real{}, coord.Options{Prefix: "speed/speed"})
	if _, err := c.Submit(ctx, coord.Submission{ID: workflow, Definition: w.definition}); err != nil {
		tb.Fatal(err)
	}
	c.FlushTrailing(ctx, true)
	tasks := f.store.Queues.Queue(taskQueue)
	out := measured{message: peek(tb, tasks)}
	if _, err := tasks.Clear(ctx); err != nil {
		tb.Fatal(err)
	}
	before := c.Count()
	f.calls, f.bodies = calls{}, w.completions(tb, workflow)
	out.took = f.clock(func() {
		if n, err := c.Drain(ctx, time.Hour, nil); err != nil || n != w.reports {
			tb.Fatalf("Drain = %d, %v; want %d", n, err, w.reports)
		}
	})
	after := c.Count()
	for _, name := range []string{"conflicts", "released", "poison", "wakes", "resent"} {
		if n := after[name] - before[name]; n != 0 {
			tb.Errorf("the coordinator counted %d %s", n, name)
		}
	}
	out.calls = f.calls
	stored, err := f.store.States.Load(ctx, workflow, "")
	if err != nil {
		tb.Fatal(err)
	}
	out.doc = stored.Body
	if w.sends > 0 {
		out.message = peek(tb, tasks)
	}
	clearAll(tb, f.store)
	return out
}

// runBare makes the calls of like and nothing else.
func runBare(tb testing.TB, on bed, w workload, like measured) measured {
	tb.Helper()
	ctx := tb.Context()
	f := &feeder{tb: tb, store: on.open(tb), inbox: inbox, most: on.most}
	for _, name := range []string{inbox, taskQueue} {
		if err := f.store.Queues.Ensure(ctx, name); err != nil {
			tb.Fatal(err)
		}
	}
	tag, err := f.store.States.Create(ctx, workflow, like.doc)
	if err != nil {
		tb.Fatal(err)
	}
	f.bodies = w.completions(tb, workflow)
	s := f.wrap()
	m := &mix{store: s, like: like, perMessage: w.sends, tag: tag, rounds: rounds(w.reports, min(on.most, maxReceives*batchSize), on.most)}
	out := like
	out.took = f.clock(func() {
		if err := m.drain(ctx); err != nil {
			tb.Fatal(err)
		}
	})
	out.calls = f.calls
	clearAll(tb, f.store)
	return out
}

// rounds returns in how many batches of at most batch n messages are received that
// are put most at a time.
func rounds(n, batch, most int) int {
	count := 0
	for ; n > 0; n -= min(n, most) {
		count += (min(n, most) + batch - 1) / batch
	}
	return count
}

// mix is the bare loop.
type mix struct {
	store      *port.Store
	like       measured
	perMessage int
	tag        port.Tag
	rounds     int
	saved      int
}

func (m *mix) drain(ctx context.Context) error {
	in, out := m.store.Queues.Queue(inbox), m.store.Queues.Queue(taskQueue)
	for round := 1; ; round++ {
		batch, err := receive(ctx, in)
		if err != nil || len(batch) == 0 {
			return err
		}
		if err := m.save(ctx, round); err != nil {
			return err
		}
		messages := slices.Repeat([]port.Message{{Body: m.like.message}}, len(batch)*m.perMessage)
		if err := inChunks(messages, func(some []port.Message) []error { return out.Send(ctx, some) }); err != nil {
			return err
		}
		if err := inChunks(batch, func(some []port.Delivery) []error { return in.Acknowledge(ctx, some) }); err != nil {
			return err
		}
	}
}

// save makes the saves that are due by the end of a round, when all of the
// coordinator's are spread evenly.
func (m *mix) save(ctx context.Context, round int) (err error) {
	for ; m.saved < m.like.saves*min(round, m.rounds)/m.rounds; m.saved++ {
		if m.tag, err = m.store.States.Save(ctx, workflow, m.like.doc, m.tag); err != nil {
			return err
		}
	}
	return nil
}

// receive takes a batch as the coordinator does.
func receive(ctx context.Context, q port.Queue) ([]port.Delivery, error) {
	var all []port.Delivery
	for range maxReceives {
		got, err := q.Receive(ctx, port.ReceiveOptions{Max: batchSize, Lock: lock})
		if err != nil {
			return nil, err
		}
		if all = append(all, got...); len(got) < batchSize {
			break
		}
	}
	return all, nil
}

// inChunks makes the calls for all at a time, as the coordinator does.
func inChunks[T any](all []T, call func([]T) []error) error {
	var wg sync.WaitGroup
	errs := make([]error, (len(all)+chunkSize-1)/chunkSize)
	at := 0
	for some := range slices.Chunk(all, chunkSize) {
		i := at
		at++
		wg.Go(func() {
			for _, err := range call(some) {
				if err != nil {
					errs[i] = err
				}
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func peek(tb testing.TB, q port.Queue) []byte {
	tb.Helper()
	got, err := q.Peek(tb.Context(), 1)
	if err != nil || len(got) == 0 {
		tb.Fatalf("no message was sent to a worker: %v", err)
	}
	return got[0].Body
}

// clearAll leaves nothing behind that makes the calls of the next side dearer.
func clearAll(tb testing.TB, s *port.Store) {
	tb.Helper()
	for _, name := range []string{inbox, taskQueue} {
		if _, err := s.Queues.Queue(name).Clear(tb.Context()); err != nil {
			tb.Error(err)
		}
	}
}
