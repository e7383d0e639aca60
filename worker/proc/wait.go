package proc

import (
	"context"
	"time"

	"jobq/core/fault"
)

// Pauses between two looks at something whose end the system does not report.
const (
	firstPause   = time.Millisecond
	longestPause = 200 * time.Millisecond
)

// poll calls done until it returns true, with growing pauses, and reports
// whether it did before ctx ended. It looks at least once.
func poll(ctx context.Context, done func() bool) bool {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for next := firstPause; ; next = min(2*next, longestPause) {
		if done() {
			return true
		}
		pause.Reset(next)
		select {
		case <-pause.C:
		case <-ctx.Done():
			return false
		}
	}
}

// WaitGone returns nil when no process of the group pgid is alive; zombies
// count as gone. It kills nothing. If ctx ends first the error is
// fault.Canceled with the cause of ctx.
func WaitGone(ctx context.Context, pgid int) error {
	if poll(ctx, func() bool { return !GroupAlive(pgid) }) {
		return nil
	}
	return fault.Wrapf(fault.Canceled, context.Cause(ctx), "process group %d is still alive", pgid)
}

// awaitGone is WaitGone with a bound in time, for a group that was killed. It
// goes on after the end of ctx: a cancelled command has to be gone too.
func awaitGone(ctx context.Context, pgid int, bound time.Duration) bool {
	if !GroupAlive(pgid) {
		return true
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), bound)
	defer cancel()
	return WaitGone(ctx, pgid) == nil
}
