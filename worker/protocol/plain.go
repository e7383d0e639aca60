package protocol

import (
	"context"

	"jobq/core/msg"
	"jobq/core/port"
)

// plain runs a task that belongs to no workflow: the lock of the message is all
// that holds it and the remaining retries travel in it.
func (h *Handler) plain(ctx context.Context, q port.Queue, d port.Delivery, task msg.Task) Result {
	a := &attempt{
		h: h, queue: q, d: d, task: task, nonce: h.nonce(),
		log: h.conf.Logger.With("queue", q.Name(), "id", d.ID),
	}
	if ctx.Err() != nil {
		return a.release(ctx, 0)
	}
	out := a.runPlain(ctx)
	switch {
	case out.success():
		return a.acknowledge(ctx)
	case out.Kind == Stopped, out.Kind == Exited && ctx.Err() != nil:
		return a.release(ctx, 0)
	case out.Kind == Unstartable, out.Kind == Unprepared:
		return a.release(ctx, a.rest(1))
	case task.NumRetries > 0:
		return a.again(ctx)
	}
	call, cancel := h.call(ctx, "poison a message")
	defer cancel()
	if err := q.Poison(call, a.d, msg.TruncateText(out.Error, msg.MaxError)); err != nil {
		a.log.WarnContext(ctx, "failed task could not be moved to the poison queue", "error", err)
		return Kept
	}
	return Done
}

func (a *attempt) runPlain(ctx context.Context) Outcome {
	live := context.WithoutCancel(ctx)
	command, stop := context.WithCancelCause(live)
	defer stop(nil)
	watch, finish := context.WithCancel(live)
	defer finish()
	waiting, release := context.WithCancel(ctx)
	defer release()

	var out Outcome
	duties := []func(){
		func() {
			defer release()
			defer finish()
			out = a.h.conf.Runner.Run(command, Start{
				Task: a.task, Queue: a.queue.Name(), Attempt: 1, Start: 1,
				RunID: "plain/" + string(a.nonce), Claimed: a.h.conf.Runner.Moment(),
			})
		},
		func() { a.stopWith(ctx, waiting, stop) },
		func() {
			for a.h.conf.Scheduler.Sleep(watch, a.lockTick()) == nil && !a.messageLost {
				if a.extend(watch); a.messageLost {
					stop(ErrLockLost)
				}
			}
		},
	}
	a.h.conf.Scheduler.Parallel(live, len(duties), len(duties), func(_ context.Context, i int) { duties[i]() })
	return out
}

// again sends the task with one retry less.
func (a *attempt) again(ctx context.Context) Result {
	next := a.task
	next.NumRetries--
	next.ID = ""
	body, err := msg.EncodeTask(next)
	if err != nil {
		return a.release(ctx, longRest)
	}
	message := port.Message{ID: a.h.conf.NewID(), Body: body}
	err = a.h.insist(ctx, a.h.conf.SendAttempts, func(ctx context.Context) error {
		return first(a.queue.Send(ctx, []port.Message{message}))
	})
	if err != nil {
		a.log.WarnContext(ctx, "failed task could not be sent again", "error", err)
		return a.release(ctx, a.rest(1))
	}
	return a.acknowledge(ctx)
}
