package sim

import (
	"context"
	"math/rand/v2"
	"time"

	"jobq/core/port"
	"jobq/store/memory"
	"jobq/store/wrap"
)

// process is a program on a machine: its actors share memory, a clock and a
// handle on the store, and stop together.
type process struct {
	name string
	id   int
	role role
	mem  *memory.Process
	// store is what the program gets: the retry wrapper over the gate.
	store *port.Store
	// skew is what its clock shows beside the true time.
	skew   time.Duration
	random *rand.Rand
	// ctx ends when the process is asked to stop.
	ctx  context.Context
	stop context.CancelCauseFunc

	// newer says that it is of the next version.
	newer bool

	dead        bool
	frozenUntil time.Duration
	parked      []*actor
	actors      int
	// began says that it wrote a state or a cancel flag: what must follow is owed.
	began bool
	// calls counts the store calls that were begun.
	calls int
	// refusals counts the messages for the inbox, or its poison queue, that were not
	// taken.
	refusals int
	// triggers is when the messages were sent that a host gave to a function, by
	// body; copies are those that the function put back.
	triggers map[string]time.Time
	copies   map[string]int
	// onStop hears that the process was stopped.
	onStop func()
}

// role is what a process does, for fault plans and reports.
type role uint8

const (
	coordinatorRole role = iota + 1
	workerRole
	foreignRole
	callerRole
	machineRole
)

// process makes a process with its own view of the store.
func (w *World) process(r role, name string) *process {
	w.processes++
	p := &process{name: name, id: w.processes, role: r, random: w.stream()}
	p.ctx, p.stop = context.WithCancelCause(context.Background())
	p.mem = w.mem.Process(name)
	if w.o.Faults.Has(ClockSkew) && r != machineRole {
		w.count(ClockSkew)
		p.skew = time.Duration(p.random.Int64N(int64(10*time.Minute))) - 5*time.Minute
	}
	p.store = w.retried(p, w.gate(p))
	p.newer = w.newer(p)
	w.all = append(w.all, p)
	return p
}

// retried puts the retry wrapper over the view s that p has of the store.
func (w *World) retried(p *process, s *port.Store) *port.Store {
	return wrap.Retry(s, clock{w.s, p}, wrap.RetryPolicy{Random: p.random.Float64})
}

// trigger notes that a host gives d to a function of p.
func (p *process) trigger(d port.Delivery) {
	if p.triggers == nil {
		p.triggers, p.copies = map[string]time.Time{}, map[string]int{}
	}
	p.triggers[string(d.Body)] = d.Sent
}

// kill ends p as a crash does: nothing of it runs any further.
func (w *World) kill(p *process, why string) {
	if p.dead {
		return
	}
	p.dead = true
	p.mem.Kill()
	w.tell(p, "stopped", why)
	w.s.poll(p)
	if p.onStop != nil {
		p.onStop()
	}
}

// freeze keeps p from running for d, without it noticing.
func (w *World) freeze(p *process, d time.Duration) {
	p.frozenUntil = max(p.frozenUntil, w.s.now+d)
	w.tell(p, "paused", d.String())
}
