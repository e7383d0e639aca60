package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"jobq/core/fault"
	"jobq/core/port"
	"jobq/worker/protocol"
)

// workerProcess is a machine with a worker on it and the commands that it runs.
// The commands live by the clock of the machine, not by that of the worker: they
// go on when the worker stands still.
type workerProcess struct {
	w        *World
	index    int
	starts   int
	p        *process
	machine  *process
	queues   []string
	lock     time.Duration
	commands []*command
	foreign  bool
}

func (w *World) addWorker(index int, foreign bool) {
	wp := &workerProcess{w: w, index: index, foreign: foreign}
	wp.queues = w.ledger.taskQueues()
	if n := len(wp.queues); n > 1 && w.o.Workers+w.o.Foreign >= 2*n && w.draw.IntN(2) == 0 {
		wp.queues = []string{wp.queues[index%n]}
	}
	wp.lock = []time.Duration{time.Minute, 2 * time.Minute, 10 * time.Minute}[w.draw.IntN(3)]
	if w.o.steady {
		wp.lock = time.Minute
	}
	w.workers = append(w.workers, wp)
	wp.start()
}

func (wp *workerProcess) start() {
	w := wp.w
	wp.starts++
	name := fmt.Sprintf("worker-%d.%d", wp.index, wp.starts)
	r := workerRole
	if wp.foreign {
		name, r = "foreign-"+name, foreignRole
	}
	p := w.process(r, name)
	wp.p = p
	wp.machine = w.process(machineRole, name+"-machine")
	p.onStop = func() {
		wp.closeGuardian()
		w.restart(wp.start)
	}
	w.s.start(p, name, func() { wp.serve(p) }, nil)
}

// serve runs the slots until the process is asked to stop.
func (wp *workerProcess) serve(p *process) {
	w := wp.w
	c := clock{w.s, p}
	var handle func(ctx context.Context, q port.Queue, d port.Delivery, slot int)
	if wp.foreign {
		handle = (&foreignWorker{wp: wp, p: p}).handle
	} else {
		h := protocol.New(wp.config(p))
		handle = func(ctx context.Context, q port.Queue, d port.Delivery, slot int) { h.Handle(ctx, q, d, slot) }
	}
	c.Parallel(p.ctx, w.o.Slots, w.o.Slots, func(ctx context.Context, slot int) {
		for turn, idle := slot, 0; ctx.Err() == nil; turn++ {
			q := p.store.Queues.Queue(wp.queues[turn%len(wp.queues)])
			ds, err := q.Receive(ctx, port.ReceiveOptions{Max: 1, Lock: wp.lock})
			if err == nil && len(ds) > 0 {
				idle = 0
				handle(ctx, q, ds[0], slot+1)
				continue
			}
			if idle++; idle >= len(wp.queues) {
				pause := min(time.Second<<min(idle/len(wp.queues), 4), 5*time.Second)
				if c.Sleep(ctx, max(pause, fault.RetryAfter(err))) != nil {
					return
				}
			}
		}
	})
	p.onStop = nil
	w.kill(p, "it was asked to")
	wp.closeGuardian()
	w.restart(wp.start)
}

func (wp *workerProcess) config(p *process) protocol.Config {
	w := wp.w
	limit := w.o.CrashLimit
	return protocol.Config{
		Store: p.store, Scheduler: clock{w.s, p}, Runner: &runner{wp, p}, Owner: p.name, Worker: p.name,
		Prefix: "sim/test", Inbox: inbox, Lock: wp.lock, CrashLimit: limit, Logger: w.logger(p),
		NewID:   func() string { return fmt.Sprintf("%016x", p.random.Uint64()) },
		Jitter:  p.random.Float64,
		Observe: func(e protocol.Event) { w.ledger.observed(p, e) },
	}
}

var errPreempted = errors.New("the machine is preempted")

// strike makes one of the things happen that happen to machines.
func (wp *workerProcess) strike(f Fault) {
	w := wp.w
	if wp.p.dead {
		return
	}
	w.count(f)
	switch f {
	case WorkerStop:
		w.tell(wp.p, "asked to stop", "")
		wp.p.stop(errPreempted)
		w.s.poll(wp.p)
		// A preemption does not wait for ever.
		p := wp.p
		w.s.after(2*time.Minute, nil, func() {
			if !p.dead {
				wp.loseMachine(p)
			}
		})
	case MachineLost:
		wp.loseMachine(wp.p)
	case MachineFreeze:
		d := time.Duration(w.draw.Int64N(int64(25 * time.Minute)))
		w.freeze(wp.p, d)
		wp.machine.frozenUntil = wp.p.frozenUntil
		for _, c := range wp.commands {
			c.shift(d)
		}
	}
}

// loseMachine ends p and every command of its machine at this moment.
func (wp *workerProcess) loseMachine(p *process) {
	if p != wp.p {
		return
	}
	for len(wp.commands) > 0 {
		wp.commands[0].end(killedByMachine)
	}
	wp.w.kill(p, "with its machine")
}

// closeGuardian is what the guardian does when its worker is gone: it kills the
// commands within a second.
func (wp *workerProcess) closeGuardian() {
	for _, c := range wp.commands {
		delay := time.Duration(wp.w.draw.Int64N(int64(time.Second)))
		wp.w.s.after(delay, wp.machine, func() { c.end(killedByGuardian) })
	}
}
