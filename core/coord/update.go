package coord

import (
	"cmp"
	"context"
	"errors"
	"time"

	"jobq/core/engine"
	"jobq/core/fault"
	"jobq/core/msg"
	"jobq/core/port"
	"jobq/core/state"
)

// update applies the items of a job, then what follows from them, until nothing
// does.
func (c *Coordinator) update(ctx context.Context, j *job) error {
	items := j.items
	for {
		e, b, err := c.commit(ctx, j, items)
		if err != nil {
			return c.dead(ctx, j, err)
		}
		if b.purge {
			c.forget(j.wf)
			return c.remove(ctx, tombstoneOf(e.run.State()), e.tag)
		}
		if items, err = c.perform(ctx, j, e, b); err != nil {
			return err
		}
		switch {
		case len(items) > 0 || len(e.unsaved) > 0:
		case len(e.marked) > 0 && (j.direct || j.sweep || c.open(j, e)):
			// Whoever gets the wake, or looks after this process is gone, must
			// find what was sent.
			j.keep = true
		default:
			err := c.finish(ctx, j, e)
			c.cache.put(j.wf, e)
			return err
		}
		c.cache.put(j.wf, e)
	}
}

// dead handles the end of a job whose workflow is no more. A purge that stopped
// after its tombstone is completed by the next delivery of its command.
func (c *Coordinator) dead(ctx context.Context, j *job, err error) error {
	p, purged := errors.AsType[*purgedError](err)
	_, absent := errors.AsType[*absentError](err)
	if purged || absent {
		c.forget(j.wf)
	}
	if purged && removing(p.tombstone) && j.asksPurge() {
		if failed := c.remove(ctx, p.tombstone, p.tag); failed != nil {
			return failed
		}
	}
	return err
}

func (j *job) asksPurge() bool {
	for _, it := range j.items {
		if m := it.inbox.Command; m != nil && m.Kind == kindPurge {
			return true
		}
	}
	return false
}

// commit applies items and saves, again and again while others win, at most
// Options.FlushRetryLimit times.
func (c *Coordinator) commit(ctx context.Context, j *job, items []*item) (*entry, batch, error) {
	for try := 0; ; try++ {
		birth := j.first != nil
		e, err := c.begin(ctx, j, try > 0)
		if err != nil {
			return nil, batch{}, err
		}
		b, err := c.step(ctx, j, e, items)
		if err != nil {
			return nil, batch{}, err
		}
		j.traced = j.traced || b.trace
		if !b.changed {
			// "Nothing to do" is final only on a state that was read after the
			// items came.
			if e.fresh || len(items) == 0 {
				return e, b, nil
			}
			if err = c.confirm(ctx, j.wf, e); err == nil {
				return e, b, nil
			}
			if !errors.Is(err, errStale) {
				return nil, batch{}, err
			}
			continue // the next pass reads afresh: this happens once
		}
		if err := c.prepare(ctx, j, e, b); err != nil {
			return nil, batch{}, err
		}
		fresh := e.fresh
		if err = c.save(ctx, j.wf, e, b.purge); err == nil {
			j.born = j.born || birth
			j.settled = j.settled || b.settled
			j.commanded = j.commanded || b.command
			c.note(j.wf, func(n *note) { n.stale, n.saved = true, max(n.saved, e.run.State().Version) })
			return e, b, nil
		}
		if !c.mayRepeat(j, err, fresh) || try >= c.o.FlushRetryLimit || ctx.Err() != nil {
			return nil, batch{}, err
		}
	}
}

// begin returns the entry that a pass works on.
func (c *Coordinator) begin(ctx context.Context, j *job, fresh bool) (*entry, error) {
	if e := j.first; e != nil {
		j.first = nil
		return e, nil
	}
	return c.load(ctx, j.wf, fresh)
}

// mayRepeat reports whether the events of a save that failed may be applied
// again, and remembers what the failure says.
func (c *Coordinator) mayRepeat(j *job, err error, fresh bool) bool {
	switch fault.CodeOf(err) {
	case fault.Conflict, fault.Exists:
		c.stats.conflicts.Add(1)
		j.contended = j.contended || fresh
	case fault.Unavailable, fault.Canceled:
		j.unknown = true
	default:
		return false
	}
	return true
}

// step applies every item and evaluates conditions until none is left.
func (c *Coordinator) step(ctx context.Context, j *job, e *entry, items []*item) (batch, error) {
	b := batch{send: e.unsaved, moves: e.unsavedMoves, changed: len(e.unsaved) > 0}
	e.unsaved, e.unsavedMoves = nil, nil
	c.storeOutputs(ctx, j, e, items)
	for _, it := range items {
		if b.purge {
			break // what comes after it finds no workflow
		}
		if err := c.stepItem(ctx, j, e, &b, it); err != nil {
			return b, err
		}
	}
	if err := c.evaluate(ctx, j, e, &b); err != nil {
		return b, err
	}
	c.recall(j, e, &b)
	b.changed = b.changed || len(e.marked) > 0 && j.keep
	return b, nil
}

func (c *Coordinator) stepItem(ctx context.Context, j *job, e *entry, b *batch, it *item) error {
	if o := it.output; o != nil && o.Kind == state.InlineOutput && !e.run.InlineRoom(len(o.Text)) {
		// Those before it in this batch took the last room.
		it.output = nil
		c.storeOutput(ctx, j.wf, it, false)
	}
	if it.err != nil {
		return nil
	}
	var ev engine.Event
	if ev, it.err = it.toEvent(); it.err != nil {
		return nil
	}
	out, err := c.apply(j, e, b, ev)
	if err != nil {
		return err
	}
	// A command that was refused has left nothing behind. A wake stands for what was
	// left whatever it finds: the end of a back-off, which it met on the way, is
	// another matter.
	refused := out.Answer != nil && !out.Answer.Repeated
	_, wake := ev.(engine.Wake)
	b.trace = b.trace || (wake || !out.Changed) && !refused && (it.trace || j.unknown)
	return nil
}

// apply steps one event and collects its effects.
func (c *Coordinator) apply(j *job, e *entry, b *batch, ev engine.Event) (engine.Effects, error) {
	ended := e.run.State().Status.Ended()
	out, err := e.run.Step(ev, c.sched.Now())
	if err != nil {
		return out, err
	}
	b.changed = b.changed || out.Changed
	b.send = append(b.send, out.Send...)
	b.fence = append(b.fence, out.Fence...)
	b.moves = append(b.moves, out.Changes...)
	b.settled = b.settled || out.Settled
	text, done := "", out.Changed
	if out.Answer != nil {
		j.answer, text = out.Answer, out.Answer.Text
		done = done && out.Answer.Done // or it keeps a refusal
		b.command = b.command || done
		b.revives = b.revives || done && ended
		_, purge := ev.(engine.Purge)
		b.purge = purge && done
	}
	if done {
		b.line(ev, j.by, text)
	}
	if out.Refusal != "" {
		c.stats.repeats.Add(1)
		c.log.Debug("event dropped", "workflow", j.wf, "why", out.Refusal)
	}
	return out, nil
}

// recall adds what an earlier job may have left undone: unsent intents, attempts
// to be fenced, messages that were lost. A re-send is preceded by a save, as a
// first send is, so that of two who find the same trace one sends; the other
// leaves it to a wake, which finds the marks of the first.
func (c *Coordinator) recall(j *job, e *entry, b *batch) {
	if e.run.Cancelling() {
		if b.trace || b.command {
			b.fence = e.run.Outstanding().Fence
		}
		return
	}
	s := e.run.State()
	for _, a := range j.repair {
		if e.run.Present(a) && s.TaskStatus[a.Task] == state.Running && !j.contended {
			// The attempt is sent anew from here on: the next repair of it waits as
			// long as the first did.
			s.StartedAt[a.Task] = c.sched.Now().UnixMilli()
			b.repair = append(b.repair, a)
		}
	}
	if b.trace {
		b.resend = without(e.run.Outstanding().Send, b.send)
	}
	if len(b.resend) > 0 && j.contended {
		b.resend, j.left = nil, true
	}
	b.changed = b.changed || len(b.resend)+len(b.repair) > 0
}

// without returns the members of all that are not among some.
func without(all, some []engine.Attempt) []engine.Attempt {
	known := make(map[engine.Attempt]struct{}, len(some))
	for _, a := range some {
		known[a] = struct{}{}
	}
	var rest []engine.Attempt
	for _, a := range all {
		if _, ok := known[a]; !ok {
			rest = append(rest, a)
		}
	}
	return rest
}

// prepare makes the write that must come before the save of a command: the flag
// that workers poll, so that a cancel that counts is never unseen.
func (c *Coordinator) prepare(ctx context.Context, j *job, e *entry, b batch) error {
	if !b.command || b.purge {
		return nil
	}
	s := e.run.State()
	var err error
	j.rival, err = c.flagCancel(ctx, j.wf, e, port.CancelRequest{Requested: s.CancelRequested, Epoch: s.Epoch}, !b.revives)
	return err
}

// perform does what must follow a save: sends and fences. It returns what came
// out of them as further items.
func (c *Coordinator) perform(ctx context.Context, j *job, e *entry, b batch) ([]*item, error) {
	c.notify(e, b)
	if b.command && j.rival {
		if err := c.dropRequest(ctx, e); err != nil {
			c.log.Warn("a cancel request that lost is left to the sweep", "workflow", j.wf, "error", err)
		}
	}
	part, cancel := c.share(ctx, j, 3, "sending the messages of a round")
	defer cancel()
	next, err := c.send(part, j, e, c.dispatches(e, b))
	next = append(next, c.fence(part, j, e, b.fence)...)
	c.tellEvents(ctx, e, b)
	return next, err
}

const (
	// eventsTime is how long the event log may hold up a job, moveTime how much longer
	// for each move.
	eventsTime = 2 * time.Second
	moveTime   = 100 * time.Microsecond
	// eventsRest is how long nothing is written to a log that took longer.
	eventsRest = 30 * time.Second
)

// tellEvents writes the event log, but not for long: all that comes after it waits,
// and its loss loses no correctness.
func (c *Coordinator) tellEvents(ctx context.Context, e *entry, b batch) {
	wf := e.run.State().ID
	var again time.Time
	c.note(wf, func(n *note) { again = n.eventsAgain })
	if c.sched.Now().Before(again) {
		return
	}
	most := eventsTime + time.Duration(len(b.moves))*moveTime
	part, cancel := c.sched.WithTimeout(ctx, min(most, c.roundTime()/2), "writing the event log")
	defer cancel()
	c.appendEvents(part, e, b)
	if part.Err() != nil && ctx.Err() == nil {
		c.note(wf, func(n *note) { n.eventsAgain = c.sched.Now().Add(eventsRest) })
	}
}

// finish writes what others read, and leaves a wake where something is left.
func (c *Coordinator) finish(ctx context.Context, j *job, e *entry) error {
	j.rows = c.project(ctx, j, e)
	if j.sweep || j.direct && !j.commanded {
		j.rows = cmp.Or(j.rows, c.dropRequest(ctx, e))
	}
	if c.open(j, e) {
		return c.wakeLater(ctx, j, e)
	}
	if len(j.items) > 0 {
		// A job that only stores marks and rows did not look for what is left.
		c.note(j.wf, func(n *note) { n.wakeDelay = 0 })
	}
	return nil
}

// toEvent turns an item into what the engine understands.
func (it *item) toEvent() (engine.Event, error) {
	switch {
	case it.event != nil:
		return it.event, nil
	case it.inbox.Completion != nil:
		return it.completion(), nil
	case it.inbox.Command != nil:
		return it.commandEvent()
	default:
		return engine.Wake{}, nil
	}
}

func (it *item) completion() engine.Completion {
	m := it.inbox.Completion
	ev := engine.Completion{
		Task: m.Task, Attempt: m.Attempt, Success: m.Success, Reason: m.Reason, Error: m.Error,
		StartedAt: m.StartedAt, EndedAt: m.EndedAt,
		Exit: state.Exit{Signal: m.Signal, Word: string(m.Reason), Worker: m.Worker, Start: m.Start},
	}
	if m.ExitCode != nil {
		ev.Exit.Code, ev.Exit.Known = *m.ExitCode, true
	}
	if it.output != nil {
		ev.Output = *it.output
	}
	if it.refused != nil {
		ev.Success, ev.Reason, ev.Error = false, msg.OutputInvalid, it.refused.Error()
	}
	return ev
}

func firstError(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
