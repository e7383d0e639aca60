package guard

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A guardian that has something to kill which does not die still reads what its
// worker writes, else the worker is held up by its pipe.
func TestWhatCannotBeKilledDoesNotKeepAGuardianFromReading(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const orders = 3000
		g := guardian{runs: ledger{}, reports: make(chan string, 64)}
		begun := time.Now()
		var tries atomic.Int32
		g.kill = func(ctx context.Context) {
			tries.Add(1)
			<-ctx.Done()
			if time.Since(begun) > 10*time.Second {
				clear(g.runs) // it dies at last
			}
		}
		messages := make(chan message, 64)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			g.watch(t.Context(), messages)
		}()
		messages <- message{add, Group{RunID: "stuck", TTL: time.Nanosecond, Sent: 1}}
		for i := range orders {
			messages <- message{add, Group{RunID: fmt.Sprintf("run %d", i)}}
			messages <- message{remove, Group{RunID: fmt.Sprintf("run %d", i)}}
		}
		if took := time.Since(begun); took > 5*time.Second {
			t.Errorf("%d orders took %v beside a run that cannot be killed", 2*orders, took)
		}
		time.Sleep(5 * time.Second)
		if tries.Load() < 5 {
			t.Errorf("%d tries to kill it in 5 s", tries.Load())
		}
		close(messages)
		<-ended
	})
}
