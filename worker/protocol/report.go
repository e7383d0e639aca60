package protocol

import (
	"context"

	"jobq/core/fault"
	"jobq/core/msg"
	"jobq/core/port"
)

// report ends the attempt: into the record first, where it survives everything,
// then to the coordinator, then the message goes. The command is never run
// again for a report that failed.
func (a *attempt) report(ctx context.Context, c msg.Completion) Result {
	rec := a.rec
	rec.Ended = &msg.Ended{Completion: &c}
	if a.finishAtOnce(ctx, rec, c) {
		a.h.conf.Observe(a.event(Ended, rec.Start, &c, nil))
		return Done
	}
	if err := a.persist(ctx, func(ctx context.Context) error { return a.change(ctx, rec) }); err != nil {
		// Refused: the attempt is another start's by now, or was ended. Or given up.
		a.log.ErrorContext(ctx, "the end of the attempt could not be recorded", "success", c.Success, "error", err)
		a.unwritten(ctx, err)
		return a.release(ctx, 0)
	}
	a.h.conf.Observe(a.event(Ended, rec.Start, &c, nil))
	if err := a.send(ctx, c); err != nil {
		a.log.WarnContext(ctx, "completion could not be sent; the record keeps it", "error", err)
		return a.release(ctx, a.rest(1))
	}
	return a.acknowledge(ctx)
}

// finishAtOnce makes the three writes in one call where the store can. After
// any error the steps are taken one by one: each recognises what was done.
func (a *attempt) finishAtOnce(ctx context.Context, rec msg.AttemptRecord, c msg.Completion) bool {
	if a.h.conf.Store.Finisher == nil || a.messageLost {
		return false
	}
	record, err := msg.EncodeRecord(rec)
	if err != nil {
		return false
	}
	body, err := msg.EncodeCompletion(c)
	if err != nil {
		return false
	}
	call, cancel := a.h.call(ctx, "finishing an attempt")
	defer cancel()
	_, err = a.h.conf.Store.Finisher.Finish(call, port.Finish{
		Key: a.key, Record: port.Record{Body: record}, IfMatch: a.tag,
		Inbox: a.inbox, Completion: port.Message{ID: a.h.conf.NewID(), Body: body},
		Queue: a.queue.Name(), Delivery: a.d,
	})
	if err != nil {
		a.log.InfoContext(ctx, "attempt is finished step by step", "because", err)
	}
	return err == nil
}

// unwritten tells of a command whose end was not written down because of err, if
// that was given up and not refused.
func (a *attempt) unwritten(ctx context.Context, err error) {
	if ctx.Err() != nil && uncertain(err) {
		a.h.conf.Observe(a.event(Unwritten, a.rec.Start, nil, err))
	}
}

// send puts c into the inbox, SendAttempts times at most.
func (a *attempt) send(ctx context.Context, c msg.Completion) error {
	body, err := msg.EncodeCompletion(c)
	if err != nil {
		return err
	}
	inbox := a.h.conf.Store.Queues.Queue(a.inbox)
	message := port.Message{ID: a.h.conf.NewID(), Body: body}
	return a.h.insist(ctx, a.h.conf.SendAttempts, a.telling("the completion is not sent yet; trying on", func(ctx context.Context) error {
		err := first(inbox.Send(ctx, []port.Message{message}))
		if !fault.Is(err, fault.NotFound) {
			return err
		}
		if err := a.h.conf.Store.Queues.Ensure(ctx, a.inbox); err != nil {
			return err
		}
		return first(inbox.Send(ctx, []port.Message{message}))
	}))
}

// giveBack lets another start go on with the attempt: the record first, so that
// whoever gets the message finds it free.
func (a *attempt) giveBack(ctx context.Context, e ending) Result {
	a.log.InfoContext(ctx, "attempt is given back", "because", e.because, "crashed", e.crashed)
	a.h.conf.Observe(a.event(GivenBack, a.rec.Start, nil, e.because))
	if e.keep {
		a.h.keep(a.nonce)
		a.log.ErrorContext(ctx, "processes of the command cannot be killed; the attempt stays locked until it is stale")
		return Kept
	}
	rec := a.rec
	rec.Free = true
	if e.crashed {
		rec.Crashes++
	}
	if err := a.h.insist(ctx, 5, func(ctx context.Context) error { return a.change(ctx, rec) }); err != nil {
		a.log.WarnContext(ctx, "record could not be given back", "error", err)
	}
	return a.release(ctx, e.rest)
}
