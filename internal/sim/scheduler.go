package sim

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"runtime/debug"
	"time"
)

// scheduler runs actors one at a time on virtual time. Which of several that
// could go on does is drawn from the seed, so that one seed gives one order.
//
// Actors are coroutines with explicit hand-over: the machine's scheduler and
// clock play no part.
type scheduler struct {
	now    time.Duration // since epoch
	random *rand.Rand
	events eventHeap
	seq    uint64
	ready  []*actor
	active *actor
	pool   *pool
	// choose picks the next of ready; nil draws.
	choose func(ready []*actor) int
	// panicked hears of a panic in an actor.
	panicked func(a *actor, value any, stack string)
	// switches counts hand-overs.
	switches int
}

// epoch is when every world begins.
var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func newScheduler(random *rand.Rand, p *pool) *scheduler {
	return &scheduler{random: random, pool: p}
}

// time returns the virtual time as every store sees it.
func (s *scheduler) time() time.Time { return epoch.Add(s.now) }

// actor is one thread of control of a process.
type actor struct {
	name string
	proc *process
	run  func()
	co   *coroutine

	// While parked: what ends the wait.
	wake  *event
	ctx   context.Context
	until func() bool
	at    int // place in proc.parked, -1 when it is not there
	cause error
	done  bool
	// finished is called by the loop once run has returned.
	finished func()
}

// killed is the panic that unwinds an actor whose process is gone.
type killed struct{}

// start makes a new actor of p ready.
func (s *scheduler) start(p *process, name string, run, finished func()) {
	a := &actor{name: name, proc: p, run: run, finished: finished, at: -1}
	p.actors++
	s.ready = append(s.ready, a)
}

// after calls f at the time d from now, in the loop. With a process that is
// frozen then, it waits for the thaw.
func (s *scheduler) after(d time.Duration, p *process, f func()) *event {
	s.seq++
	e := &event{at: s.now + max(d, 0), seq: s.seq, proc: p, fire: f, place: -1}
	s.events.push(e)
	return e
}

func (s *scheduler) cancel(e *event) {
	if e != nil && e.place >= 0 {
		s.events.remove(e)
	}
}

// wait parks the running actor for d, until ctx ends or until reports true. It
// returns the cause of ctx's end when that came first.
func (s *scheduler) wait(d time.Duration, ctx context.Context, until func() bool) error {
	a := s.active
	if a.proc.dead {
		panic(killed{})
	}
	a.cause = nil
	a.ctx, a.until = ctx, until
	if d < forever {
		a.wake = s.after(d, a.proc, func() { s.resume(a, nil) })
	}
	a.at = len(a.proc.parked)
	a.proc.parked = append(a.proc.parked, a)
	s.handOver(a)
	return a.cause
}

// forever is a wait that only something else ends.
const forever = time.Duration(1<<63 - 1)

// pass lets others go on at the same time.
func (s *scheduler) pass() {
	a := s.active
	if a.proc.dead {
		panic(killed{})
	}
	s.ready = append(s.ready, a)
	s.handOver(a)
}

func (s *scheduler) handOver(a *actor) {
	a.co.yield(struct{}{})
	if a.proc.dead {
		panic(killed{})
	}
}

// resume makes a parked actor ready.
func (s *scheduler) resume(a *actor, cause error) {
	if a.at < 0 {
		return
	}
	s.cancel(a.wake)
	a.wake = nil
	p := a.proc
	last := len(p.parked) - 1
	p.parked[a.at] = p.parked[last]
	p.parked[a.at].at = a.at
	p.parked[last] = nil
	p.parked = p.parked[:last]
	a.at = -1
	a.cause = cause
	s.ready = append(s.ready, a)
}

// poll resumes the actors of p whose context ended or whose condition holds.
// Contexts never cross processes, so only what ran in p, or a timer of p, can
// have ended one.
func (s *scheduler) poll(p *process) {
	for i := 0; i < len(p.parked); {
		a := p.parked[i]
		switch {
		case p.dead:
			s.resume(a, nil)
		case a.ctx != nil && a.ctx.Err() != nil:
			s.resume(a, context.Cause(a.ctx))
		case a.until != nil && a.until():
			s.resume(a, nil)
		default:
			i++
		}
	}
}

// loop runs actors and events until nothing is left, the time is end, or
// stop reports true between two steps.
func (s *scheduler) loop(end time.Duration, stop func() bool) {
	for !stop() {
		if len(s.ready) == 0 {
			if len(s.events) == 0 || s.events[0].at > end {
				s.now = max(s.now, end)
				return
			}
			s.advance()
			continue
		}
		s.step(s.next())
	}
}

func (s *scheduler) next() *actor {
	at := 0
	switch {
	case len(s.ready) == 1:
	case s.choose != nil:
		at = s.choose(s.ready)
	default:
		at = s.random.IntN(len(s.ready))
	}
	a := s.ready[at]
	last := len(s.ready) - 1
	copy(s.ready[at:], s.ready[at+1:])
	s.ready[last] = nil
	s.ready = s.ready[:last]
	return a
}

// advance goes to the time of the next event and fires it.
func (s *scheduler) advance() {
	e := s.events.pop()
	s.now = max(s.now, e.at)
	if p := e.proc; p != nil && !p.dead && p.frozenUntil > s.now {
		e.at = p.frozenUntil
		s.events.push(e)
		return
	}
	e.fire()
	if e.proc != nil {
		s.poll(e.proc)
	}
}

// step lets a run until it hands over.
func (s *scheduler) step(a *actor) {
	p := a.proc
	if !p.dead && p.frozenUntil > s.now {
		s.after(p.frozenUntil-s.now, nil, func() { s.ready = append(s.ready, a) })
		return
	}
	if a.co == nil {
		if p.dead { // never began
			s.finish(a)
			return
		}
		a.co = s.pool.take()
		a.co.job, a.co.owner = a, s
	}
	s.switches++
	s.active = a
	a.co.next()
	s.active = nil
	if a.done {
		s.pool.put(a.co)
		a.co = nil
		s.finish(a)
	}
	s.poll(p)
}

func (s *scheduler) finish(a *actor) {
	a.proc.actors--
	if a.finished != nil {
		a.finished()
	}
}

// coroutine is a thread of control that serves one actor after the other.
type coroutine struct {
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
	job   *actor
	owner *scheduler
}

// pool keeps coroutines for the next actor, and the next world. One goroutine
// uses it.
type pool struct{ free []*coroutine }

func (p *pool) take() *coroutine {
	if n := len(p.free); n > 0 {
		c := p.free[n-1]
		p.free = p.free[:n-1]
		return c
	}
	c := &coroutine{}
	c.next, c.stop = iter.Pull(func(yield func(struct{}) bool) {
		c.yield = yield
		for {
			c.serve()
			if !yield(struct{}{}) {
				return
			}
		}
	})
	return c
}

func (p *pool) put(c *coroutine) {
	c.job, c.owner = nil, nil
	p.free = append(p.free, c)
}

// close ends the coroutines that are free.
func (p *pool) close() {
	for _, c := range p.free {
		c.stop()
	}
	p.free = nil
}

func (c *coroutine) serve() {
	a, s := c.job, c.owner
	defer func() {
		a.done = true
		if v := recover(); v != nil {
			if _, ok := v.(killed); !ok {
				s.panicked(a, v, string(debug.Stack()))
			}
		}
	}()
	a.run()
}

// event is something that happens at a time.
type event struct {
	at    time.Duration
	seq   uint64
	proc  *process
	fire  func()
	place int
}

func (e *event) String() string { return fmt.Sprintf("event at %v", e.at) }

// eventHeap is a binary heap of events by time, then by age.
type eventHeap []*event

func (h eventHeap) less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].seq < h[j].seq
}

func (h eventHeap) swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

func (h *eventHeap) push(e *event) {
	e.place = len(*h)
	*h = append(*h, e)
	h.up(e.place)
}

func (h *eventHeap) pop() *event {
	e := (*h)[0]
	h.remove(e)
	return e
}

func (h *eventHeap) remove(e *event) {
	i, last := e.place, len(*h)-1
	if i != last {
		h.swap(i, last)
	}
	(*h)[last] = nil
	*h = (*h)[:last]
	e.place = -1
	if i < last {
		h.down(i)
		h.up(i)
	}
}

func (h eventHeap) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !h.less(i, parent) {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

func (h eventHeap) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if child+1 < len(h) && h.less(child+1, child) {
			child++
		}
		if !h.less(child, i) {
			return
		}
		h.swap(i, child)
		i = child
	}
}
