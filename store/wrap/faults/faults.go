package faults

import (
	"context"
	"slices"
	"sync"
	"time"

	"jobq/core/fault"
	"jobq/core/port"
	"jobq/core/sched"
)

// Call is one call of a store, before it is made.
type Call struct {
	// N counts the calls of the process from 1.
	N int
	// Op is interface and method, such as "States.Save" or "Queue.Send".
	Op string
	// Key is what the call is about: a workflow, a queue, a blob, a record.
	Key string
}

// Fate is what happens to a call. The zero value lets it pass.
type Fate struct {
	// Delay passes before the call.
	Delay time.Duration
	// Before fails the call without an effect.
	Before error
	// After replaces the answer of a call that had its effect.
	After error
	// Stop ends the process with this call: it and all later ones fail.
	Stop bool
}

// Decide gives every call its fate. It is called by one goroutine at a time.
type Decide func(Call) Fate

// Process is the wrapped store of one process.
type Process struct {
	store  *port.Store
	sched  sched.Scheduler
	decide Decide

	mu      sync.Mutex
	calls   []Call
	stopped bool
}

// New wraps store. A nil decide lets every call pass.
func New(store *port.Store, s sched.Scheduler, decide Decide) *Process {
	if decide == nil {
		decide = func(Call) Fate { return Fate{} }
	}
	return &Process{store: store, sched: s, decide: decide}
}

// Port returns the interfaces of the process.
func (p *Process) Port() *port.Store {
	wrapped := *p.store
	wrapped.States = states{p, p.store.States}
	wrapped.Records = records{p, p.store.Records}
	wrapped.Index = index{p, p.store.Index}
	wrapped.Queues = queues{p, p.store.Queues}
	wrapped.Outputs = blobs{p, p.store.Outputs}
	wrapped.Events = log{p, "Events", p.store.Events}
	wrapped.TaskLogs = log{p, "TaskLogs", p.store.TaskLogs}
	wrapped.Leases = leases{p, p.store.Leases}
	wrapped.Presence = presence{p, p.store.Presence}
	if p.store.Finisher != nil {
		wrapped.Finisher = finisher{p, p.store.Finisher}
	}
	return &wrapped
}

// Calls returns the calls so far.
func (p *Process) Calls() []Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.calls)
}

// Stop ends the process between two calls.
func (p *Process) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = true
}

// Stopped reports whether the process has stopped.
func (p *Process) Stopped() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stopped
}

// errStopped is what a process gets that is no more.
var errStopped = fault.New(fault.Unavailable, "process stopped")

// begin numbers a call and returns its fate.
func (p *Process) begin(ctx context.Context, op, key string) Fate {
	p.mu.Lock()
	if p.stopped {
		p.mu.Unlock()
		return Fate{Before: errStopped}
	}
	call := Call{N: len(p.calls) + 1, Op: op, Key: key}
	p.calls = append(p.calls, call)
	fate := p.decide(call)
	if fate.Stop {
		p.stopped = true
		if fate.Before == nil && fate.After == nil {
			fate.Before = errStopped
		}
	}
	p.mu.Unlock()
	if fate.Delay > 0 {
		if err := p.sched.Sleep(ctx, fate.Delay); err != nil && fate.Before == nil {
			fate.Before = fault.Wrap(fault.Canceled, err, "the call was stopped")
		}
	}
	return fate
}

// call makes a call that answers with a value.
func call[T any](ctx context.Context, p *Process, op, key string, f func() (T, error)) (T, error) {
	var none T
	fate := p.begin(ctx, op, key)
	if fate.Before != nil {
		return none, fate.Before
	}
	v, err := f()
	if fate.After != nil {
		return none, fate.After
	}
	return v, err
}

// do makes a call that answers with an error alone.
func do(ctx context.Context, p *Process, op, key string, f func() error) error {
	_, err := call(ctx, p, op, key, func() (struct{}, error) { return struct{}{}, f() })
	return err
}

// each makes a call about n messages.
func each(ctx context.Context, p *Process, op, key string, n int, f func() []error) []error {
	fate := p.begin(ctx, op, key)
	if fate.Before != nil {
		return slices.Repeat([]error{fate.Before}, n)
	}
	errs := f()
	if fate.After != nil {
		return slices.Repeat([]error{fate.After}, n)
	}
	return errs
}
