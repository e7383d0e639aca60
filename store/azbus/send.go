package azbus

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"jobq/core/fault"
	"jobq/core/port"
)

// Send stores messages in batches: those of one delay together, each batch as
// large as the service takes it. A batch is stored whole or not at all.
func (q *queue) Send(ctx context.Context, messages []port.Message) []error {
	errs := make([]error, len(messages))
	var good []int
	for i, m := range messages {
		if errs[i] = q.checkMessage(m); errs[i] == nil {
			good = append(good, i)
		}
	}
	slices.SortStableFunc(good, func(a, b int) int { return cmp.Compare(messages[a].Delay, messages[b].Delay) })
	for len(good) > 0 {
		sent, err := q.sendBatch(ctx, messages, good, errs)
		if err != nil && sent == 0 {
			// What ends a batch for a reason of its own would end the others too.
			for _, i := range good {
				errs[i] = err
			}
			break
		}
		good = good[sent:]
	}
	if slices.ContainsFunc(errs, func(err error) bool { return err != nil }) {
		return errs
	}
	return nil
}

func (q *queue) checkMessage(m port.Message) error {
	if err := q.check(); err != nil {
		return err
	}
	switch {
	case q.dead:
		return fault.Newf(fault.Invalid, "nothing can be sent to %s: the service alone fills it", q.name)
	case len(m.Body) > maxMessage:
		return fault.Newf(fault.TooLarge, "a message for queue %s has %d bytes, the limit is %d", q.name, len(m.Body), maxMessage)
	case len(m.ID) > maxID:
		return fault.Newf(fault.Invalid, "the message id %q has %d bytes, the limit is %d", m.ID, len(m.ID), maxID)
	default:
		return q.checkDelay(m.Delay)
	}
}

func (q *queue) checkDelay(delay time.Duration) error {
	if delay > maxDelay {
		return fault.Newf(fault.Invalid, "queue %s delays a message by at most %v, not by %v", q.name, maxDelay, delay)
	}
	return nil
}

// sendBatch sends the first messages of places that have one delay and fit into
// one batch, and returns how many it has dealt with. errs has their results. It
// deals with none where the error is not theirs.
func (q *queue) sendBatch(ctx context.Context, messages []port.Message, places []int, errs []error) (dealt int, err error) {
	err = q.call(ctx, "sending to", func(ctx context.Context, c *connection) error {
		s, err := c.sender(q)
		if err != nil {
			return err
		}
		batch, err := s.NewMessageBatch(ctx, nil)
		if err != nil {
			return err
		}
		dealt = 0
		delay := messages[places[0]].Delay
		at := time.Now().Add(delay)
		for _, i := range places {
			if messages[i].Delay != delay {
				break
			}
			err := batch.AddMessage(outgoing(messages[i], at, nil), nil)
			if errors.Is(err, azservicebus.ErrMessageTooLarge) {
				if batch.NumMessages() > 0 {
					break
				}
				errs[i] = fault.Wrapf(fault.TooLarge, err, "a message for queue %s does not fit into a batch", q.name)
				dealt++
				return nil
			}
			if err != nil {
				return err
			}
			dealt++
		}
		return s.SendMessageBatch(ctx, batch, nil)
	})
	if err != nil {
		return 0, err
	}
	return dealt, nil
}

// outgoing is a message as the client takes it, for at where that is a delay.
// It has no time to live of its own: that of the queue is the longest.
func outgoing(m port.Message, at time.Time, properties map[string]any) *azservicebus.Message {
	out := &azservicebus.Message{Body: m.Body, ApplicationProperties: properties}
	if m.ID != "" {
		out.MessageID = &m.ID
	}
	if m.Delay > 0 {
		out.ScheduledEnqueueTime = &at
	}
	return out
}
