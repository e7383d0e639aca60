package coord

import (
	"context"
	"errors"
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
// it: the copy is a first delivery, but may be the trace of a crash. Where a wake
// that this process put comes then, none is needed, and one that is to be put back
// is not: else a workflow that cannot be read would fill the inbox with wakes. The
// pause doubles from one second to five minutes while a workflow makes no progress.
func (c *Coordinator) putBack(ctx context.Context, wf string, d *port.Delivery, isWake bool, why error) error {
	now := c.sched.Now()
	var longest time.Duration
	var coming time.Time
	c.note(wf, func(n *note) {
		if !now.Before(n.putBackAgain) {
			n.putBack = min(max(2*n.putBack, firstWake), lastWake)
			// No message that is put back now comes sooner: those that fail until then
			// failed with this one.
			n.putBackAgain = now.Add(n.putBack / 2)
		}
		longest, coming = n.putBack, n.wakeAt
	})
	q := c.inbox()
	pause := max(c.jitter(longest), fault.RetryAfter(why))
	behind := max(longest, pause)
	if most := q.Props().MaxDelay; most > 0 {
		pause, behind = min(pause, most), min(behind, most)
	}
	var messages []port.Message
	earliest := now.Add(time.Nanosecond)
	if !isWake {
		messages = append(messages, port.Message{ID: c.newID(), Body: d.Body, Delay: pause})
		earliest = now.Add(pause)
	}
	woken := !coming.Before(earliest) && !coming.After(now.Add(behind))
	if !woken {
		wake, err := msg.EncodeWake(msg.Wake{Workflow: wf})
		if err != nil {
			return err
		}
		messages = append(messages, port.Message{ID: c.newID(), Body: wake, Delay: behind})
	}
	if len(messages) == 0 {
		return nil
	}
	if err := firstError(q.Send(ctx, messages)); err != nil {
		return err
	}
	if !woken {
		c.note(wf, func(n *note) { n.wakeAt = now.Add(behind) })
	}
	return nil
}

// Reconsider judges d, which a host that counts failures moved to the poison queue
// of the inbox: no count is a verdict. What may be applied goes back into the inbox
// as a copy with a wake behind it; then verdict is nil, as it is where the workflow
// was purged and nobody needs d. Otherwise verdict says why d stays where it is.
// With an error d must be looked at again.
func (c *Coordinator) Reconsider(ctx context.Context, d port.Delivery) (verdict, err error) {
	in, undecodable := msg.DecodeInbox(d.Body)
	if undecodable != nil {
		return undecodable, nil
	}
	wf := workflowOf(in)
	_, err = c.read(ctx, wf)
	if absent, ok := errors.AsType[*absentError](err); ok {
		return absent, nil
	}
	if _, purged := errors.AsType[*purgedError](err); purged {
		return nil, nil
	}
	return nil, c.putBack(ctx, wf, &d, in.Wake != nil, err)
}
