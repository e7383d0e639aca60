package sim

import (
	"context"
	"slices"
	"time"

	"jobq/core/coord"
	"jobq/core/fault"
	"jobq/core/port"
)

// functionHost is a place at which a function host calls the coordinator: it
// receives, hands each message or a batch to a function, and settles them by what
// the function answers. It counts failures, and makes a message poison that has
// too many (contract: functions-host.md §2 and §6).
type functionHost struct {
	w *World
	p *process
	// c serves the messages, timer the sweeps: two functions with caches of their
	// own.
	c, timer *coord.Coordinator
	// queues are those that the host itself receives from.
	queues port.Queues
	batch  int
	budget time.Duration
}

const (
	// hostLock is how long a host locks a message.
	hostLock = 10 * time.Minute
	// hostPause is visibilityTimeout, hostLimit is maxDequeueCount.
	hostPause = 10 * time.Second
	hostLimit = 5
)

func (w *World) newHost(p *process, c *coord.Coordinator) *functionHost {
	h := &functionHost{w: w, p: p, c: c, queues: w.retried(p, w.hostGate(p)).Queues, batch: 1}
	o := w.options(p)
	h.timer = coord.New(p.store, clock{w.s, p}, o)
	if w.o.Seed%2 == 0 {
		h.batch = 8
		h.budget = 20 * time.Second
	}
	return h
}

func (h *functionHost) serve() {
	c := clock{h.w.s, h.p}
	parts := []func(context.Context){h.serveInbox, h.servePoison}
	if h.w.o.Sweeps {
		parts = append(parts, h.serveTimer)
	}
	c.Parallel(h.p.ctx, len(parts), len(parts), func(ctx context.Context, i int) { parts[i](ctx) })
}

func (h *functionHost) serveTimer(ctx context.Context) {
	for (clock{h.w.s, h.p}).Sleep(ctx, time.Minute) == nil {
		_, _ = h.timer.Sweep(ctx) // the next one is in a minute
	}
}

// serveInbox is the trigger of the inbox.
func (h *functionHost) serveInbox(ctx context.Context) {
	q := h.queues.Queue(inbox)
	h.poll(ctx, q, func(ds []port.Delivery) {
		if h.w.o.Personality == ServiceBus { // settled as a whole
			h.invoke(ctx, q, ds)
			return
		}
		clock{h.w.s, h.p}.Parallel(ctx, len(ds), len(ds), func(ctx context.Context, i int) { h.invoke(ctx, q, ds[i:i+1]) })
	})
}

// poll receives until ctx ends.
func (h *functionHost) poll(ctx context.Context, q port.Queue, handle func([]port.Delivery)) {
	var pause time.Duration
	for ctx.Err() == nil {
		ds, err := q.Receive(ctx, port.ReceiveOptions{Max: h.batch, Lock: hostLock})
		switch {
		case err == nil && len(ds) > 0:
			pause = 0
			handle(ds)
			continue
		case fault.Is(err, fault.NotFound):
			_ = h.queues.Ensure(ctx, inbox)
		}
		pause = min(max(2*pause, 100*time.Millisecond), 2*time.Second)
		if (clock{h.w.s, h.p}).Sleep(ctx, max(pause, fault.RetryAfter(err))) != nil {
			return
		}
	}
}

// invoke calls the function with ds and settles them.
func (h *functionHost) invoke(ctx context.Context, q port.Queue, ds []port.Delivery) {
	given := slices.Clone(ds)
	for i := range given {
		given[i].Receipt, given[i].Until = "", time.Time{}
		h.p.trigger(ds[i])
	}
	refusals := h.p.refusals
	_, err := h.c.Drain(ctx, h.budget, given)
	if err == nil {
		_ = q.Acknowledge(ctx, ds) // or it comes again
		return
	}
	h.w.path(PathHostFailed)
	if h.p.refusals == refusals {
		h.w.violate("put back before failing", "%s failed %d messages though the inbox took what it was sent: %v", h.p.name, len(ds), err)
	}
	for i := range ds {
		h.fail(ctx, q, &ds[i])
	}
}

// fail is what the host does with a message whose function failed. Service Bus
// itself counts what is abandoned.
func (h *functionHost) fail(ctx context.Context, q port.Queue, d *port.Delivery) {
	switch {
	case h.w.o.Personality == ServiceBus:
		_ = q.Extend(ctx, d, time.Millisecond)
	case d.Count < hostLimit:
		_ = q.Extend(ctx, d, hostPause)
	case first(q.PoisonQueue().Send(ctx, []port.Message{{ID: countedByHost, Body: d.Body}})) == nil:
		_ = q.Acknowledge(ctx, []port.Delivery{*d})
	}
}

// countedByHost is the id of messages that a host made poison.
const countedByHost = "counted by the host"

// servePoison is the trigger of the poison queue: what is no verdict goes back.
func (h *functionHost) servePoison(ctx context.Context) {
	q := h.queues.Queue(inbox).PoisonQueue()
	h.poll(ctx, q, func(ds []port.Delivery) {
		for i := range ds {
			verdict, err := h.timer.Reconsider(ctx, ds[i])
			switch {
			case err != nil:
				_ = q.Extend(ctx, &ds[i], hostPause)
				continue
			case verdict != nil:
				h.w.ledger.poisoned(h.p, inbox, ds[i])
			default:
				h.w.path(PathReconsidered)
			}
			_ = q.Acknowledge(ctx, ds[i:i+1])
		}
	})
}
