package protocol

import (
	"context"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"jobq/core/fault"
)

const (
	// callBound is how long one call of the store may take.
	callBound = 30 * time.Second
	// firstPause and longestPause bound the pause between two tries.
	firstPause   = 500 * time.Millisecond
	longestPause = time.Minute
	// deniedFor is how long a right may be missing that this worker may never have
	// had. A new role takes minutes to arrive.
	deniedFor = 10 * time.Minute
)

// call returns a context for one call of the store. The end of ctx does not
// end the call: what a stopping worker has to write must still be written.
func (h *Handler) call(ctx context.Context, operation string) (context.Context, context.CancelFunc) {
	return h.conf.Scheduler.WithTimeout(context.WithoutCancel(ctx), callBound, operation)
}

// retry calls f until it succeeds or is refused for good, with growing pauses,
// at most tries times and not beyond the end of ctx.
func (h *Handler) retry(ctx context.Context, tries int, f func(context.Context) error) error {
	pause := firstPause
	for n := 1; ; n++ {
		err := h.once(ctx, f)
		if err == nil || !uncertain(err) || n >= tries {
			return err
		}
		if h.conf.Scheduler.Sleep(ctx, h.jitter(max(pause, fault.RetryAfter(err)))) != nil {
			return err
		}
		pause = min(2*pause, longestPause)
	}
}

// insist is retry for what a stopping worker still has to write: it goes on for
// Patience after the end of ctx, and without end before it where tries is 0.
func (h *Handler) insist(ctx context.Context, tries int, f func(context.Context) error) error {
	var stopped atomic.Pointer[time.Time]
	return h.write(ctx, tries, h.conf.Patience, &stopped, f)
}

// persist calls f until it succeeds or is refused for good, whatever happens to
// ctx, or for EndPatience after its end. It is for how a command ended: given up,
// the command would run again.
func (a *attempt) persist(ctx context.Context, f func(context.Context) error) error {
	patience := a.h.conf.EndPatience
	if patience <= 0 {
		patience = math.MaxInt64
	}
	return a.h.write(ctx, 0, patience, &a.stopped, a.telling("how the command ended is not stored yet; trying on", f))
}

// telling logs the failures of f after which it is tried again, the first of them as
// a warning: the others are no news.
func (a *attempt) telling(text string, f func(context.Context) error) func(context.Context) error {
	level := slog.LevelWarn
	return func(ctx context.Context) error {
		err := f(ctx)
		if err != nil && uncertain(err) {
			a.log.Log(ctx, level, text, "error", err)
			level = slog.LevelInfo
		}
		return err
	}
}

// write calls f as retry does, but goes on for patience after the end of ctx.
// stopped keeps when that was seen.
func (h *Handler) write(ctx context.Context, tries int, patience time.Duration, stopped *atomic.Pointer[time.Time], f func(context.Context) error) error {
	live := context.WithoutCancel(ctx)
	pause := firstPause
	for n := 1; ; n++ {
		err := h.once(live, f)
		if err == nil || !uncertain(err) || n == tries {
			return err
		}
		wait := h.jitter(max(pause, fault.RetryAfter(err)))
		pause = min(2*pause, longestPause)
		if ctx.Err() == nil && h.conf.Scheduler.Sleep(ctx, wait) == nil {
			continue
		}
		if h.since(stopped) >= patience || h.conf.Scheduler.Sleep(live, min(wait, 2*time.Second)) != nil {
			return err
		}
	}
}

// since returns the time since stopped, which it sets where nobody has.
func (h *Handler) since(stopped *atomic.Pointer[time.Time]) time.Duration {
	now := h.conf.Scheduler.Now()
	stopped.CompareAndSwap(nil, &now)
	return now.Sub(*stopped.Load()) // not by a clock that may be set meanwhile
}

func (h *Handler) once(ctx context.Context, f func(context.Context) error) error {
	call, cancel := h.conf.Scheduler.WithTimeout(ctx, callBound, "a call of the store")
	defer cancel()
	return f(call)
}

// jitter spreads d over 25 % to both sides.
func (h *Handler) jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.75 + h.conf.Jitter()/2))
}

// uncertain reports whether the call that gave err may have worked, or may
// work when it is made again. A right that is missing is an outage: keys are
// changed and roles given while commands run.
func uncertain(err error) bool {
	code := fault.CodeOf(err)
	return code.Transient() || code == fault.Canceled || code == fault.Denied
}
