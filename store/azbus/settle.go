package azbus

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"jobq/core/fault"
	"jobq/core/port"
)

const (
	// parallel is how many messages are settled at once: one by one, each would
	// wait for the answer to the one before.
	parallel = 32
	// maxReason bounds the description of a dead letter.
	maxReason = 1024
)

// receipt is what a delivery is settled by: the token of its lock, and the
// number of its message, which says later whether that is still there.
type receipt struct {
	token    [16]byte
	sequence int64
}

func receiptOf(m *azservicebus.ReceivedMessage) receipt {
	r := receipt{token: m.LockToken}
	if m.SequenceNumber != nil {
		r.sequence = *m.SequenceNumber
	}
	return r
}

func (r receipt) String() string {
	return hex.EncodeToString(r.token[:]) + "." + strconv.FormatInt(r.sequence, 10)
}

func parseReceipt(text string) (r receipt, ok bool) {
	token, sequence, _ := strings.Cut(text, ".")
	if hex.DecodedLen(len(token)) != len(r.token) {
		return receipt{}, false
	}
	_, tokenErr := hex.Decode(r.token[:], []byte(token))
	var err error
	r.sequence, err = strconv.ParseInt(sequence, 10, 64)
	return r, errors.Join(tokenErr, err) == nil
}

// settle calls f with what is known of the message of d: in the process that
// received it, what settles on the link that it came by, which costs half as
// much; else its lock token, which settles through management.
func (q *queue) settle(ctx context.Context, d port.Delivery, doing string, f func(ctx context.Context, r *azservicebus.Receiver, m *azservicebus.ReceivedMessage) error) error {
	known, ok := parseReceipt(d.Receipt)
	if !ok {
		return q.noReceipt(ctx, d)
	}
	err := q.within(ctx, settleBound, doing, func(ctx context.Context, c *connection) error {
		r, err := c.manager(q)
		if err != nil {
			return err
		}
		return f(ctx, r, c.release(known.token))
	})
	if fault.Is(err, fault.Unavailable) {
		// Where the client repeats by itself it hides what was wrong. A look, which
		// it does not repeat, tells whether the connection is of use.
		_, _ = q.peek(ctx, 0, 1)
	}
	return err
}

// noReceipt is the answer to a receipt that no queue gave.
func (q *queue) noReceipt(ctx context.Context, d port.Delivery) error {
	if _, err := q.Peek(ctx, 1); err != nil {
		return err
	}
	return fault.Newf(fault.Invalid, "%q is not a receipt of queue %s", d.Receipt, q.name)
}

// Extend locks d for the lock time of the queue from now on, whatever lock is.
// The receipt stays.
func (q *queue) Extend(ctx context.Context, d *port.Delivery, lock time.Duration) error {
	known, ok := parseReceipt(d.Receipt)
	if !ok {
		return q.noReceipt(ctx, *d)
	}
	return q.call(ctx, "extending a message of", func(ctx context.Context, c *connection) error {
		r, err := c.manager(q)
		if err != nil {
			return err
		}
		m := &azservicebus.ReceivedMessage{LockToken: known.token}
		if err := r.RenewMessageLock(ctx, m, nil); err != nil {
			return err
		}
		d.Until = q.until(m, time.Now())
		c.prolong(known.token, d.Until)
		return nil
	})
}

// Acknowledge completes the messages in parallel.
func (q *queue) Acknowledge(ctx context.Context, ds []port.Delivery) []error {
	errs := make([]error, len(ds))
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(parallel, len(ds)) {
		wg.Go(func() {
			for i := range next {
				errs[i] = q.acknowledge(ctx, ds[i])
			}
		})
	}
	for i := range ds {
		next <- i
	}
	close(next)
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return errs
		}
	}
	return nil
}

func (q *queue) acknowledge(ctx context.Context, d port.Delivery) error {
	err := q.complete(ctx, d)
	if !fault.Is(err, fault.LeaseLost) {
		return err
	}
	// The service says the same of a message that is gone, which is done, and of
	// one that another receiver has.
	gone, lookErr := q.gone(ctx, d)
	if lookErr != nil {
		return lookErr
	}
	if gone {
		return nil
	}
	return err
}

func (q *queue) complete(ctx context.Context, d port.Delivery) error {
	return q.settle(ctx, d, "acknowledging a message of", func(ctx context.Context, r *azservicebus.Receiver, m *azservicebus.ReceivedMessage) error {
		return r.CompleteMessage(ctx, m, nil)
	})
}

// gone reports whether the message of d is no longer in the queue.
func (q *queue) gone(ctx context.Context, d port.Delivery) (bool, error) {
	known, _ := parseReceipt(d.Receipt)
	found, err := q.peek(ctx, known.sequence, 1)
	if err != nil {
		return false, err
	}
	return len(found) == 0 || receiptOf(found[0]).sequence != known.sequence, nil
}

// Release sends a copy that appears after delay and completes d. A dead letter
// stays what it is and is free at once.
func (q *queue) Release(ctx context.Context, d port.Delivery, delay time.Duration) error {
	if q.dead {
		if delay > 0 {
			return fault.Newf(fault.Invalid, "a message of %s can be given back at once only", q.name)
		}
		return q.settle(ctx, d, "giving back a message of", func(ctx context.Context, r *azservicebus.Receiver, m *azservicebus.ReceivedMessage) error {
			return r.AbandonMessage(ctx, m, nil)
		})
	}
	if err := q.checkDelay(delay); err != nil {
		return err
	}
	// Who has lost the lock must leave no copy; who has it now has time for both.
	held := d
	if err := q.Extend(ctx, &held, q.bus.o.Lock); err != nil {
		return err
	}
	if err := q.sendCopy(ctx, d, delay); err != nil {
		return err
	}
	err := q.acknowledge(ctx, d)
	if fault.Is(err, fault.Unavailable) {
		// Where only the answer was lost, a caller that repeats the release would
		// hear that the lock is lost, though all is done.
		err = q.acknowledge(ctx, d)
	}
	return err
}

func (q *queue) sendCopy(ctx context.Context, d port.Delivery, delay time.Duration) error {
	m := port.Message{ID: copyID(d), Body: d.Body, Delay: delay}
	return q.call(ctx, "giving back a message of", func(ctx context.Context, c *connection) error {
		s, err := c.sender(q)
		if err != nil {
			return err
		}
		return s.SendMessage(ctx, outgoing(m, time.Now().Add(delay), map[string]any{deliveriesProperty: int64(d.Count)}), nil)
	})
}

// copySuffix separates an id from what makes that of a copy.
const copySuffix = "/copy-"

// copyID is the id of the copy that a release of d makes: the same for every
// repeat of that release, another for every other delivery.
func copyID(d port.Delivery) string {
	token, _, _ := strings.Cut(d.Receipt, ".")
	id := d.ID
	// A copy of a copy is named after the first message.
	if at := len(id) - len(copySuffix) - len(token); at >= 0 && strings.HasPrefix(id[at:], copySuffix) {
		id = id[:at]
	}
	id += copySuffix + token
	if len(id) > maxID {
		sum := sha256.Sum256([]byte(id))
		return "sha256/" + hex.EncodeToString(sum[:])
	}
	return id
}

// Poison moves d to the dead-letter queue.
func (q *queue) Poison(ctx context.Context, d port.Delivery, reason string) error {
	if q.dead {
		return fault.Newf(fault.Invalid, "a message of %s is poisoned already", q.name)
	}
	text := cut(reason, maxReason)
	return q.settle(ctx, d, "poisoning a message of", func(ctx context.Context, r *azservicebus.Receiver, m *azservicebus.ReceivedMessage) error {
		return r.DeadLetterMessage(ctx, m, &azservicebus.DeadLetterOptions{Reason: new(reasonMark), ErrorDescription: &text})
	})
}

// cut shortens text to at most limit bytes of whole characters.
func cut(text string, limit int) string {
	text = strings.ToValidUTF8(text, "�")
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}
