package worker

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"jobq/core/fault"
	"jobq/core/port"
	"jobq/worker/protocol"
)

const (
	// receiveWait is how long one receive waits for a message.
	receiveWait = 20 * time.Second
	// receiveBound is how long an answer may take beyond that.
	receiveBound = 15 * time.Second
	// firstBackoff is the first pause after a receive that found nothing where
	// the queue cannot wait, or that failed.
	firstBackoff = 500 * time.Millisecond
	// memberBeat is the pause between two beats of the membership.
	memberBeat = 30 * time.Second
)

// errReceiveBound is the cause of a receive that was given up.
var errReceiveBound = errors.New("the queue did not answer in time")

// pump brings messages to slots. One goroutine (run) owns its fields.
type pump struct {
	conf    Config
	handler *protocol.Handler
	member  port.Membership
	// after is called once the slot of a message is free.
	after func()
	log   *slog.Logger

	sources []*source
	// turn is the queue that is asked first in the next round.
	turn int
	// slots holds the numbers of the free slots.
	slots []int
	wg    sync.WaitGroup
	// found carries what waiting receives bring, done the slots that became free.
	found chan found
	done  chan int
}

// source is one queue. While waiting is set a receive of it is under way.
type source struct {
	queue   port.Queue
	waiting bool
	// pause is the next back-off; it belongs to the receive under way.
	pause time.Duration
}

// found is what a receive brought.
type found struct {
	source     *source
	deliveries []port.Delivery
}

func newPump(c Config, h *protocol.Handler, member port.Membership, after func()) *pump {
	p := &pump{
		conf: c, handler: h, member: member, after: after, log: c.Logger,
		found: make(chan found, len(c.Queues)), done: make(chan int, c.Slots),
	}
	for _, name := range c.Queues {
		p.sources = append(p.sources, &source{queue: c.Store.Queues.Queue(name)})
	}
	for i := range c.Slots {
		p.slots = append(p.slots, c.Slots-i)
	}
	return p
}

// run serves the queues until ctx ends or nothing was there for IdleTimeout.
func (p *pump) run(ctx context.Context) {
	receiving, stop := context.WithCancel(ctx)
	defer p.finish(ctx)
	defer stop()
	idle := newIdle(p.conf.IdleTimeout)
	defer idle.stop()
	beats := time.NewTicker(memberBeat)
	defer beats.Stop()
	for ctx.Err() == nil {
		p.ask(receiving, ctx)
		select {
		case <-ctx.Done():
		case f := <-p.found:
			f.source.waiting = false
			p.deal(ctx, f.source, f.deliveries)
		case slot := <-p.done:
			p.slots = append(p.slots, slot)
		case <-beats.C:
			p.beat(ctx)
		case <-idle.expired(len(p.slots) == p.conf.Slots):
			return
		}
	}
}

// finish waits for the receives and the slots, and gives back what still came.
func (p *pump) finish(ctx context.Context) {
	go func() {
		p.wg.Wait()
		close(p.found)
	}()
	beats := time.NewTicker(memberBeat)
	defer beats.Stop()
	for {
		select {
		case f, open := <-p.found:
			if !open {
				return
			}
			p.giveBack(ctx, f.source, f.deliveries)
		case <-p.done:
		case <-beats.C:
			p.beat(context.WithoutCancel(ctx))
		}
	}
}

// ask uses the free slots: first it looks into every queue in turn, so that no
// queue starves; where none has anything it waits on all of them.
func (p *pump) ask(receiving, ctx context.Context) {
	if len(p.sources) > 1 {
		p.look(ctx)
	}
	if len(p.slots) == 0 {
		return
	}
	for _, s := range p.sources {
		if !s.waiting {
			s.waiting = true
			most := max(1, len(p.slots)/len(p.sources))
			p.wg.Go(func() { p.found <- found{s, p.await(receiving, s, most)} })
		}
	}
}

// look fills slots from the queues that have something, one message a queue and
// turn. A queue whose receive waits is empty at this moment.
func (p *pump) look(ctx context.Context) {
	for empty := 0; empty < len(p.sources) && len(p.slots) > 0 && ctx.Err() == nil; {
		s := p.sources[p.turn]
		p.turn = (p.turn + 1) % len(p.sources)
		if s.waiting || s.pause > 0 {
			empty++
			continue
		}
		ds, err := p.receive(ctx, s, port.ReceiveOptions{Max: 1, Lock: p.conf.Visibility})
		if err != nil || len(ds) == 0 {
			empty++ // an error is met again, and told, by the receive that waits
			continue
		}
		empty = 0
		p.deal(ctx, s, ds)
	}
}

// await returns when s has something, after one wait at most.
func (p *pump) await(ctx context.Context, s *source, most int) []port.Delivery {
	props := s.queue.Props()
	ds, err := p.receive(ctx, s, port.ReceiveOptions{Max: most, Lock: p.conf.Visibility, Wait: receiveWait})
	switch {
	case len(ds) > 0:
		s.pause = 0
		return ds
	case ctx.Err() != nil:
		return nil
	case err == nil && props.CanWait:
		s.pause = 0
		return nil
	case err != nil:
		p.log.WarnContext(ctx, "queue could not be read", "queue", s.queue.Name(), "error", err)
	}
	s.pause = min(max(firstBackoff, 2*s.pause), p.conf.MaxIdleBackoff)
	rest := time.NewTimer(max(s.pause, fault.RetryAfter(err)))
	defer rest.Stop()
	select {
	case <-rest.C:
	case <-ctx.Done():
	}
	return nil
}

// receive asks the queue once. A store that hangs must not hold up the other
// queues, and the beats of the membership, for ever.
func (p *pump) receive(ctx context.Context, s *source, o port.ReceiveOptions) ([]port.Delivery, error) {
	bounded, cancel := context.WithTimeoutCause(ctx, o.Wait+receiveBound, errReceiveBound)
	defer cancel()
	return s.queue.Receive(bounded, o)
}

// deal hands deliveries to free slots. What came while the last slot was taken
// goes back at once for other workers.
func (p *pump) deal(ctx context.Context, s *source, ds []port.Delivery) {
	for i, d := range ds {
		if len(p.slots) == 0 {
			p.giveBack(ctx, s, ds[i:])
			return
		}
		slot := p.slots[len(p.slots)-1]
		p.slots = p.slots[:len(p.slots)-1]
		p.wg.Go(func() {
			p.handler.Handle(ctx, s.queue, d, slot)
			p.done <- slot
			if ctx.Err() == nil {
				p.after()
			}
		})
	}
}

func (p *pump) giveBack(ctx context.Context, s *source, ds []port.Delivery) {
	for _, d := range ds {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), receiveWait)
		if err := s.queue.Release(bounded, d, 0); err != nil {
			p.log.WarnContext(ctx, "message could not be given back", "queue", s.queue.Name(), "id", d.ID, "error", err)
		}
		cancel()
	}
}

func (p *pump) beat(ctx context.Context) {
	bounded, cancel := context.WithTimeout(ctx, memberBeat/2)
	defer cancel()
	if err := p.member.Beat(bounded, p.conf.Slots-len(p.slots)); err != nil {
		p.log.WarnContext(ctx, "presence could not be refreshed", "error", err)
	}
}

// idle measures how long all slots have been free.
type idle struct {
	limit time.Duration
	timer *time.Timer
}

func newIdle(limit time.Duration) *idle { return &idle{limit: limit} }

// expired returns a channel that delivers once quiet held for the limit without
// a break; nil where that never happens.
func (i *idle) expired(quiet bool) <-chan time.Time {
	switch {
	case i.limit <= 0:
		return nil
	case !quiet:
		i.stop()
		return nil
	case i.timer == nil:
		i.timer = time.NewTimer(i.limit)
	}
	return i.timer.C
}

func (i *idle) stop() {
	if i.timer != nil {
		i.timer.Stop()
		i.timer = nil
	}
}
