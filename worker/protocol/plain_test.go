package protocol_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"jobq/core/msg"
	"jobq/core/port"
	"jobq/store/memory"
	"jobq/worker/protocol"
)

// TestAPlainTaskKeepsItsMessage on queues that lock for less than they are asked
// to: nothing else keeps another worker from running it at the same time.
func TestAPlainTaskKeepsItsMessage(t *testing.T) {
	t.Parallel()
	props := memory.DefaultQueue()
	props.MaxLock, props.FixedLock = time.Minute, true
	bubble(t, memory.Options{Queue: &props}, func(t *testing.T, r *rig) {
		r.model.run = r.model.lasting(time.Hour, 0)
		r.push(func(m *msg.Task) { m.Workflow, m.Name, m.Prefix, m.Attempt = "", "", "", 0 })
		var wg sync.WaitGroup
		wg.Go(func() { r.expect("long command", r.handle(t.Context()), protocol.Done) })
		synctest.Wait()
		for range 59 {
			ds, err := r.store.Port().Queues.Queue(queueA).Receive(t.Context(), port.ReceiveOptions{Max: 1, Lock: time.Minute, Wait: time.Minute})
			if err != nil || len(ds) > 0 {
				t.Errorf("another worker received %d messages, %v, while the command ran", len(ds), err)
				break
			}
		}
		wg.Wait()
		r.model.runs(t, 1)
	})
}
