package sim

import (
	"context"
	"strconv"
	"time"

	"jobq/core/fault"
	"jobq/core/port"
)

type queues struct{ g *gate }

func (v queues) Queue(name string) port.Queue {
	return queue{g: v.g, name: name, inner: v.g.inner.Queues.Queue(name)}
}

func (v queues) Ensure(ctx context.Context, name string) error {
	return v.g.call(ctx, opEnsure, name, func(ctx context.Context) error {
		delete(v.g.w.missing, name)
		return v.g.inner.Queues.Ensure(ctx, name)
	})
}

type queue struct {
	g     *gate
	name  string
	inner port.Queue
	// poison says that it is one.
	poison bool
}

func (v queue) Name() string { return v.name }

// Props says what the personality of the world is; waiting is done here.
func (v queue) Props() port.QueueProps {
	p := v.inner.Props()
	p.CanWait = v.g.w.o.Personality == ServiceBus
	return p
}

func (v queue) PoisonQueue() port.Queue {
	return queue{g: v.g, name: port.PoisonName(v.name), inner: v.inner.PoisonQueue(), poison: true}
}

// call is gate.call for a queue that may be missing.
func (v queue) call(ctx context.Context, o op, key string, effect func(ctx context.Context) error) error {
	return v.g.call(ctx, o, key, func(ctx context.Context) error {
		if v.g.w.missing[v.name] {
			return v.absent()
		}
		return effect(ctx)
	})
}

func (v queue) absent() error { return fault.Newf(fault.NotFound, "queue %q does not exist", v.name) }

func (v queue) Send(ctx context.Context, messages []port.Message) []error {
	w := v.g.w
	split := oneByOne
	if w.o.Personality == ServiceBus {
		split = byDelay(messages)
	}
	errs := callEach(ctx, v.g, opSend, v.name, messages, split, v.store)
	if errs == nil {
		return nil
	}
	if v.name == inbox || v.poison {
		v.g.p.refusals++
	}
	if v.name == inbox {
		for i, m := range messages {
			if errs[i] != nil {
				w.ledger.unanswered(v.g.p, m)
			}
		}
	}
	return errs
}

// store may lose a message, or store one twice, and still say that all is well.
func (v queue) store(messages []port.Message) []error {
	w := v.g.w
	if w.missing[v.name] {
		return repeat(v.absent(), len(messages))
	}
	struck, at := w.striking, 0
	if struck == MessageLost || struck == Duplicate {
		at = w.weather.random.IntN(len(messages))
	}
	if struck == MessageLost {
		w.ledger.lose(v.g.p, v.name, messages[at].Body)
		w.lostIDs[v.name+" "+messages[at].ID] = true
	}
	var errs []error
	for _, m := range messages {
		errs = append(errs, v.put(m))
	}
	if struck == none && w.o.again != "" && v.name == inbox && w.ledger.reports(messages[0], w.o.again) {
		struck = Duplicate
	}
	if struck == Duplicate && errs[at] == nil {
		v.repeat(messages[at])
	}
	return errs
}

// put stores one message, unless it is lost.
func (v queue) put(m port.Message) error {
	if v.swallows(m) {
		return nil
	}
	err := first(v.inner.Send(context.Background(), []port.Message{m}))
	switch {
	case err != nil:
	case v.poison:
		v.g.w.ledger.condemned(v.g.p, m)
	default:
		v.g.w.ledger.sent(v.g.p, v.name, m)
	}
	return err
}

// repeat stores m once more.
func (v queue) repeat(m port.Message) {
	w := v.g.w
	m.ID += "~again"
	if !w.o.steady && w.weather.random.IntN(2) == 0 {
		m.Delay = time.Duration(w.weather.random.Int64N(int64(5 * time.Minute)))
	}
	v.inner.Send(context.Background(), []port.Message{m})
}

// swallows reports whether m is lost: at this moment, or because a message of its
// id was, which a queue that drops known ids still knows.
func (v queue) swallows(m port.Message) bool {
	id := v.name + " " + m.ID
	lost := v.g.w.lostIDs[id]
	if lost && !v.inner.Props().Deduplicates {
		delete(v.g.w.lostIDs, id)
	}
	return lost
}

// first returns the first error that is one.
func first(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func repeat(err error, n int) []error {
	errs := make([]error, n)
	for i := range errs {
		errs[i] = err
	}
	return errs
}

// waitStep is how often a receive that waits looks again.
const waitStep = 500 * time.Millisecond

func (v queue) Receive(ctx context.Context, o port.ReceiveOptions) (ds []port.Delivery, err error) {
	w := v.g.w
	end := w.s.now + o.Wait
	for {
		asked := w.s.now
		err = v.call(ctx, opReceive, v.name, func(ctx context.Context) (err error) {
			if w.striking == EmptyReceive {
				return nil
			}
			ds, err = v.inner.Receive(ctx, port.ReceiveOptions{Max: o.Max, Lock: o.Lock})
			for i := range ds {
				w.ledger.delivered(v.g.p, v.name, ds[i], asked)
			}
			return err
		})
		if err != nil || len(ds) > 0 || !v.Props().CanWait || w.s.now >= end {
			break
		}
		if w.s.wait(min(waitStep, end-w.s.now), ctx, nil) != nil {
			return nil, nil
		}
	}
	for i := range ds {
		ds[i].Until = ds[i].Until.Add(v.g.p.skew)
	}
	return ds, err
}

func (v queue) Extend(ctx context.Context, d *port.Delivery, lock time.Duration) error {
	changed := *d
	err := v.call(ctx, opExtend, v.name+" "+d.ID, func(ctx context.Context) error {
		return v.inner.Extend(ctx, &changed, lock)
	})
	if err == nil {
		*d = changed
		d.Until = d.Until.Add(v.g.p.skew)
	}
	return err
}

// Acknowledge is a call a message on both kinds of queues. The host of functions on
// Service Bus settles what it gave to one call as a whole.
func (v queue) Acknowledge(ctx context.Context, ds []port.Delivery) []error {
	split := oneByOne
	if v.g.host && v.g.w.o.Personality == ServiceBus {
		split = asAWhole
	}
	return callEach(ctx, v.g, opAcknowledge, v.name+" "+strconv.Itoa(len(ds)), ds, split, v.remove)
}

// remove removes messages for good.
func (v queue) remove(ds []port.Delivery) []error {
	w := v.g.w
	if w.missing[v.name] {
		return repeat(v.absent(), len(ds))
	}
	errs := v.inner.Acknowledge(context.Background(), ds)
	for i, d := range ds {
		if errs == nil || errs[i] == nil {
			w.ledger.acknowledged(v.g.p, v.name, d)
		} else if fault.Is(errs[i], fault.LeaseLost) {
			w.ledger.late(v.g.p, v.name, d)
		}
	}
	return errs
}

func (v queue) Release(ctx context.Context, d port.Delivery, delay time.Duration) error {
	return v.call(ctx, opRelease, v.name+" "+d.ID, func(ctx context.Context) error { return v.inner.Release(ctx, d, delay) })
}

func (v queue) Poison(ctx context.Context, d port.Delivery, reason string) error {
	return v.call(ctx, opPoison, v.name+" "+d.ID, func(ctx context.Context) error {
		v.g.w.ledger.poisoned(v.g.p, v.name, d)
		return v.inner.Poison(ctx, d, reason)
	})
}

func (v queue) Count(ctx context.Context) (n int, err error) {
	err = v.call(ctx, opCount, v.name, func(ctx context.Context) (err error) {
		n, err = v.inner.Count(ctx)
		return err
	})
	return n, err
}

func (v queue) Peek(ctx context.Context, most int) (ds []port.Delivery, err error) {
	err = v.call(ctx, opPeek, v.name, func(ctx context.Context) (err error) {
		ds, err = v.inner.Peek(ctx, most)
		return err
	})
	return ds, err
}

func (v queue) Clear(ctx context.Context) (n int, err error) {
	err = v.call(ctx, opClear, v.name, func(ctx context.Context) (err error) {
		n, err = v.inner.Clear(ctx)
		return err
	})
	return n, err
}
