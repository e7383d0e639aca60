package coord

import (
	"context"
	"errors"
	"time"

	"jobq/core/engine"
	"jobq/core/fault"
	"jobq/core/msg"
	"jobq/core/port"
	"jobq/core/state"
)

// item is one thing to apply to one workflow: a message of the inbox, or an
// event of our own.
type item struct {
	delivery *port.Delivery
	inbox    msg.Inbox
	// event is set for commands of this process and for what came out of records.
	event engine.Event
	// trace says that the item may be all that a crash left behind: if it changes
	// nothing, the state's unsent intents are sent.
	trace bool
}

// job is the work of one workflow within one round.
type job struct {
	wf    string
	items []item
	// deliveries are the messages behind the items, to be settled at the end.
	deliveries []port.Delivery
	// memo outlives the entries that a lost save throws away.
	memo memo
	// answer is the result of the last command among the items.
	answer *engine.Answer
	// unknown says that a save with an unknown outcome came before.
	unknown bool
	// left says that something stays to be done for which nobody else will be
	// called.
	left bool
}

// batch is what one pass over the items of a job did.
type batch struct {
	changed bool
	// send are the intents that this pass created.
	send []engine.Attempt
	// resend says that an item without effect may be the trace of a crash.
	resend  bool
	fence   []engine.Attempt
	moves   []engine.Change
	settled bool
	purge   bool
	command bool
	// unavailable says that a condition could not be evaluated now.
	unavailable bool
}

// update applies a job until nothing follows from it, and saves. When it
// returns nil everything that the items caused is durable, and what could not
// be done has a wake: the messages may be acknowledged.
func (c *Coordinator) update(ctx context.Context, j *job) error {
	for {
		e, b, err := c.commit(ctx, j)
		if err != nil {
			return err
		}
		next := c.perform(ctx, j, e, b)
		if len(next) > 0 {
			j.memo, j.items = e.memo, next
			c.cache.put(j.wf, e)
			continue
		}
		if b.purge {
			return c.removeData(ctx, j.wf, e)
		}
		err = c.finish(ctx, j, e, b)
		c.cache.put(j.wf, e)
		return err
	}
}

// commit applies the items and saves, again and again while others win.
func (c *Coordinator) commit(ctx context.Context, j *job) (*entry, batch, error) {
	for try := 0; ; try++ {
		e, fresh, err := c.load(ctx, j.wf, j.memo)
		if err != nil {
			return nil, batch{}, err
		}
		b, err := c.step(ctx, j, e)
		if err == nil && !b.changed && !fresh {
			var same bool
			if same, err = c.current(ctx, j.wf, e); err == nil && !same {
				err = fault.New(fault.Conflict, "the cached state was out of date")
			}
		}
		if err == nil && b.changed {
			if err = c.prepare(ctx, j, e, b); err == nil {
				err = c.save(ctx, j.wf, e, b.purge)
			}
		}
		if err == nil {
			return e, b, nil
		}
		// The entry holds steps that no stored state has: it is thrown away, but
		// for the marks of sends that did happen.
		c.cache.keepMarks(j.wf, e.accepted)
		j.memo = e.memo
		switch code := fault.CodeOf(err); {
		case code == fault.Conflict && !b.changed && try < maxStale:
		case (code == fault.Conflict || code == fault.Unavailable || code == fault.Throttled) && try < c.o.FlushRetryLimit:
			j.unknown = j.unknown || code == fault.Unavailable
		default:
			return nil, batch{}, err
		}
		if ctx.Err() != nil {
			return nil, batch{}, context.Cause(ctx)
		}
	}
}

// maxStale bounds how often in a row a cached state may turn out to be old. The
// first reload is fresh, so more than one means that somebody else filled the
// cache in between.
const maxStale = 8

// step applies every item and evaluates conditions until none is left.
func (c *Coordinator) step(ctx context.Context, j *job, e *entry) (batch, error) {
	var b batch
	for i := range j.items {
		if err := c.stepItem(ctx, j, e, &b, &j.items[i]); err != nil {
			return b, err
		}
	}
	return b, c.evaluate(ctx, e, &b)
}

func (c *Coordinator) stepItem(ctx context.Context, j *job, e *entry, b *batch, it *item) error {
	ev, err := c.event(ctx, e, it)
	if err != nil {
		return err
	}
	changed, err := c.apply(e, b, ev, j)
	if err != nil {
		return err
	}
	if !changed && (it.trace || j.unknown) {
		b.resend = true
	}
	return nil
}

// apply steps one event and collects its effects.
func (c *Coordinator) apply(e *entry, b *batch, ev engine.Event, j *job) (changed bool, err error) {
	out, err := e.run.Step(ev, c.sched.Now())
	if err != nil {
		return false, err
	}
	b.changed = b.changed || out.Changed
	b.send = append(b.send, out.Send...)
	b.fence = append(b.fence, out.Fence...)
	b.moves = append(b.moves, out.Changes...)
	b.settled = b.settled || out.Settled
	if out.Answer != nil {
		j.answer = out.Answer
		b.command = b.command || out.Changed
		_, purge := ev.(engine.Purge)
		b.purge = b.purge || purge && out.Answer.Done
	}
	if out.Refusal != "" {
		c.stats.repeats.Add(1)
		c.log.Debug("event dropped", "workflow", e.run.State().ID, "why", out.Refusal)
	}
	return out.Changed, nil
}

// event turns an item into what the engine understands.
func (c *Coordinator) event(ctx context.Context, e *entry, it *item) (engine.Event, error) {
	switch {
	case it.event != nil:
		return it.event, nil
	case it.inbox.Completion != nil:
		return c.completionEvent(ctx, e, it.inbox.Completion)
	case it.inbox.Command != nil:
		return commandEvent(it.inbox.Command)
	default:
		return engine.Wake{}, nil
	}
}

// perform does what must follow a save: sends and fences. It returns what came
// out of them as further items.
func (c *Coordinator) perform(ctx context.Context, j *job, e *entry, b batch) []item {
	c.notify(e, b)
	c.appendEvents(ctx, e, b)
	if b.purge {
		return nil
	}
	send := b.send
	if b.resend {
		send = e.run.Outstanding().Send
	}
	next := c.send(ctx, j, e, send, b)
	fence := b.fence
	if e.run.Cancelling() && (b.resend || b.command) {
		fence = e.run.Outstanding().Fence
	}
	return append(next, c.fence(ctx, j, e, fence)...)
}

// finish writes what others read, and leaves a wake where something is left.
func (c *Coordinator) finish(ctx context.Context, j *job, e *entry, b batch) error {
	if b.changed {
		e.memo.stale = true
	}
	c.project(ctx, j.wf, e, b.settled || b.command)
	out := e.run.Outstanding()
	if e.run.Cancelling() {
		// The records of live attempts say when they are over only to those who
		// look: a holder that dies reports nothing.
		j.left = true
	}
	if j.left || b.unavailable || len(out.Need) > 0 || !out.ParkedUntil.IsZero() {
		if err := c.trailingSave(ctx, j.wf, e); err != nil {
			return err
		}
		return c.wakeLater(ctx, j.wf, e, out.ParkedUntil)
	}
	e.memo.wakeDelay = 0
	c.noteTrailing(j.wf, e)
	return nil
}

// wakeLater puts one delayed wake, unless one that this process put is still to
// come in time.
func (c *Coordinator) wakeLater(ctx context.Context, wf string, e *entry, until time.Time) error {
	now := c.sched.Now()
	if now.Before(e.memo.wakeAt) && (until.IsZero() || !until.Before(e.memo.wakeAt)) {
		return nil
	}
	delay := min(max(2*e.memo.wakeDelay, firstWake), lastWake)
	if !until.IsZero() && !e.run.Cancelling() {
		delay = min(max(until.Sub(now), firstWake), lastWake)
	}
	body, err := msg.EncodeWake(msg.Wake{Workflow: wf})
	if err != nil {
		return err
	}
	ns := e.run.State().Namespace
	q := c.store.Queues.Queue(ns + c.o.Inbox)
	if most := q.Props().MaxDelay; most > 0 {
		delay = min(delay, most)
	}
	if err := firstError(q.Send(ctx, []port.Message{{ID: c.newID(), Body: body, Delay: delay}})); err != nil {
		return err
	}
	c.stats.wakes.Add(1)
	e.memo.wakeAt, e.memo.wakeDelay = now.Add(delay), delay
	return nil
}

const (
	firstWake = time.Second
	lastWake  = 5 * time.Minute
)

// trailingSave saves the marks of accepted sends, if there are any.
func (c *Coordinator) trailingSave(ctx context.Context, wf string, e *entry) error {
	if len(e.accepted) == 0 {
		return nil
	}
	marks := e.accepted
	for try := 0; ; try++ {
		err := c.save(ctx, wf, e, false)
		if err == nil {
			c.stats.trailing.Add(1)
			return nil
		}
		if code := fault.CodeOf(err); try >= c.o.FlushRetryLimit || (code != fault.Conflict && code != fault.Unavailable) {
			return err
		}
		doc, err := c.store.States.Load(ctx, wf, "")
		if err != nil {
			return err
		}
		again, err := c.decode(ctx, wf, doc)
		if _, purged := errors.AsType[*purgedError](err); purged {
			return nil
		}
		if err != nil {
			return err
		}
		again.memo = e.memo
		again.accepted = c.remark(again.run, nil, marks)
		*e = *again
		if len(e.accepted) == 0 {
			return nil
		}
	}
}

// prepare makes the writes that must come before the save: the flag that
// workers poll, so that a cancel that counts is never unseen.
func (c *Coordinator) prepare(ctx context.Context, j *job, e *entry, b batch) error {
	if !b.command {
		return nil
	}
	s := e.run.State()
	return c.flagCancel(ctx, j.wf, e, port.CancelRequest{Requested: s.CancelRequested, Epoch: s.Epoch})
}

// completionEvent reads a report. An inline output that is too large for the
// state goes into a blob first; an output that cannot be read is a failed
// attempt, never a success without output.
func (c *Coordinator) completionEvent(ctx context.Context, e *entry, m *msg.Completion) (engine.Event, error) {
	ev := engine.Completion{
		Task: m.Task, Attempt: m.Attempt, Success: m.Success, Reason: m.Reason, Error: m.Error,
		StartedAt: m.StartedAt, EndedAt: m.EndedAt,
		Exit: state.Exit{Signal: m.Signal, Word: string(m.Reason), Worker: m.Worker, Start: m.Start},
	}
	if m.ExitCode != nil {
		ev.Exit.Code, ev.Exit.Known = *m.ExitCode, true
	}
	if m.OutputRef == "" || !e.run.Awaits(m.Task, m.Attempt) {
		return ev, nil
	}
	out, err := c.storedOutput(ctx, e, m)
	if fault.Is(err, fault.Invalid) {
		ev.Success, ev.Reason, ev.Error = false, msg.OutputInvalid, err.Error()
		return ev, nil
	}
	ev.Output = out
	return ev, err
}

func firstError(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
