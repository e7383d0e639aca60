package testkit

import (
	"context"
	"time"

	"jobq/core/sched"
)

// Serial is the scheduler of production programs, with everything done in order
// on the caller's goroutine. Shift is added to its clock.
type Serial struct {
	sched.Real
	Shift time.Duration
}

// Now implements sched.Scheduler.
func (s Serial) Now() time.Time { return s.Real.Now().Add(s.Shift) }

// Parallel implements sched.Scheduler.
func (Serial) Parallel(ctx context.Context, n, _ int, f func(ctx context.Context, i int)) {
	for i := range n {
		f(ctx, i)
	}
}
