package coord

import (
	"context"
	"time"

	"jobq/core/fault"
	"jobq/core/msg"
	"jobq/core/port"
)

// A function host delivers a message, counts its failures, and removes it when the
// function succeeds: such a delivery has no receipt. It must never fail for what
// may be applied later, or its count would make it poison. So it is put back as a
// copy and answered with success.

// hosted reports whether the host that delivered d settles it.
func hosted(d *port.Delivery) bool { return d.Receipt == "" }

// putBack sends a copy of a message that cannot be applied now, and a wake behind
// it: the copy is a first delivery, but may be the trace of a crash. The pause
// doubles from one second to five minutes while a workflow makes no progress.
func (c *Coordinator) putBack(ctx context.Context, wf string, d *port.Delivery, why error) error {
	var pause time.Duration
	c.note(wf, func(n *note) {
		n.putBack = min(max(2*n.putBack, firstWake), lastWake)
		pause = n.putBack
	})
	pause = max(c.jitter(pause), fault.RetryAfter(why))
	q := c.inbox()
	if most := q.Props().MaxDelay; most > 0 {
		pause = min(pause, most)
	}
	wake, err := msg.EncodeWake(msg.Wake{Workflow: wf})
	if err != nil {
		return err
	}
	return firstError(q.Send(ctx, []port.Message{
		{ID: c.newID(), Body: d.Body, Delay: pause},
		{ID: c.newID(), Body: wake, Delay: pause},
	}))
}
