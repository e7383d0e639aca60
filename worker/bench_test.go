//go:build unix

package worker_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"jobq/core/msg"
	"jobq/core/port"
	"jobq/core/sched"
	"jobq/store/memory"
	"jobq/worker"
)

// BenchmarkTask runs no-op commands through a whole worker with two slots on the
// memory store. ownCPU/op is what the worker's process itself used: compare the
// wall time with BenchmarkBareCommand, which starts the same commands alone.
func BenchmarkTask(b *testing.B) {
	store := memory.New(memory.Options{}).Port()
	w, err := worker.New(worker.Config{
		Store: store, Prefix: prefix, Inbox: inbox, Queues: []string{"cpu"}, Slots: 2,
		Cwd: b.TempDir(), Scratch: b.TempDir(), IdleTimeout: 10 * time.Millisecond,
	})
	if err != nil {
		b.Fatal(err)
	}
	if err := store.Queues.Ensure(b.Context(), "cpu"); err != nil {
		b.Fatal(err)
	}
	// The worker has to begin with a full queue, so b.Loop cannot count for it.
	for i := range b.N {
		body, err := msg.EncodeTask(msg.Task{
			Workflow: "w", Name: fmt.Sprintf("t%d", i), Attempt: 1, Prefix: prefix, Kwargs: cmd("true"),
		})
		if err != nil {
			b.Fatal(err)
		}
		if errs := store.Queues.Queue("cpu").Send(b.Context(), []port.Message{{Body: body}}); errs != nil {
			b.Fatal(errs[0])
		}
	}
	before := ownCPU(b)
	b.ResetTimer()
	if err := w.Run(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64((ownCPU(b)-before).Nanoseconds())/float64(b.N), "ownCPU-ns/op")
	if n, err := store.Queues.Queue(inbox).Count(b.Context()); err != nil || n != b.N {
		b.Fatalf("%d of %d tasks were reported: %v", n, b.N, err)
	}
}

// BenchmarkBareCommand is the loop that BenchmarkTask is compared with.
func BenchmarkBareCommand(b *testing.B) {
	sched.Real{}.Parallel(b.Context(), b.N, 2, func(_ context.Context, _ int) {
		c := exec.Command("/bin/sh", "-c", "true")
		c.Env = os.Environ()
		if err := c.Run(); err != nil {
			b.Error(err)
		}
	})
}

func ownCPU(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
