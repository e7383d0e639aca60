package coord

import (
	"cmp"
	"context"
	"errors"
	"time"

	"jobq/core/fault"
	"jobq/core/msg"
	"jobq/core/port"
)

// flushAll stores what only this process knows, though ctx may have ended.
func (c *Coordinator) flushAll(ctx context.Context) {
	ctx, cancel := c.sched.WithTimeout(context.WithoutCancel(ctx), c.roundTime(), "the last saves of the coordinator")
	defer cancel()
	c.FlushTrailing(ctx, true)
}

// receive takes a batch: many receives in a row, while they come back full.
func (c *Coordinator) receive(ctx context.Context, wait time.Duration) ([]port.Delivery, error) {
	q := c.inbox()
	start := c.sched.Now()
	full := c.o.BatchSize
	if most := q.Props().MaxBatch; most > 0 {
		full = min(full, most)
	}
	var all []port.Delivery
	for range c.o.MaxReceives {
		got, err := q.Receive(ctx, port.ReceiveOptions{Max: full, Lock: c.o.Visibility, Wait: wait})
		switch {
		case err != nil && len(all) > 0:
			// What is in our hands is locked and must be worked on.
			c.log.Warn("inbox read in part", "error", err)
			return all, nil
		case fault.Is(err, fault.NotFound):
			return nil, c.store.Queues.Ensure(ctx, q.Name())
		case err != nil:
			return nil, err
		}
		c.stats.received.Add(int64(len(got)))
		all = append(all, got...)
		wait = 0
		if len(got) < full || c.sched.Now().Sub(start) > c.roundTime()/4 {
			break
		}
	}
	return all, nil
}

// round applies a batch that was asked for at start, workflow by workflow, each
// with a deadline of its own; none waits for another. Where another round of this
// process is at a workflow, that one gets the job.
func (c *Coordinator) round(ctx context.Context, start time.Time, deliveries []port.Delivery) {
	jobs, _ := c.group(ctx, start, deliveries)
	c.sched.Parallel(ctx, len(jobs), c.o.Parallel, func(ctx context.Context, i int) {
		if !c.takeTurn(jobs[i]) {
			return
		}
		for j := jobs[i]; j != nil; j = c.nextTurn(ctx, j.wf) {
			c.runMessages(ctx, j)
		}
	})
}

// runMessages applies and settles the messages of a job, unless their locks would
// end meanwhile: then they come back by themselves, or are put back.
func (c *Coordinator) runMessages(ctx context.Context, j *job) {
	if c.late(j) {
		c.leave(ctx, j)
		return
	}
	c.settle(ctx, j, c.run(ctx, j))
}

// late reports whether the locks of a job's messages would end while it runs.
func (c *Coordinator) late(j *job) bool {
	return c.sched.Now().Sub(j.received) > c.roundTime()*3/2
}

var errNoTime = fault.New(fault.Unavailable, "there was no time for the message")

// leave lets the messages of a job come back by themselves. Those of a host do
// not: it removes what it is told nothing of.
func (c *Coordinator) leave(ctx context.Context, j *job) {
	ctx, cancel := c.sched.WithTimeout(context.WithoutCancel(ctx), c.roundTime(), "putting messages back")
	defer cancel()
	c.stats.released.Add(int64(len(j.items)))
	c.log.Warn("messages come back later, there was no time for them", "workflow", j.wf, "messages", len(j.items))
	for _, it := range j.items {
		if it.delivery != nil && hosted(it.delivery) {
			j.unsettled = cmp.Or(j.unsettled, c.putBack(ctx, j.wf, it.delivery, it.inbox.Wake != nil, errNoTime))
		}
	}
}

// group sorts deliveries into jobs, in the order of their first message.
// Undecodable ones are poison at once; err is why one of a host is not.
func (c *Coordinator) group(ctx context.Context, start time.Time, deliveries []port.Delivery) (jobs []*job, err error) {
	byWF := map[string]*job{}
	for i := range deliveries {
		d := &deliveries[i]
		in, undecodable := msg.DecodeInbox(d.Body)
		if undecodable != nil {
			err = cmp.Or(err, c.poison(ctx, d, undecodable))
			continue
		}
		wf := workflowOf(in)
		j := byWF[wf]
		if j == nil {
			j = &job{wf: wf, received: start}
			byWF[wf] = j
			jobs = append(jobs, j)
		}
		trace := d.Count > 1 || in.Wake != nil || in.Command != nil || hosted(d)
		j.items = append(j.items, &item{delivery: d, inbox: in, trace: trace})
	}
	return jobs, err
}

func workflowOf(in msg.Inbox) string {
	switch {
	case in.Completion != nil:
		return in.Completion.Workflow
	case in.Wake != nil:
		return in.Wake.Workflow
	default:
		return in.Command.Workflow
	}
}

// ackChunk bounds the messages that are acknowledged in one call.
const ackChunk = 100

// settle acknowledges the messages of a job, or gives them back. Poison is a
// verdict: the very state is absent while its container is there, or the message
// can never be read.
func (c *Coordinator) settle(ctx context.Context, j *job, err error) {
	// The job's deadline bounds the work, not the settlement.
	ctx, cancel := c.sched.WithTimeout(context.WithoutCancel(ctx), c.roundTime(), "settling messages")
	defer cancel()
	_, absent := errors.AsType[*absentError](err)
	_, purged := errors.AsType[*purgedError](err)
	if err != nil && !purged && !absent {
		c.log.Warn("messages given back", "workflow", j.wf, "messages", len(j.items), "error", err)
	}
	done := make([]port.Delivery, 0, len(j.items))
	for _, it := range j.items {
		var failed error
		switch {
		case it.delivery == nil:
		case absent:
			failed = c.poison(ctx, it.delivery, err)
		case err != nil && !purged:
			failed = c.release(ctx, j.wf, it, err)
		case fault.Is(it.err, fault.Invalid):
			failed = c.poison(ctx, it.delivery, it.err)
		case it.err != nil:
			c.log.Warn("message given back", "workflow", j.wf, "id", it.delivery.ID, "error", it.err)
			failed = c.release(ctx, j.wf, it, it.err)
		case !hosted(it.delivery):
			done = append(done, *it.delivery)
		}
		j.unsettled = cmp.Or(j.unsettled, failed)
	}
	if err == nil {
		c.note(j.wf, func(n *note) { n.putBack, n.putBackAgain = 0, time.Time{} })
	}
	c.acknowledge(ctx, done)
}

func (c *Coordinator) acknowledge(ctx context.Context, done []port.Delivery) {
	chunks := (len(done) + ackChunk - 1) / ackChunk
	c.sched.Parallel(ctx, chunks, c.o.Parallel, func(ctx context.Context, i int) {
		some := done[i*ackChunk : min((i+1)*ackChunk, len(done))]
		for k, err := range c.inbox().Acknowledge(ctx, some) {
			if err != nil {
				c.log.Debug("message not acknowledged, it comes back", "id", some[k].ID, "error", err)
			}
		}
	})
}

// release gives a message back, to come again after a pause that grows with its
// deliveries from one second to five minutes, or the one that a service asked for.
// It fails only for a message of a host.
func (c *Coordinator) release(ctx context.Context, wf string, it *item, why error) error {
	c.stats.released.Add(1)
	d := it.delivery
	if hosted(d) {
		return c.putBack(ctx, wf, d, it.inbox.Wake != nil, why)
	}
	pause := c.jitter(min(firstWake<<min(max(d.Count, 1), 9), lastWake))
	pause = max(pause, fault.RetryAfter(why))
	if most := c.inbox().Props().MaxDelay; most > 0 {
		pause = min(pause, most)
	}
	if err := c.inbox().Release(ctx, *d, pause); err != nil {
		c.log.Debug("message comes back by itself", "id", d.ID, "error", err)
	}
	return nil
}

// poison moves a message to the poison queue. It fails only for a message of a
// host.
func (c *Coordinator) poison(ctx context.Context, d *port.Delivery, why error) error {
	c.stats.poison.Add(1)
	c.log.Warn("message is poison", "queue", c.inbox().Name(), "id", d.ID, "why", why)
	if hosted(d) {
		return firstError(c.inbox().PoisonQueue().Send(ctx, []port.Message{{ID: c.newID(), Body: d.Body}}))
	}
	if err := c.inbox().Poison(ctx, *d, why.Error()); err != nil {
		c.log.Warn("poison not moved, it comes back", "id", d.ID, "error", err)
	}
	return nil
}
