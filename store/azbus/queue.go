package azbus

import (
	"context"
	"regexp"
	"strings"
	"time"

	"jobq/core/fault"
	"jobq/core/port"
)

var _ port.Queue = (*queue)(nil)

const (
	// deadLetters is what the name of a dead-letter queue ends in.
	deadLetters = "/$DeadLetterQueue"
	// callBound ends a call that gets no answer.
	callBound = 30 * time.Second
	// settleBound is callBound where a message is settled. The client repeats
	// that by itself after more than this, and then waits for most of a minute.
	settleBound = 3 * time.Second

	// maxMessage is what a message may have so that it fits, with its properties
	// and those of a batch, into the 256 KiB of the Standard tier.
	maxMessage = 252 << 10
	// maxBatch bounds one receive.
	maxBatch = 256
	// maxDelay is far below what the service allows; nothing waits longer.
	maxDelay = 7 * 24 * time.Hour
	// maxID is the longest message id, in bytes here, in characters there.
	maxID = 128
)

// queue is a queue or a dead-letter queue. Its fields never change.
type queue struct {
	bus  *Bus
	name string
	// parent is the queue that dead letters come from, else name.
	parent string
	// key is name as the service compares names.
	key  string
	dead bool
}

func (b *Bus) queue(name string) *queue {
	q := &queue{bus: b, name: name, parent: name, key: strings.ToLower(name)}
	if at := len(name) - len(deadLetters); at > 0 && strings.EqualFold(name[at:], deadLetters) {
		q.parent, q.dead = name[:at], true
	}
	return q
}

// Name returns the name that the queue was opened by.
func (q *queue) Name() string { return q.name }

// PoisonQueue returns the dead-letter queue; that of a dead-letter queue is
// itself.
func (q *queue) PoisonQueue() port.Queue {
	if q.dead {
		return q
	}
	return q.bus.queue(q.name + deadLetters)
}

// Props returns what a queue of this service can do. A dead-letter queue knows
// no ids and no delivery limit, and only the service fills it.
func (q *queue) Props() port.QueueProps {
	p := port.QueueProps{
		MaxMessage: maxMessage, MaxBatch: maxBatch, MaxDelay: maxDelay, MaxLock: q.bus.lock(q), FixedLock: true,
		Deduplicates: true, DedupWindow: q.bus.o.DedupWindow, DeliveryLimit: q.bus.o.DeliveryLimit,
		CountReadable: true, CanWait: true, ClearLeavesLocked: true,
	}
	if q.dead {
		p.Deduplicates, p.DedupWindow, p.DeliveryLimit = false, 0, 0
		p.NoSend, p.NativeRelease = true, true
	}
	return p
}

// nameRule is that of the service.
var nameRule = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._/-]{0,258}[A-Za-z0-9])?$`)

// check refuses names that the service would not have.
func (q *queue) check() error {
	if nameRule.MatchString(q.parent) {
		return nil
	}
	return fault.Newf(fault.Invalid, "%q cannot be a Service Bus queue: a name has 1 to 260 letters, digits, dots, hyphens, underscores and slashes, and begins and ends with a letter or digit", q.parent)
}

// call makes one call on the shared connection within callBound. Without an
// answer the connection is taken for dead.
func (q *queue) call(ctx context.Context, doing string, f func(ctx context.Context, c *connection) error) error {
	return q.within(ctx, callBound, doing, f)
}

func (q *queue) within(ctx context.Context, bound time.Duration, doing string, f func(ctx context.Context, c *connection) error) error {
	if err := q.check(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return q.fail(ctx, ctx.Err(), doing)
	}
	c, err := q.bus.connection()
	if err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	err = f(bounded, c)
	if err == nil {
		return nil
	}
	failure := q.failOn(ctx, c, err, doing)
	if broken(err) || bound == callBound && bounded.Err() != nil && ctx.Err() == nil {
		q.bus.discard(c)
	}
	return failure
}
