package coord

import (
	"context"
	"errors"
	"slices"
	"time"

	"jobq/core/fault"
	"jobq/core/msg"
	"jobq/core/port"
)

const roundOperation = "a round of the coordinator"

// Drain runs rounds until the inbox is empty or budget is used, and then saves
// the marks of accepted sends. It returns how many messages it took up. first
// are messages that the caller holds already.
func (c *Coordinator) Drain(ctx context.Context, budget time.Duration, first []port.Delivery) (int, error) {
	end := c.sched.Now().Add(budget)
	n := len(first)
	if n > 0 {
		c.round(ctx, first)
	}
	for ctx.Err() == nil && c.sched.Now().Before(end) {
		got, err := c.receive(ctx, 0)
		if err != nil {
			c.FlushTrailing(ctx, true)
			return n, err
		}
		if len(got) == 0 {
			break
		}
		n += len(got)
		c.round(ctx, got)
		c.FlushTrailing(ctx, false)
	}
	c.FlushTrailing(ctx, true)
	return n, nil
}

// Serve drains and sweeps until ctx ends, finishes the round that it is in, and
// returns nil. The lease of Options.Holder decides whether it drains.
func (c *Coordinator) Serve(ctx context.Context) error {
	var sleep time.Duration
	lastSweep := c.sched.Now()
	defer func() {
		stop, cancel := c.sched.WithTimeout(context.WithoutCancel(ctx), c.o.Visibility, "the last saves of the coordinator")
		defer cancel()
		c.FlushTrailing(stop, true)
		c.releaseLease(stop)
	}()
	for ctx.Err() == nil {
		if !c.holdLease(ctx) {
			if err := c.sched.Sleep(ctx, c.jitter(leaseTime/4)); err != nil {
				return nil
			}
			continue
		}
		if c.sched.Now().Sub(lastSweep) >= c.o.SweepInterval {
			lastSweep = c.sched.Now()
			if _, err := c.Sweep(ctx); err != nil && ctx.Err() == nil {
				c.log.Warn("sweep not finished", "error", err)
			}
		}
		got, err := c.receive(ctx, c.waitTime())
		switch {
		case err != nil && ctx.Err() != nil:
			return nil
		case err != nil:
			c.log.Warn("inbox not read", "error", err)
			sleep = min(max(2*sleep, 100*time.Millisecond), 10*time.Second)
		case len(got) == 0 && c.inbox().Props().CanWait:
			sleep = 0
		case len(got) == 0:
			sleep = min(max(2*sleep, 10*time.Millisecond), c.o.IdleSleep)
		default:
			sleep = 0
			c.round(context.WithoutCancel(ctx), got)
		}
		c.FlushTrailing(context.WithoutCancel(ctx), false)
		if sleep > 0 {
			if err := c.sched.Sleep(ctx, max(fault.RetryAfter(err), sleep)); err != nil {
				return nil
			}
		}
	}
	return nil
}

// waitTime is how long a receive may wait: not past the next trailing save or
// sweep.
func (c *Coordinator) waitTime() time.Duration {
	wait := min(c.o.SweepInterval, 5*time.Second)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.trailing) > 0 {
		wait = min(wait, c.o.TrailingSave)
	}
	return wait
}

// receive takes a batch: many receives in a row, while they come back full.
func (c *Coordinator) receive(ctx context.Context, wait time.Duration) ([]port.Delivery, error) {
	q := c.inbox()
	start := c.sched.Now()
	var all []port.Delivery
	for range c.o.MaxReceives {
		got, err := q.Receive(ctx, port.ReceiveOptions{Max: c.o.BatchSize, Lock: c.o.Visibility, Wait: wait})
		if err != nil {
			if fault.Is(err, fault.NotFound) && len(all) == 0 {
				return nil, c.store.Queues.Ensure(ctx, q.Name())
			}
			if len(all) > 0 {
				// What is in our hands is locked and must be worked on.
				c.log.Warn("inbox read in part", "error", err)
				return all, nil
			}
			return nil, err
		}
		all = append(all, got...)
		wait = 0
		full := c.o.BatchSize
		if most := q.Props().MaxBatch; most > 0 {
			full = min(full, most)
		}
		if len(got) < full || c.sched.Now().Sub(start) > c.o.roundTime()/4 {
			break
		}
	}
	c.stats.received.Add(int64(len(all)))
	return all, nil
}

// round applies a batch, workflow by workflow; none waits for another.
func (c *Coordinator) round(ctx context.Context, deliveries []port.Delivery) {
	ctx, cancel := c.sched.WithTimeout(ctx, c.o.roundTime(), roundOperation)
	defer cancel()
	jobs := c.group(ctx, deliveries)
	c.sched.Parallel(ctx, len(jobs), c.o.Parallel, func(ctx context.Context, i int) {
		c.settleJob(ctx, jobs[i], c.update(ctx, jobs[i]))
	})
}

// group sorts deliveries into jobs, in the order of their first message.
// Undecodable ones are poison at once.
func (c *Coordinator) group(ctx context.Context, deliveries []port.Delivery) []*job {
	var jobs []*job
	byWF := map[string]*job{}
	for i := range deliveries {
		d := &deliveries[i]
		in, err := msg.DecodeInbox(d.Body)
		if err != nil {
			c.poison(ctx, d, err)
			continue
		}
		it := item{delivery: d, inbox: in, trace: d.Count > 1 || in.Wake != nil || in.Command != nil}
		wf := workflowOf(in)
		j := byWF[wf]
		if j == nil {
			j = &job{wf: wf}
			byWF[wf] = j
			jobs = append(jobs, j)
		}
		j.items = append(j.items, it)
		j.deliveries = append(j.deliveries, *d)
	}
	return jobs
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

// settleJob acknowledges the messages of a job, or gives them back. Poison is a
// verdict: the very state is absent while its container is there.
func (c *Coordinator) settleJob(ctx context.Context, j *job, err error) {
	if len(j.deliveries) == 0 {
		return
	}
	// The round's deadline bounds the work, not the settlement.
	ctx, cancel := c.sched.WithTimeout(context.WithoutCancel(ctx), c.o.roundTime(), "settling messages")
	defer cancel()
	_, purged := errors.AsType[*purgedError](err)
	switch {
	case err == nil || purged:
		for i, err := range c.inbox().Acknowledge(ctx, j.deliveries) {
			if err != nil {
				c.log.Debug("message not acknowledged", "id", j.deliveries[i].ID, "error", err)
			}
		}
	case fault.Is(err, fault.NotFound):
		for i := range j.deliveries {
			c.poison(ctx, &j.deliveries[i], fault.Newf(fault.NotFound, "workflow %s does not exist", j.wf))
		}
	default:
		c.log.Warn("messages given back", "workflow", j.wf, "messages", len(j.deliveries), "error", err)
		for _, d := range j.deliveries {
			c.stats.released.Add(1)
			if err := c.inbox().Release(ctx, d, c.backOff(d.Count)); err != nil {
				c.log.Debug("message comes back by itself", "id", d.ID, "error", err)
			}
		}
	}
}

// backOff is the pause before the next delivery of a message that could not be
// applied, from one second to five minutes.
func (c *Coordinator) backOff(deliveries int) time.Duration {
	return c.jitter(min(firstWake<<min(max(deliveries, 1), 9), lastWake))
}

func (c *Coordinator) poison(ctx context.Context, d *port.Delivery, why error) {
	c.stats.poison.Add(1)
	c.log.Warn("message is poison", "queue", c.inbox().Name(), "id", d.ID, "why", why)
	if err := c.inbox().Poison(ctx, *d, why.Error()); err != nil {
		c.log.Warn("poison not moved, it comes back", "id", d.ID, "error", err)
	}
}

// noteTrailing remembers that the marks or the row of wf are to be written soon.
func (c *Coordinator) noteTrailing(wf string, e *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(e.accepted) == 0 && !e.memo.stale {
		delete(c.trailing, wf)
		return
	}
	if _, ok := c.trailing[wf]; !ok {
		c.trailing[wf] = c.sched.Now().Add(c.o.TrailingSave)
	}
}

// FlushTrailing saves marks of accepted sends and writes index rows that are
// due, or all of them.
func (c *Coordinator) FlushTrailing(ctx context.Context, all bool) {
	for _, wf := range c.dueTrailing(all) {
		e, marks := c.cache.take(wf)
		if e == nil {
			c.cache.keepMarks(wf, marks)
			continue
		}
		e.accepted = c.remark(e.run, e.accepted, marks)
		if err := c.trailingSave(ctx, wf, e); err != nil {
			// The state may be ahead of the store: it is read again. The marks stay.
			c.log.Warn("marks not saved", "workflow", wf, "error", err)
			c.cache.keepMarks(wf, e.accepted)
			continue
		}
		c.project(ctx, wf, e, true)
		c.noteTrailing(wf, e)
		c.cache.put(wf, e)
	}
}

func (c *Coordinator) dueTrailing(all bool) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.sched.Now()
	var due []string
	for wf, at := range c.trailing {
		if all || !now.Before(at) {
			due = append(due, wf)
			delete(c.trailing, wf)
		}
	}
	slices.Sort(due)
	return due
}

const (
	leaseName = "_coordinator.lock"
	leaseTime = 60 * time.Second
)

// holdLease reports whether this process may drain.
func (c *Coordinator) holdLease(ctx context.Context) bool {
	if c.o.Holder == "" {
		return true
	}
	c.mu.Lock()
	fresh := c.sched.Now().Before(c.leaseUntil)
	c.mu.Unlock()
	if fresh {
		return true
	}
	if err := c.store.Leases.Acquire(ctx, c.o.Namespace+leaseName, c.o.Holder, leaseTime); err != nil {
		if !fault.Is(err, fault.Conflict) && ctx.Err() == nil {
			c.log.Warn("lease not acquired", "error", err)
		}
		return false
	}
	c.mu.Lock()
	c.leaseUntil = c.sched.Now().Add(leaseTime / 4)
	c.mu.Unlock()
	return true
}

func (c *Coordinator) releaseLease(ctx context.Context) {
	if c.o.Holder == "" {
		return
	}
	if err := c.store.Leases.Release(ctx, c.o.Namespace+leaseName, c.o.Holder); err != nil {
		c.log.Warn("lease not released", "error", err)
	}
}
