// Package sched is the one door through which the coordinator and the worker's
// protocol loop meet time and parallelism: they start no goroutine and read no
// clock by themselves. In production the door opens on goroutines and the real
// clock; the simulation replaces it with a seeded, cooperative form, so that
// one seed gives one history.
//
// The package decides nothing and imports nothing of ours.
package sched

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Scheduler starts work, waits and tells the time. Safe for concurrent use.
type Scheduler interface {
	// Now returns the present time. It may jump.
	Now() time.Time
	// Sleep returns nil after d, or the cause of ctx's end when that comes first.
	Sleep(ctx context.Context, d time.Duration) error
	// Parallel calls f(ctx, 0) ... f(ctx, n-1), at most limit at a time, and
	// returns when all have returned. With limit 1 or n 1 it calls them in order
	// on the caller's goroutine.
	Parallel(ctx context.Context, n, limit int, f func(ctx context.Context, i int))
	// WithTimeout is context.WithTimeoutCause on this scheduler's time. The
	// operation is named in the cause.
	WithTimeout(ctx context.Context, d time.Duration, operation string) (context.Context, context.CancelFunc)
}

// Real is the Scheduler of production programs.
type Real struct{}

// Now returns the wall clock with its monotonic reading.
func (Real) Now() time.Time { return time.Now() }

// Sleep implements Scheduler.
func (Real) Sleep(ctx context.Context, d time.Duration) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Parallel implements Scheduler.
func (Real) Parallel(ctx context.Context, n, limit int, f func(ctx context.Context, i int)) {
	limit = min(max(limit, 1), n)
	if limit <= 1 {
		for i := range n {
			f(ctx, i)
		}
		return
	}
	next := make(chan int)
	var wg sync.WaitGroup
	for range limit {
		wg.Go(func() {
			for i := range next {
				f(ctx, i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}

// WithTimeout implements Scheduler.
func (Real) WithTimeout(ctx context.Context, d time.Duration, operation string) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, d, &TimeoutError{Operation: operation, After: d})
}

// TimeoutError is the cause of a context that WithTimeout ended.
type TimeoutError struct {
	Operation string
	After     time.Duration
}

// Error names the operation and its bound.
func (e *TimeoutError) Error() string {
	return e.Operation + " took longer than " + e.After.String()
}

// Is makes a TimeoutError match context.DeadlineExceeded.
func (e *TimeoutError) Is(target error) bool { return errors.Is(context.DeadlineExceeded, target) }
