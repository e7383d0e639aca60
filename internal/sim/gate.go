package sim

import (
	"context"
	"time"

	"jobq/core/fault"
	"jobq/core/port"
)

// gate is the way from one process to the store. Every call passes it: there
// the scheduler may let others go on, faults strike, and the oracles watch.
type gate struct {
	w     *World
	p     *process
	inner *port.Store
	// host says that a function host makes the calls, not the program.
	host bool
}

// gate returns p's view of the store.
func (w *World) gate(p *process) *port.Store { return (&gate{w: w, p: p, inner: p.mem.Port()}).store() }

// hostGate returns the view of the host that p runs in.
func (w *World) hostGate(p *process) *port.Store {
	return (&gate{w: w, p: p, inner: p.mem.Port(), host: true}).store()
}

func (g *gate) store() *port.Store {
	s := *g.inner
	s.States = states{g}
	s.Records = records{g}
	s.Index = index{g}
	s.Queues = queues{g}
	s.Outputs = blobs{g}
	s.Events = log{g, g.inner.Events}
	s.TaskLogs = log{g, g.inner.TaskLogs}
	s.Leases = leases{g}
	s.Presence = presence{g}
	s.Finisher = nil
	return &s
}

// call makes one call of the store. effect runs on a context that does not end:
// a request that is on its way cannot be called back.
func (g *gate) call(ctx context.Context, o op, key string, effect func(ctx context.Context) error) error {
	f, err := g.arrive(ctx, o, key, effect)
	if err != nil {
		return err
	}
	return g.meet(o, key, f, effect)
}

// arrive brings a call to the store and says which fault it meets there.
func (g *gate) arrive(ctx context.Context, o op, key string, effect func(ctx context.Context) error) (Fault, error) {
	w, p := g.w, g.p
	if p.dead {
		panic(killed{})
	}
	p.calls++
	if w.calls++; w.calls == maxCalls {
		w.violate("no busy loop", "%d store calls in one history, the last by %s: %s %s", w.calls, p.name, o, key)
	}
	f := g.fate(o, key)
	if f == none && o.outputs() && w.outputsDownUntil > w.s.now {
		f = OutputsDown
	}
	if f == none && o == opSend && w.sendsDownUntil > w.s.now {
		f = SendsDown
	}
	return f, g.travel(ctx, o, key, f, effect)
}

// meet carries out a call that meets f, and answers it.
func (g *gate) meet(o op, key string, f Fault, effect func(ctx context.Context) error) error {
	w, p := g.w, g.p
	if f != none {
		w.count(f)
	}
	switch f {
	case FailBefore, OutputsDown, SendsDown:
		return g.trace(o, key, f, lost(o))
	case Throttle:
		return g.trace(o, key, f, g.throttled())
	case Conflict:
		return g.trace(o, key, f, fault.New(fault.Conflict, "another writer came first"))
	case StopBefore:
		w.kill(p, "before "+o.String())
		panic(killed{})
	case Pause:
		if w.weather.random.IntN(2) == 0 {
			g.pause()
			f = none
		}
	}
	w.striking = f
	err := effect(context.Background())
	w.striking = none
	g.trace(o, key, f, err)
	switch f {
	case AnswerLost:
		if err == nil || w.weather.random.IntN(2) == 0 {
			err = lost(o)
		}
	case StopAfter:
		w.kill(p, "after "+o.String())
		panic(killed{})
	case Pause:
		g.pause()
	}
	return err
}

// maxCalls is more store calls than any history needs.
const maxCalls = 500_000

// fate decides what goes wrong with a call.
func (g *gate) fate(o op, key string) Fault {
	w := g.w
	if w.weather.script == nil {
		return w.weather.draw(w.s.now, g.p, o)
	}
	empty := false
	if o == opReceive {
		ds, err := w.admin.Queues.Queue(key).Peek(context.Background(), 1)
		empty = err != nil || len(ds) == 0
	}
	return w.weather.script(g.p, o, key, empty)
}

// pause makes the process stand still for up to twenty minutes.
func (g *gate) pause() {
	g.w.freeze(g.p, time.Duration(g.w.weather.random.Int64N(int64(20*time.Minute))))
	g.w.s.pass()
}

// throttled is the answer of a busy service, with a pause to be made.
func (g *gate) throttled() error {
	pause := time.Duration(g.w.weather.random.Int64N(int64(40 * time.Second)))
	return fault.New(fault.Throttled, "the service is busy").WithRetryAfter(pause)
}

func lost(o op) error { return fault.New(fault.Unavailable, "no answer to: "+o.String()) }

// travel is the time that the request needs. When ctx ends meanwhile the call
// did not happen, or happens later.
func (g *gate) travel(ctx context.Context, o op, key string, f Fault, effect func(ctx context.Context) error) error {
	w := g.w
	if ctx.Err() != nil {
		return stopped(ctx)
	}
	d := w.latency()
	if f == Slow {
		w.count(f)
		d = time.Duration(w.weather.random.Int64N(int64(3 * time.Minute)))
	}
	if d == 0 {
		w.s.pass()
		return nil
	}
	if w.s.wait(d, ctx, nil) == nil && ctx.Err() == nil {
		return nil
	}
	if o.reads() || !w.o.Faults.Has(LateEffect) || w.s.now >= w.weather.until || w.weather.random.IntN(2) == 0 {
		g.trace(o, key, Slow, stopped(ctx))
		return stopped(ctx)
	}
	w.count(LateEffect)
	later := time.Duration(w.weather.random.Int64N(int64(10 * time.Second)))
	w.s.after(later, nil, func() {
		if !g.p.dead {
			g.trace(o, key, LateEffect, effect(context.Background()))
		}
	})
	return lost(o)
}

func stopped(ctx context.Context) error {
	return fault.Wrap(fault.Canceled, context.Cause(ctx), "the call was stopped")
}

// latency draws how long a call travels.
func (w *World) latency() time.Duration {
	switch w.o.Network {
	case Instant:
		return 0
	case Even:
		return time.Duration(1+w.s.random.Uint32N(10)) * time.Millisecond
	default:
		d := time.Duration(1+w.s.random.Uint32N(20)) * time.Millisecond
		for w.s.random.Uint32N(4) == 0 && d < 20*time.Second {
			d *= 4
		}
		return d
	}
}

// trace adds a call to the history and returns err.
func (g *gate) trace(o op, key string, f Fault, err error) error {
	w := g.w
	code := uint64(255)
	if err != nil {
		code = uint64(fault.CodeOf(err))
	}
	w.mix(uint64(g.p.id)<<32 | uint64(o)<<16 | uint64(f)<<8 | code)
	w.mixText(key)
	if w.recording() {
		w.tellCall(g.p, o, key, f, err)
	}
	return err
}
