package azbus

import (
	"context"
	"time"

	"jobq/core/port"
)

// SendLate sends m on the connection that was the current one before f ran.
func SendLate(ctx context.Context, to port.Queue, m port.Message, f func()) error {
	q := to.(*queue)
	return q.call(ctx, "sending to", func(ctx context.Context, c *connection) error {
		f()
		s, err := c.sender(q)
		if err != nil {
			return err
		}
		return s.SendMessage(ctx, outgoing(m, time.Time{}, nil), nil)
	})
}
