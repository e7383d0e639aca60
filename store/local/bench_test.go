package local_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"jobq/core/port"
)

const (
	benchInbox = "main-workflow-completions"
	benchLock  = time.Hour
)

// parallel runs f from n goroutines until b.N calls are done. b.Loop belongs to
// one goroutine, so it drives the single form and RunParallel's kin is here.
func parallel(b *testing.B, n int, f func(worker, i int) error) {
	var next atomic.Int64
	var wg sync.WaitGroup
	start := time.Now()
	b.ResetTimer()
	for worker := range n {
		wg.Go(func() {
			for {
				i := int(next.Add(1))
				if i > b.N {
					return
				}
				if err := f(worker, i); err != nil {
					b.Errorf("call %d = error %v", i, err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/time.Since(start).Seconds(), "calls/s")
}

func benchStore(b *testing.B) *port.Store {
	store := open(b, b.TempDir()).Port()
	for _, name := range []string{"cpu", benchInbox} {
		if err := store.Queues.Ensure(b.Context(), name); err != nil {
			b.Fatal(err)
		}
	}
	return store
}

func first(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// BenchmarkCycle sends, receives and acknowledges one message of 1 KB.
func BenchmarkCycle(b *testing.B) {
	for _, clients := range []int{1, 16} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			store := benchStore(b)
			body := make([]byte, 1000)
			q := store.Queues.Queue("cpu")
			parallel(b, clients, func(int, int) error {
				if err := first(q.Send(b.Context(), []port.Message{{Body: body}})); err != nil {
					return err
				}
				ds, err := q.Receive(b.Context(), port.ReceiveOptions{Max: 1, Lock: benchLock, Wait: time.Minute})
				if err != nil {
					return err
				}
				return first(q.Acknowledge(b.Context(), ds))
			})
		})
	}
}

// BenchmarkSave swaps states of 100 KB, one workflow a client.
func BenchmarkSave(b *testing.B) {
	for _, clients := range []int{1, 16} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			store := benchStore(b)
			doc := make([]byte, 100_000)
			tags := make([]port.Tag, clients)
			for i := range tags {
				var err error
				if tags[i], err = store.States.Create(b.Context(), fmt.Sprint(i), doc); err != nil {
					b.Fatal(err)
				}
			}
			parallel(b, clients, func(worker, _ int) (err error) {
				tags[worker], err = store.States.Save(b.Context(), fmt.Sprint(worker), doc, tags[worker])
				return err
			})
		})
	}
}

// BenchmarkTask is what one task costs: receive, record, finish by a client, and
// a coordinator that saves a state of 10 KB, sends and acknowledges in batches.
func BenchmarkTask(b *testing.B) {
	for _, clients := range []int{1, 2, 16} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			store := benchStore(b)
			ctx := b.Context()
			tasks, inbox := store.Queues.Queue("cpu"), store.Queues.Queue(benchInbox)
			body := make([]byte, 500)
			// As in a fan-out, the coordinator answers each completion with one
			// further task; 64 are on their way at any time.
			seed := make([]port.Message, min(64, b.N))
			for i := range seed {
				seed[i].Body = body
			}
			if err := first(tasks.Send(ctx, seed)); err != nil {
				b.Fatal(err)
			}
			var coordinator sync.WaitGroup
			coordinator.Go(func() { coordinate(b, store, tasks, inbox, b.N-len(seed), b.N) })
			parallel(b, clients, func(_, i int) error {
				ds, err := tasks.Receive(ctx, port.ReceiveOptions{Max: 1, Lock: benchLock, Wait: time.Minute})
				if err != nil {
					return err
				}
				k := port.RecordKey{Workflow: "w", Task: fmt.Sprint(i), Attempt: 1}
				tag, err := store.Records.Create(ctx, k, port.Record{Owner: "me", Body: body[:150]})
				if err != nil {
					return err
				}
				_, err = store.Finisher.Finish(ctx, port.Finish{
					Key: k, Record: port.Record{Body: body[:300]}, IfMatch: tag,
					Inbox: benchInbox, Completion: port.Message{Body: body[:300]}, Queue: "cpu", Delivery: ds[0],
				})
				return err
			})
			coordinator.Wait()
		})
	}
}

// coordinate drains n completions and sends the further tasks that are left.
func coordinate(b *testing.B, store *port.Store, tasks, inbox port.Queue, left, n int) {
	ctx, doc := b.Context(), make([]byte, 10_000)
	tag, err := store.States.Create(ctx, "w", doc)
	if err != nil {
		b.Error(err)
		return
	}
	for n > 0 {
		ds, err := inbox.Receive(ctx, port.ReceiveOptions{Max: 64, Lock: benchLock, Wait: time.Minute})
		if err != nil {
			b.Error(err)
			return
		}
		if tag, err = store.States.Save(ctx, "w", doc, tag); err != nil {
			b.Error(err)
			return
		}
		further := make([]port.Message, min(len(ds), left))
		for i := range further {
			further[i].Body = doc[:500]
		}
		left -= len(further)
		if err := first(tasks.Send(ctx, further)); err != nil {
			b.Error(err)
			return
		}
		if err := first(inbox.Acknowledge(ctx, ds)); err != nil {
			b.Error(err)
			return
		}
		n -= len(ds)
	}
}

// BenchmarkList pages through an index of 10,000 workflows, 100 at a time.
func BenchmarkList(b *testing.B) {
	store := benchStore(b)
	var wg sync.WaitGroup
	for worker := range 16 {
		wg.Go(func() {
			for i := worker; i < 10_000; i += 16 {
				row := port.Row{Workflow: fmt.Sprintf("w%05d", i), Status: []string{"running", "failed", "completed"}[i%3], CreatedAt: time.Unix(int64(i), 0)}
				if _, err := store.Index.Project(b.Context(), row, ""); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	middle := ""
	for range 30 {
		_, next, err := store.Index.List(b.Context(), port.Filter{After: middle})
		if err != nil {
			b.Fatal(err)
		}
		middle = next
	}
	for name, filter := range map[string]port.Filter{
		"first page": {}, "middle page": {After: middle}, "one status": {Status: []string{"failed"}}, "two statuses": {Status: []string{"failed", "running"}},
		"prefix": {Prefix: "w01"}, "prefix and status": {Prefix: "w01", Status: []string{"failed"}},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if rows, _, err := store.Index.List(b.Context(), filter); err != nil || len(rows) != 100 {
					b.Fatalf("List gave %d rows, error %v", len(rows), err)
				}
			}
		})
	}
}
