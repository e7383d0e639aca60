package protocol

import (
	"context"
	"time"

	"jobq/core/fault"
)

// keepAlive extends the message and beats the record until ctx ends, also
// during the grace of a stopped command. It kills the command when the record
// turns out to be lost.
func (a *attempt) keepAlive(ctx context.Context, stop context.CancelCauseFunc, kill func()) {
	for wait := a.tick(); a.h.conf.Scheduler.Sleep(ctx, wait) == nil; {
		wait = a.tick()
		a.extend(ctx)
		switch err := a.beat(ctx); {
		case err == nil:
		case ctx.Err() != nil:
			return
		case fault.Is(err, fault.LeaseLost):
			a.log.ErrorContext(ctx, "attempt was taken over while its command ran; killing it", "error", err)
			a.taken.Store(true)
			stop(ErrLockLost)
			kill()
			return
		default:
			a.log.WarnContext(ctx, "beat failed", "error", err)
			wait = min(wait, a.h.ttl/60)
		}
	}
}

// fence ends the command before anybody else may believe it dead, whatever the
// calls of keepAlive wait for: at half the ttl without a beat it asks, at 0.7 it
// kills; the guardian would at 0.8.
func (a *attempt) fence(ctx context.Context, stop context.CancelCauseFunc, kill func()) {
	ask, end := a.h.ttl/2, a.h.ttl/10*7
	for {
		silence := a.silence()
		next := ask - silence
		if silence >= ask {
			stop(ErrLockLost)
			next = end - silence
		}
		if silence >= end {
			kill()
			return
		}
		// The two clocks need not agree to the nanosecond.
		if a.h.conf.Scheduler.Sleep(ctx, max(next, time.Millisecond)) != nil {
			return
		}
	}
}

// silence is the time since the last beat, 0 where nothing lapses by time.
func (a *attempt) silence() time.Duration {
	if a.h.conf.HeldByLife {
		return 0
	}
	return time.Duration(int64(a.h.conf.Runner.Moment()) - a.sent.Load())
}

// tick is the pause between two beats. An outage must last about a third of the
// ttl to cost a command its life.
func (a *attempt) tick() time.Duration { return min(a.lockTick(), a.h.ttl/6) }

// lockTick is the pause between two extensions: the lock of the message, which a
// queue may make shorter than it was asked to, outlasts two that fail.
func (a *attempt) lockTick() time.Duration { return a.h.lockFor(a.queue.Props().MaxLock) / 3 }

// beat writes the record once.
func (a *attempt) beat(ctx context.Context) error {
	call, cancel := a.h.conf.Scheduler.WithTimeout(ctx, min(callBound, a.h.ttl/20), "a beat")
	defer cancel()
	sent := a.h.conf.Runner.Moment()
	if err := a.change(call, a.rec); err != nil {
		return err
	}
	a.sent.Store(int64(sent))
	a.h.conf.Runner.Beat(a.rec.RunID, sent)
	return nil
}

// extend keeps the message hidden. A lost message is no reason to stop: whoever
// has it now meets our record.
func (a *attempt) extend(ctx context.Context) {
	if a.messageLost {
		return
	}
	call, cancel := a.h.conf.Scheduler.WithTimeout(ctx, min(callBound, a.h.conf.Lock/6), "extending a message")
	defer cancel()
	err := a.queue.Extend(call, &a.d, a.h.lockFor(a.queue.Props().MaxLock))
	switch {
	case err == nil || ctx.Err() != nil:
	case fault.Is(err, fault.LeaseLost):
		a.messageLost = true
		a.log.InfoContext(ctx, "the message was delivered again; the record still holds the attempt")
	default:
		a.log.WarnContext(ctx, "message could not be extended", "error", err)
	}
}

func (h *Handler) lockFor(limit time.Duration) time.Duration {
	if limit > 0 {
		return min(h.conf.Lock, limit)
	}
	return h.conf.Lock
}

// watchCancel looks for a cancel request until it finds one or ctx ends.
func (a *attempt) watchCancel(ctx context.Context, stop context.CancelCauseFunc) {
	longest := max(10*a.h.conf.CancelPoll, 5*time.Minute)
	for pause := a.h.conf.CancelPoll; a.h.conf.Scheduler.Sleep(ctx, a.h.jitter(pause)) == nil; {
		call, cancel := a.h.conf.Scheduler.WithTimeout(ctx, min(callBound, max(pause, time.Second)), "looking for a cancel request")
		row, err := a.h.conf.Store.Index.Get(call, a.key.Workflow)
		cancel()
		switch {
		case err == nil && a.cancelledBy(row.Cancel):
			a.log.InfoContext(ctx, "the workflow was cancelled; stopping the command")
			stop(ErrCancelled)
			return
		case err == nil, fault.Is(err, fault.NotFound):
			pause = a.h.conf.CancelPoll
		default:
			pause = min(2*pause, longest)
		}
	}
}
