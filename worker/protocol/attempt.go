package protocol

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"jobq/core/fault"
	"jobq/core/msg"
	"jobq/core/port"
)

const (
	// longRest is how long a message rests that this worker can do nothing with.
	longRest = time.Minute
	// maxRunID is the longest run id that a guardian takes, less its random part.
	maxRunID = 400
)

// attempt is one delivery on its way through a Handler. One goroutine uses it
// at a time; while the command runs, d, tag and messageLost belong to keepAlive.
type attempt struct {
	h     *Handler
	queue port.Queue
	d     port.Delivery
	task  msg.Task
	key   port.RecordKey
	inbox string
	log   *slog.Logger
	// holder tells people who holds the attempt; nonce makes the records that this
	// delivery writes its own.
	holder string
	nonce  nonce

	// rec is the record that claims the attempt, and does not change while the
	// command runs; tag is that of the last write. sent is the Moment at which
	// the last beat that succeeded was sent.
	rec  msg.AttemptRecord
	tag  port.Tag
	sent atomic.Int64
	// messageLost says that the receipt of d is no longer the newest.
	messageLost bool
	// taken says that the record was found to be somebody else's.
	taken atomic.Bool
	// stopped is when the worker was seen to stop; nil is not yet.
	stopped atomic.Pointer[time.Time]
	// survivor is the run id of the start that was taken over.
	survivor string
	// ended is how the attempt ended where the claim found that it had.
	ended *msg.Ended
	// staleIn is when a record of somebody else can be stale.
	staleIn time.Duration
}

func newAttempt(h *Handler, q port.Queue, d port.Delivery, task msg.Task, slot int) *attempt {
	number := max(task.Attempt, 1) // messages of old coordinators have none
	inbox := task.Inbox
	if inbox == "" {
		inbox = h.conf.Inbox
	}
	return &attempt{
		h: h, queue: q, d: d, task: task, inbox: inbox,
		key:    port.RecordKey{Workflow: task.Workflow, Task: task.Name, Attempt: number},
		log:    h.conf.Logger.With("workflow", task.Workflow, "task", task.Name, "attempt", number, "queue", q.Name()),
		holder: fmt.Sprintf("%s:%d", h.conf.Worker, slot),
		nonce:  h.nonce(),
	}
}

// runID names a start of this attempt by this delivery.
func (a *attempt) runID(start uint32) string {
	name := fmt.Sprintf("%s/%s/%d.%d", a.key.Workflow, a.key.Task, a.key.Attempt, start)
	if len(name) > maxRunID {
		sum := sha256.Sum256([]byte(name))
		name = hex.EncodeToString(sum[:])
	}
	return name + "/" + string(a.nonce)
}

func (a *attempt) handle(ctx context.Context) Result {
	if ctx.Err() != nil {
		return a.release(ctx, 0)
	}
	a.h.begin(a.nonce)
	defer a.h.end(a.nonce)
	claimed, err := a.claim(ctx)
	if err != nil {
		a.log.WarnContext(ctx, "attempt could not be claimed", "error", err)
		return a.release(ctx, a.rest(1))
	}
	switch claimed {
	case over:
		return a.settle(ctx)
	case busy:
		a.log.DebugContext(ctx, "attempt is held by another start", "stale_in", a.staleIn)
		return a.release(ctx, a.staleIn)
	}
	admitted, err := a.admit(ctx)
	if err != nil {
		a.log.WarnContext(ctx, "the workflow's row could not be read", "error", err)
		return a.giveBack(ctx, ending{because: err, rest: a.rest(1)})
	}
	switch admitted {
	case cancelled:
		c := a.completion(Outcome{})
		c.Reason, c.Error = msg.Cancelled, "the workflow was cancelled before the command started"
		return a.report(ctx, c)
	case purged:
		return a.discard(ctx)
	}
	e := a.run(ctx)
	if e.completion == nil {
		return a.giveBack(ctx, e)
	}
	return a.report(ctx, *e.completion)
}

// settle deals with a message whose attempt had ended before it came.
func (a *attempt) settle(ctx context.Context) Result {
	if a.ended.Completion == nil { // the coordinator ended it and knows
		return a.acknowledge(ctx)
	}
	if err := a.send(ctx, *a.ended.Completion); err != nil {
		a.log.WarnContext(ctx, "completion could not be sent again", "error", err)
		return a.release(ctx, a.rest(1))
	}
	return a.acknowledge(ctx)
}

// discard removes the record of an attempt whose workflow was purged: the purge
// may have been before the record was created.
func (a *attempt) discard(ctx context.Context) Result {
	err := a.h.insist(ctx, 5, func(ctx context.Context) error {
		return a.h.conf.Store.Records.Delete(ctx, a.key, a.tag)
	})
	if err != nil && !fault.Is(err, fault.Conflict) {
		a.log.WarnContext(ctx, "record of a purged workflow could not be removed", "error", err)
		return a.release(ctx, a.rest(1))
	}
	return a.acknowledge(ctx)
}

func (a *attempt) acknowledge(ctx context.Context) Result {
	err := a.h.insist(ctx, 3, func(ctx context.Context) error {
		return first(a.queue.Acknowledge(ctx, []port.Delivery{a.d}))
	})
	if err != nil {
		// It comes again, meets a record that ended, and is acknowledged then.
		a.log.InfoContext(ctx, "message could not be acknowledged", "error", err)
		return Kept
	}
	return Done
}

func (a *attempt) release(ctx context.Context, rest time.Duration) Result {
	if limit := a.queue.Props().MaxDelay; limit > 0 {
		rest = min(rest, limit)
	}
	err := a.h.insist(ctx, 3, func(ctx context.Context) error { return a.queue.Release(ctx, a.d, rest) })
	if err != nil {
		a.log.InfoContext(ctx, "message could not be given back", "error", err)
		return Kept
	}
	return Returned
}

// rest is a pause before the message comes again that grows with n.
func (a *attempt) rest(n uint32) time.Duration {
	return min(5*time.Second<<min(n, 8), longRest)
}

// first returns the error of a call with one message.
func first(errs []error) error {
	if len(errs) == 0 {
		return nil
	}
	return errs[0]
}
