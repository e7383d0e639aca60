package sim

import (
	"context"
	"time"

	"jobq/core/sched"
)

var _ sched.Scheduler = clock{}

// clock is the sched.Scheduler of one process.
type clock struct {
	s *scheduler
	p *process
}

// Now returns the virtual time as the clock of this machine shows it.
func (c clock) Now() time.Time { return c.s.time().Add(c.p.skew) }

func (c clock) Sleep(ctx context.Context, d time.Duration) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if d <= 0 {
		return nil
	}
	return c.s.wait(d, ctx, nil)
}

// Parallel runs limit child actors that take the next index each, in the order
// in which the scheduler lets them.
func (c clock) Parallel(ctx context.Context, n, limit int, f func(ctx context.Context, i int)) {
	limit = min(max(limit, 1), n)
	if limit <= 1 {
		for i := range n {
			f(ctx, i)
		}
		return
	}
	next, running := 0, limit
	parent := c.s.active
	for range limit {
		c.s.start(c.p, parent.name, func() {
			for next < n {
				i := next
				next++
				f(ctx, i)
			}
		}, func() { running-- })
	}
	for running > 0 {
		// Without a context: whoever waits here returns when all have returned.
		c.s.wait(forever, nil, func() bool { return running == 0 })
	}
}

// WithTimeout ends the context on virtual time. Its Err is context.Canceled, its
// cause the TimeoutError.
func (c clock) WithTimeout(ctx context.Context, d time.Duration, operation string) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	e := c.s.after(d, c.p, func() { cancel(&sched.TimeoutError{Operation: operation, After: d}) })
	return ctx, func() {
		c.s.cancel(e)
		cancel(context.Canceled)
	}
}
