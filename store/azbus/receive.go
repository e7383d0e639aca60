package azbus

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"jobq/core/fault"
	"jobq/core/port"
)

// Receive locks each message for the lock time of the queue, whatever o.Lock
// says. It asks for no more than o.Max.
func (q *queue) Receive(ctx context.Context, o port.ReceiveOptions) ([]port.Delivery, error) {
	if o.Max <= 0 || o.Lock <= 0 {
		return nil, fault.Newf(fault.Invalid, "a receive from queue %s needs a number of messages and a lock", q.name)
	}
	r, c, err := q.receiver(ctx)
	if err != nil {
		return nil, err
	}
	wait, cancel := context.WithTimeout(ctx, max(o.Wait, q.bus.o.ShortestWait))
	defer cancel()
	messages, err := q.gather(wait, c, r, min(o.Max, maxBatch))
	switch {
	case len(messages) > 0 || err != nil && wait.Err() != nil && !broken(err):
		// That the time is up says nothing about the receiver.
		c.giveBack(q, r)
	case err == nil:
		// The client hides that the link broke while it waited.
		q.bus.discard(c)
		return nil, fault.Newf(fault.Unavailable, "the connection to queue %s of %s was lost", q.name, q.bus.o.Namespace)
	default:
		failure := q.failOn(ctx, c, err, "receiving from")
		q.bus.discard(c)
		return nil, failure
	}
	if len(messages) == 0 && ctx.Err() != nil {
		return nil, q.fail(ctx, err, "receiving from")
	}
	now := time.Now()
	ds := make([]port.Delivery, len(messages))
	for i, m := range messages {
		ds[i] = q.delivery(m)
		ds[i].Count = int(m.DeliveryCount) + q.earlier(m)
		ds[i].Receipt = receiptOf(m).String()
		ds[i].Until = q.until(m, now)
		c.hold(m, ds[i].Until)
	}
	return ds, nil
}

// receiver borrows a receiver whose link is there: making one takes longer than
// a receive may wait, and says whether the queue exists.
func (q *queue) receiver(ctx context.Context) (*azservicebus.Receiver, *connection, error) {
	var found *azservicebus.Receiver
	var on *connection
	err := q.call(ctx, "receiving from", func(ctx context.Context, c *connection) error {
		r, fresh, err := c.borrow(q)
		if err != nil {
			return err
		}
		if fresh {
			if _, err := r.PeekMessages(ctx, 1, &azservicebus.PeekMessagesOptions{FromSequenceNumber: new(int64(0))}); err != nil {
				return errors.Join(err, r.Close(ctx))
			}
		}
		found, on = r, c
		return nil
	})
	return found, on, err
}

// gatherings bounds, in units of Options.Gather, how long the first message of a
// receive waits for more.
const gatherings = 10

// gather waits for a first message until ctx ends, and then goes on while more
// comes: the client returns soon after the first, with less than there is.
//
// It asks for as many as came last time, and for twice as many while all come.
// What is asked for and does not come stays open on the link, and whatever
// arrives there between two receives is a delivery for nothing.
func (q *queue) gather(ctx context.Context, c *connection, r *azservicebus.Receiver, most int) ([]*azservicebus.ReceivedMessage, error) {
	o := &azservicebus.ReceiveMessagesOptions{TimeAfterFirstMessage: q.bus.o.Gather}
	ask := min(most, c.pace(q))
	all, err := r.ReceiveMessages(ctx, ask, o)
	end := time.Now().Add(gatherings * q.bus.o.Gather)
	for got := len(all); err == nil && got > 0 && len(all) < most && ctx.Err() == nil && time.Now().Before(end); {
		if got == ask {
			ask *= 2
		}
		ask = min(ask, most-len(all))
		more, cancel := context.WithTimeout(ctx, q.bus.o.Gather)
		var next []*azservicebus.ReceivedMessage
		next, err = r.ReceiveMessages(more, ask, o)
		cancel()
		got = len(next)
		all = append(all, next...)
	}
	c.setPace(q, len(all))
	return all, err
}

// delivery is what a message is, received or peeked.
func (q *queue) delivery(m *azservicebus.ReceivedMessage) port.Delivery {
	d := port.Delivery{ID: m.MessageID, Body: body(m), Reason: reason(m)}
	if m.EnqueuedTime != nil {
		d.Sent = *m.EnqueuedTime
	}
	return d
}

// body returns the bytes of a message, also of one that a client in another
// language wrote as a text or in parts.
func body(m *azservicebus.ReceivedMessage) []byte {
	if m.Body != nil || m.RawAMQPMessage == nil {
		return m.Body
	}
	switch v := m.RawAMQPMessage.Body.Value.(type) {
	case string:
		return []byte(v)
	case []byte:
		return v
	}
	var whole []byte
	for _, part := range m.RawAMQPMessage.Body.Data {
		whole = append(whole, part...)
	}
	return whole
}

// assumedLock is the lock of a message where the clocks tell nothing.
const assumedLock = 30 * time.Second

// until is when a lock that was just given ends by our clock. The service tells
// it by its own, which may be ahead: no lock is longer than Options.Lock.
func (q *queue) until(m *azservicebus.ReceivedMessage, now time.Time) time.Time {
	lock := q.bus.o.Lock
	if m.LockedUntil != nil {
		seen := m.LockedUntil.Sub(now)
		if seen <= 0 {
			// One of the clocks is wrong by more than the lock.
			seen = assumedLock
		}
		lock = min(lock, seen)
	}
	q.bus.sawLock(q, lock)
	return now.Add(lock)
}

// deliveriesProperty carries the deliveries before a release.
const deliveriesProperty = "jobq-deliveries"

// earlier returns the deliveries of a message before it was given back. A dead
// letter begins anew.
func (q *queue) earlier(m *azservicebus.ReceivedMessage) int {
	n, _ := m.ApplicationProperties[deliveriesProperty].(int64)
	if q.dead || n < 0 {
		return 0
	}
	return int(n)
}

// reasonMark is the reason of dead letters that Poison made; what it says to
// people is the description.
const reasonMark = "jobq"

func reason(m *azservicebus.ReceivedMessage) string {
	var parts []string
	for _, p := range []*string{m.DeadLetterReason, m.DeadLetterErrorDescription} {
		if p != nil && *p != "" && *p != reasonMark {
			parts = append(parts, *p)
		}
	}
	return strings.Join(parts, ": ")
}
