package azbus

import (
	"context"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"jobq/core/fault"
	"jobq/core/port"
)

// page is how many messages one peek asks for; the service may give less.
const page = 250

// peek returns up to most messages with a number of first or more, in order. It
// makes as many calls as it takes.
func (q *queue) peek(ctx context.Context, first int64, most int) ([]*azservicebus.ReceivedMessage, error) {
	var all []*azservicebus.ReceivedMessage
	for len(all) < most {
		var got []*azservicebus.ReceivedMessage
		err := q.call(ctx, "looking into", func(ctx context.Context, c *connection) error {
			r, err := c.manager(q)
			if err != nil {
				return err
			}
			got, err = r.PeekMessages(ctx, min(page, most-len(all)), &azservicebus.PeekMessagesOptions{FromSequenceNumber: &first})
			return err
		})
		if err != nil || len(got) == 0 {
			return all, err
		}
		all = append(all, got...)
		first = receiptOf(got[len(got)-1]).sequence + 1
	}
	return all, nil
}

// Peek shows hidden messages too: the service does not tell them apart.
func (q *queue) Peek(ctx context.Context, most int) ([]port.Delivery, error) {
	messages, err := q.peek(ctx, 0, most)
	if err != nil {
		return nil, err
	}
	ds := make([]port.Delivery, len(messages))
	for i, m := range messages {
		ds[i] = q.delivery(m)
	}
	return ds, nil
}

// Count asks the service, which needs the right to manage; without it, the
// messages are looked at one by one.
func (q *queue) Count(ctx context.Context) (int, error) {
	n, err := q.runtimeCount(ctx)
	if !fault.Is(err, fault.Denied) {
		return n, err
	}
	n = 0
	for first := int64(0); ; {
		messages, err := q.peek(ctx, first, page)
		if err != nil || len(messages) == 0 {
			return n, err
		}
		n += len(messages)
		first = receiptOf(messages[len(messages)-1]).sequence + 1
	}
}

func (q *queue) runtimeCount(ctx context.Context) (int, error) {
	n := 0
	err := q.manage(ctx, "counting the messages of", func(ctx context.Context) error {
		p, err := q.bus.admin.GetQueueRuntimeProperties(ctx, q.parent, nil)
		switch {
		case err != nil:
			return err
		case p == nil:
			return fault.Newf(fault.NotFound, "queue %s does not exist in %s", q.parent, q.bus.o.Namespace)
		case q.dead:
			n = int(p.DeadLetterMessageCount)
		default:
			n = int(p.ActiveMessageCount) + int(p.ScheduledMessageCount)
		}
		return nil
	})
	return n, err
}

// Clear cancels what is scheduled and takes out what can be received.
func (q *queue) Clear(ctx context.Context) (int, error) {
	removed, err := q.cancelScheduled(ctx)
	if err != nil {
		return removed, err
	}
	for {
		ds, err := q.Receive(ctx, port.ReceiveOptions{Max: maxBatch, Lock: q.bus.o.Lock})
		if err != nil || len(ds) == 0 {
			return removed, err
		}
		for _, err := range q.Acknowledge(ctx, ds) {
			if err != nil {
				return removed, err
			}
		}
		removed += len(ds)
	}
}

func (q *queue) cancelScheduled(ctx context.Context) (int, error) {
	removed := 0
	for first := int64(0); ; {
		messages, err := q.peek(ctx, first, page)
		if err != nil || len(messages) == 0 {
			return removed, err
		}
		for _, m := range messages {
			first = receiptOf(m).sequence + 1
			if m.State != azservicebus.MessageStateScheduled {
				continue
			}
			err := q.cancel(ctx, receiptOf(m).sequence)
			if fault.Is(err, fault.NotFound) {
				// It has become due, and will be received.
				continue
			}
			if err != nil {
				return removed, err
			}
			removed++
		}
	}
}

func (q *queue) cancel(ctx context.Context, sequence int64) error {
	return q.call(ctx, "clearing", func(ctx context.Context, c *connection) error {
		s, err := c.sender(q)
		if err != nil {
			return err
		}
		return s.CancelScheduledMessages(ctx, []int64{sequence}, nil)
	})
}
