package sim

import (
	"context"
	"fmt"
	"time"

	"jobq/core/coord"
)

const inbox = "workflow-completions"

// coordinatorProcess is a place at which a coordinator runs; it may be killed
// and started again, with a cold cache.
type coordinatorProcess struct {
	w     *World
	index int
	p     *process
	c     *coord.Coordinator
	// host calls c where the world is one of functions, nil where c serves itself.
	host   *functionHost
	starts int
}

func (w *World) addCoordinator(index int) {
	cp := &coordinatorProcess{w: w, index: index}
	w.coordinators = append(w.coordinators, cp)
	cp.start()
}

func (w *World) options(p *process) coord.Options {
	o := coord.Options{
		Prefix: "sim/test", Inbox: inbox, Parallel: 4, Random: p.random.Uint64,
		ForeignWorkers: w.o.Foreign > 0, BatchSize: 1 + int(w.o.Seed%16),
		Logger: w.logger(p), IdleSleep: w.o.idle, SweepInterval: w.o.sweepEvery,
	}
	if w.o.Seed%3 == 0 {
		o.NoEvents = true
	}
	if !w.o.Sweeps {
		o.SweepInterval = 10 * 365 * 24 * time.Hour
	}
	return o
}

func (cp *coordinatorProcess) start() {
	w := cp.w
	cp.starts++
	p := w.process(coordinatorRole, fmt.Sprintf("coordinator-%d.%d", cp.index, cp.starts))
	cp.p, cp.c = p, coord.New(p.store, clock{w.s, p}, w.options(p))
	c := cp.c
	cp.host = nil
	if w.o.Hosted {
		cp.host = w.newHost(p, c)
	}
	host := cp.host
	p.onStop = func() {
		w.harvest(c)
		if host != nil {
			w.harvest(host.timer)
		}
		w.restart(cp.start)
	}
	w.s.start(p, p.name, func() {
		if host != nil {
			host.serve()
			return
		}
		if err := c.Serve(p.ctx); err != nil {
			w.violate("serve", "Serve of %s = %v", p.name, err)
		}
	}, nil)
}

// restart calls start after a while, as what watches over processes does.
func (w *World) restart(start func()) {
	if w.ended {
		return
	}
	w.s.after(w.soon(90*time.Second), nil, func() {
		if !w.ended {
			start()
		}
	})
}

// soon draws a time up to most, or is one second in a steady world.
func (w *World) soon(most time.Duration) time.Duration {
	if w.o.steady {
		return time.Second
	}
	return w.drawTime(most)
}

// harvest adds the counters of a coordinator to the paths.
func (w *World) harvest(c *coord.Coordinator) {
	n := c.Count()
	for name, p := range map[string]Path{
		"resent": PathResent, "repeats": PathRepeat, "conflicts": PathConflict, "wakes": PathWake, "fenced": PathFenced,
		"repairs_claim": PathClaim, "repairs_lost_message": PathLostMessage, "repairs_ended_record": PathEndedRecord,
	} {
		w.Counts.Paths[p] += n[name]
	}
}

// quiet reports whether all that was accepted has ended and nothing is under way.
func (w *World) quiet() bool {
	if w.s.now < w.o.Storm || !w.ledger.settled() {
		return false
	}
	for _, name := range w.ledger.queueNames() {
		if name != inbox && w.ledger.unserved(name) {
			continue
		}
		if n, err := w.admin.Queues.Queue(name).Count(context.Background()); err == nil && n > 0 {
			return false
		}
	}
	if w.o.Hosted { // whose function looks at every message of the poison queue
		if n, err := w.admin.Queues.Queue(inbox).PoisonQueue().Count(context.Background()); err == nil && n > 0 {
			return false
		}
	}
	for _, wp := range w.workers {
		if len(wp.commands) > 0 {
			return false
		}
	}
	return !w.o.Sweeps || w.ledger.dueLeft() == ""
}
