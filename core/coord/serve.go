package coord

import (
	"cmp"
	"context"
	"time"

	"jobq/core/fault"
	"jobq/core/port"
)

// Serve drains the inbox, sweeps and stores what is due until ctx ends. Then it
// finishes the round that it is in and returns nil. The lease of Options.Holder
// decides whether it drains and sweeps.
//
// The loops run side by side, so that a round, a sweep or a lease that takes long
// holds up neither the marks of others nor the lease.
func (c *Coordinator) Serve(ctx context.Context) error {
	c.renewLease(ctx)
	loops := []func(context.Context){c.serveSweeps}
	if c.o.Holder != "" {
		loops = append(loops, c.keepLease)
	}
	for lane := range lanes {
		loops = append(loops, func(ctx context.Context) { c.serveInbox(ctx, lane) }, func(ctx context.Context) { c.keepMarks(ctx, lane) })
	}
	c.sched.Parallel(ctx, len(loops), len(loops), func(ctx context.Context, i int) { loops[i](ctx) })
	c.flushAll(ctx)
	stop, cancel := c.sched.WithTimeout(context.WithoutCancel(ctx), c.roundTime(), "releasing the coordinator's lease")
	defer cancel()
	c.releaseLease(stop)
	return nil
}

// Drain applies first, which the caller holds already, and then runs rounds until
// the inbox is empty or budget is used, if it has the lease of Options.Holder. At
// the end it saves the marks of accepted sends. It returns how many messages it
// took up.
//
// Messages of first without a receipt are those of a function host, which settles
// them: what cannot be applied now is put back as a delayed copy. Only where that
// fails is there an error for which the host must deliver them again.
func (c *Coordinator) Drain(ctx context.Context, budget time.Duration, first []port.Delivery) (n int, err error) {
	drained, stop := context.WithCancel(ctx)
	c.sched.Parallel(ctx, 2, 2, func(ctx context.Context, i int) {
		if i == 0 {
			defer stop()
			n, err = c.drain(ctx, budget, first)
			return
		}
		c.keepMarks(drained, 0)
	})
	c.flushAll(ctx)
	return n, err
}

func (c *Coordinator) drain(ctx context.Context, budget time.Duration, first []port.Delivery) (n int, err error) {
	start := c.sched.Now()
	// The caller answers for these by himself, so they are left to no other round.
	jobs, err := c.group(ctx, start, first)
	for _, j := range jobs {
		c.runMessages(context.WithoutCancel(ctx), j)
		err = cmp.Or(err, j.unsettled)
	}
	n = len(first)
	if err != nil {
		return n, err
	}
	c.renewLease(ctx)
	for end := start.Add(budget); ctx.Err() == nil && c.holdsLease() && c.sched.Now().Before(end); {
		start = c.sched.Now()
		got, err := c.receive(ctx, 0)
		if err != nil && len(first) > 0 {
			// What the host delivered is done: it must not count a failure.
			c.log.Warn("inbox not read", "error", err)
			return n, nil
		}
		if err != nil || len(got) == 0 {
			return n, err
		}
		n += len(got)
		c.round(context.WithoutCancel(ctx), start, got)
	}
	return n, nil
}

// longestReceive bounds the wait of one receive; only the first lane waits long. The
// time of a message counts from the beginning of that wait.
func (c *Coordinator) longestReceive(lane int) time.Duration {
	if lane == 0 {
		return min(5*time.Second, c.roundTime()/2)
	}
	return laneRest
}

// lanes is how many rounds may go on at a time, and how many stores of marks. The
// second and third are for the time in which a slow workflow holds up the others.
const lanes = 3

// laneRest is how often a lane looks whether those before it are held up.
const laneRest = 250 * time.Millisecond

// serveInbox receives and applies. A lane rests until all before it are at a
// round: while nothing is slow, one of them does all the work.
func (c *Coordinator) serveInbox(ctx context.Context, lane int) {
	var pause time.Duration
	for ctx.Err() == nil {
		if !c.holdsLease() || int(c.rounds.Load()) < lane {
			if c.sched.Sleep(ctx, laneRest) != nil {
				return
			}
			continue
		}
		start := c.sched.Now()
		got, err := c.receive(ctx, c.longestReceive(lane))
		switch {
		case err != nil && ctx.Err() != nil:
			return
		case err != nil:
			c.log.Warn("inbox not read", "error", err)
			pause = max(min(max(2*pause, 100*time.Millisecond), 10*time.Second), fault.RetryAfter(err))
		case len(got) > 0:
			pause = 0
			c.rounds.Add(1)
			c.round(context.WithoutCancel(ctx), start, got)
			c.rounds.Add(-1)
		case c.inbox().Props().CanWait && c.sched.Now().Sub(start) >= c.longestReceive(lane)/2:
			pause = 0 // it has waited already
		default:
			pause = min(max(2*pause, 10*time.Millisecond), c.o.IdleSleep)
		}
		if pause > 0 && c.sched.Sleep(ctx, pause) != nil {
			return
		}
	}
}

// serveSweeps sweeps in the rhythm of Options.SweepInterval.
func (c *Coordinator) serveSweeps(ctx context.Context) {
	for c.sched.Sleep(ctx, c.o.SweepInterval) == nil {
		if !c.holdsLease() {
			continue
		}
		if _, err := c.Sweep(ctx); err != nil && ctx.Err() == nil {
			c.log.Warn("sweep not finished", "error", err)
		}
	}
}

// keepLease renews the lease.
func (c *Coordinator) keepLease(ctx context.Context) {
	for c.sched.Sleep(ctx, leaseLook) == nil {
		c.renewLease(ctx)
	}
}

// keepMarks stores what is due. A lane rests until all before it are held up by
// workflows whose saves take long.
func (c *Coordinator) keepMarks(ctx context.Context, lane int) {
	for c.sched.Sleep(ctx, c.keepEvery()) == nil {
		if int(c.flushes.Load()) < lane {
			continue
		}
		c.flushes.Add(1)
		c.FlushTrailing(context.WithoutCancel(ctx), false)
		c.flushes.Add(-1)
	}
}

func (c *Coordinator) keepEvery() time.Duration { return min(c.o.TrailingSave, time.Second) }

const (
	leaseName = "_coordinator.lock"
	leaseTime = 60 * time.Second
	// leaseTry is how often the lease is renewed, or asked for, and how long the
	// store may take to answer: three of four tries may be lost.
	leaseTry = leaseTime / 4
	// leaseLook is how often anybody looks whether that is due.
	leaseLook = time.Second
)

// holdsLease reports whether this process may drain.
func (c *Coordinator) holdsLease() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.o.Holder == "" || c.sched.Now().Before(c.leaseUntil)
}

// renewLease takes the lease, or renews it when a quarter of it has passed. Both
// are tried as often, so that a free lease has a holder soon.
func (c *Coordinator) renewLease(ctx context.Context) {
	now := c.sched.Now()
	c.mu.Lock()
	due := c.o.Holder != "" && !now.Before(c.leaseTry)
	if due {
		c.leaseTry = now.Add(leaseTry)
	}
	c.mu.Unlock()
	if !due {
		return
	}
	bounded, cancel := c.sched.WithTimeout(ctx, leaseTry, "renewing the coordinator's lease")
	defer cancel()
	if err := c.store.Leases.Acquire(bounded, c.o.Namespace+leaseName, c.o.Holder, leaseTime); err != nil {
		if !fault.Is(err, fault.Conflict) && ctx.Err() == nil {
			c.log.Warn("lease not acquired", "error", err)
		}
		return
	}
	c.mu.Lock()
	c.leaseUntil = now.Add(leaseTime)
	c.mu.Unlock()
}

func (c *Coordinator) releaseLease(ctx context.Context) {
	if c.o.Holder == "" {
		return
	}
	c.mu.Lock()
	c.leaseUntil, c.leaseTry = time.Time{}, time.Time{}
	c.mu.Unlock()
	if err := c.store.Leases.Release(ctx, c.o.Namespace+leaseName, c.o.Holder); err != nil {
		c.log.Warn("lease not released", "error", err)
	}
}
