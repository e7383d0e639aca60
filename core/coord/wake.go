package coord

import (
	"context"
	"time"

	"jobq/core/engine"
	"jobq/core/fault"
	"jobq/core/msg"
	"jobq/core/port"
)

const (
	firstWake = time.Second
	lastWake  = 5 * time.Minute
)

// Wake looks at workflow wf and does what its state still wants, as if a
// message of a stopped process had come back.
func (c *Coordinator) Wake(ctx context.Context, wf string) error {
	return c.run(ctx, &job{wf: wf, items: []*item{{event: engine.Wake{}, trace: true}}, direct: true})
}

// open reports whether the workflow needs a wake: something stays unsent,
// unevaluated, unfenced or parked until a time. While it is being cancelled, the
// records of live attempts say when they are over only to those who look: a
// holder that dies reports nothing.
func (c *Coordinator) open(j *job, e *entry) bool {
	return c.openSoon(j, e) || !e.run.ParkedUntil().IsZero()
}

func (c *Coordinator) openSoon(j *job, e *entry) bool {
	return j.left || e.run.Cancelling() || len(e.candidates()) > 0
}

// wakeLater puts one delayed wake, unless one that this process put comes in
// time. The delay doubles while wakes do not help.
func (c *Coordinator) wakeLater(ctx context.Context, j *job, e *entry) error {
	now := c.sched.Now()
	var pending time.Time
	var last time.Duration
	c.note(j.wf, func(n *note) { pending, last = n.wakeAt, n.wakeDelay })
	if j.helped {
		last = 0
	}
	delay, soon := lastWake, c.openSoon(j, e)
	if soon {
		last = min(max(2*last, firstWake, j.patience), lastWake)
		delay = last
	}
	if until := e.run.ParkedUntil(); !until.IsZero() {
		delay = min(delay, max(until.Sub(now), firstWake))
	}
	q := c.store.Queues.Queue(e.run.State().Namespace + c.o.Inbox)
	if most := q.Props().MaxDelay; most > 0 {
		delay = min(delay, most)
	}
	if now.Before(pending) && !pending.After(now.Add(delay)) {
		return nil
	}
	body, err := msg.EncodeWake(msg.Wake{Workflow: j.wf})
	if err != nil {
		return err
	}
	if err := c.tell(ctx, q, port.Message{ID: c.newID(), Body: body, Delay: delay}); err != nil {
		return err
	}
	c.stats.wakes.Add(1)
	c.note(j.wf, func(n *note) { n.wakeAt, n.wakeDelay = now.Add(delay), last })
	return nil
}

// tell puts m into an inbox, which it makes where there is none. A missing inbox
// is an outage: it must not pass for a workflow that does not exist.
func (c *Coordinator) tell(ctx context.Context, q port.Queue, m port.Message) error {
	err := firstError(q.Send(ctx, []port.Message{m}))
	if !fault.Is(err, fault.NotFound) {
		return err
	}
	if err := c.store.Queues.Ensure(ctx, q.Name()); err != nil {
		return fault.Wrapf(fault.Unavailable, err, "queue %q does not exist", q.Name())
	}
	if err = firstError(q.Send(ctx, []port.Message{m})); fault.Is(err, fault.NotFound) {
		return fault.Wrapf(fault.Unavailable, err, "queue %q does not stay", q.Name())
	}
	return err
}
