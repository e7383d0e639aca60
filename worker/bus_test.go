//go:build unix

package worker_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"jobq/core/port"
	"jobq/internal/busstand"
	"jobq/store/azbus"
)

// TestNothingIsFetchedAheadOfASlot is C13: a worker with one slot, 20 messages that
// each run for a third of the lock. What waits is in its queue, where no lock ends.
func TestNothingIsFetchedAheadOfASlot(t *testing.T) {
	t.Parallel()
	for name, queues := range map[string][]string{"one queue": {"cpu"}, "two queues": {"cpu", "gpu"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.queues = onBus(t, 3*time.Second)
			counted := &counting{Queues: r.queues}
			store := *r.conf.Store
			store.Queues, store.Finisher = counted, nil
			r.conf.Store, r.conf.Slots, r.conf.Queues = &store, 1, queues
			const tasks = 20
			for i := range tasks {
				r.pushTo(queues[i%len(queues)], fmt.Sprint("t", i), cmd("sleep 1"))
			}
			stop := r.start()
			defer stop()
			for range tasks {
				if c := r.next(); !c.Success || c.Start != 1 {
					t.Errorf("completion = %+v, want the success of start 1", c)
				}
			}
			stop()
			counted.mu.Lock()
			defer counted.mu.Unlock()
			if counted.deliveries != tasks || counted.most != 1 {
				t.Errorf("%d deliveries, the highest number of one message %d; want %d and 1", counted.deliveries, counted.most, tasks)
			}
		})
	}
}

// onBus opens a namespace whose queues lock for lock.
func onBus(t *testing.T, lock time.Duration) *azbus.Bus {
	t.Helper()
	server := busstand.New(busstand.Options{})
	t.Cleanup(server.Close)
	connection, err := server.Start()
	if err != nil {
		t.Fatal(err)
	}
	bus, err := azbus.Open(azbus.Options{ConnectionString: connection, Lock: lock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := bus.Close(); err != nil {
			t.Errorf("Close = error %v", err)
		}
	})
	return bus
}

// counting counts what is delivered.
type counting struct {
	port.Queues
	mu         sync.Mutex
	deliveries int
	// most is the highest Delivery.Count.
	most int
}

func (c *counting) Queue(name string) port.Queue { return countingQueue{c.Queues.Queue(name), c} }

type countingQueue struct {
	port.Queue
	c *counting
}

func (q countingQueue) Receive(ctx context.Context, o port.ReceiveOptions) ([]port.Delivery, error) {
	ds, err := q.Queue.Receive(ctx, o)
	q.c.mu.Lock()
	defer q.c.mu.Unlock()
	q.c.deliveries += len(ds)
	for _, d := range ds {
		q.c.most = max(q.c.most, d.Count)
	}
	return ds, err
}
