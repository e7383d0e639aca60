package coord

import (
	"context"
	"encoding/hex"
	"slices"

	"jobq/core/engine"
	"jobq/core/fault"
	"jobq/core/msg"
	"jobq/core/port"
	"jobq/core/state"
)

// outgoing is one message on its way, with the attempt that it carries.
type outgoing struct {
	attempt engine.Attempt
	message port.Message
}

// send puts the messages of attempts into their queues, those of one queue
// together. Accepted ones become Dispatched in the entry. A message that is
// refused for good ends its attempt: the result holds what follows.
func (c *Coordinator) send(ctx context.Context, j *job, e *entry, attempts []engine.Attempt, b batch) (next []item) {
	attempts = slices.DeleteFunc(slices.Clone(attempts), func(a engine.Attempt) bool { return !e.run.Sendable(a) })
	if len(attempts) == 0 {
		return nil
	}
	var order []string
	byQueue := map[string][]engine.Attempt{}
	for _, a := range attempts {
		q := e.plan.Definition().Tasks[a.Task].Queue
		if _, ok := byQueue[q]; !ok {
			order = append(order, q)
		}
		byQueue[q] = append(byQueue[q], a)
	}
	created := map[engine.Attempt]bool{}
	for _, a := range b.send {
		created[a] = true
	}
	results := make([]sent, len(order))
	c.sched.Parallel(ctx, len(order), c.o.Parallel, func(ctx context.Context, i int) {
		results[i] = c.sendTo(ctx, e, order[i], byQueue[order[i]], created)
	})
	for _, r := range results {
		next = append(next, c.take(ctx, j, e, r)...)
	}
	return next
}

// sent is what became of the messages for one queue.
type sent struct {
	accepted []engine.Attempt
	refused  []refused
	left     bool
}

// refused is an attempt whose message no queue will ever take.
type refused struct {
	attempt engine.Attempt
	why     error
}

func (c *Coordinator) sendTo(ctx context.Context, e *entry, name string, attempts []engine.Attempt, created map[engine.Attempt]bool) sent {
	var r sent
	s := e.run.State()
	q := c.store.Queues.Queue(s.Namespace + name)
	var out []outgoing
	for _, a := range attempts {
		body, err := c.taskMessage(ctx, e, a, q.Props().MaxMessage)
		switch {
		case final(err):
			r.refused = append(r.refused, refused{a, err})
		case err != nil:
			c.log.Warn("task message not made", "workflow", s.ID, "task", e.plan.Name(a.Task), "error", err)
			r.left = true
		default:
			id := msg.FirstSendID(s.ID, e.plan.Name(a.Task), a.Attempt)
			if !created[a] {
				id = msg.ResendID(s.ID, e.plan.Name(a.Task), a.Attempt, s.Version)
				c.stats.resent.Add(1)
			}
			out = append(out, outgoing{a, port.Message{ID: id, Body: body}})
		}
	}
	c.post(ctx, q, out, &r)
	return r
}

// post sends out, creating the queue once where it is missing.
func (c *Coordinator) post(ctx context.Context, q port.Queue, out []outgoing, r *sent) {
	for try := 0; len(out) > 0; try++ {
		messages := make([]port.Message, len(out))
		for i := range out {
			messages[i] = out[i].message
		}
		errs := q.Send(ctx, messages)
		var again []outgoing
		for i, o := range out {
			switch err := at(errs, i); {
			case err == nil:
				c.stats.sent.Add(1)
				r.accepted = append(r.accepted, o.attempt)
			case fault.Is(err, fault.NotFound) && try == 0:
				again = append(again, o)
			case final(err):
				r.refused = append(r.refused, refused{o.attempt, err})
			default:
				c.log.Warn("task message not sent", "queue", q.Name(), "error", err)
				r.left = true
			}
		}
		out = again
		if len(out) == 0 {
			return
		}
		if err := c.store.Queues.Ensure(ctx, q.Name()); err != nil {
			for _, o := range out {
				if final(err) || fault.Is(err, fault.Denied) {
					r.refused = append(r.refused, refused{o.attempt, err})
				} else {
					r.left = true
				}
			}
			return
		}
	}
}

// final reports whether no repeat of the same send can succeed.
func final(err error) bool {
	if err == nil {
		return false
	}
	switch fault.CodeOf(err) {
	case fault.TooLarge, fault.Invalid, fault.NotFound:
		return true
	default:
		return false
	}
}

// at returns the error of message i: a nil slice means that all went well.
func at(errs []error, i int) error {
	if errs == nil {
		return nil
	}
	return errs[i]
}

// take brings the result of a send into the entry.
func (c *Coordinator) take(ctx context.Context, j *job, e *entry, r sent) (next []item) {
	e.accepted = c.remark(e.run, e.accepted, r.accepted)
	j.left = j.left || r.left
	for _, x := range r.refused {
		it, err := c.endRefused(ctx, e, x)
		if err != nil {
			c.log.Warn("refused task not ended yet", "workflow", j.wf, "error", err)
			j.left = true
			continue
		}
		next = append(next, it)
	}
	return next
}

// endRefused ends the attempt of a message that was refused for good through
// its record, as every attempt that has a number is ended.
func (c *Coordinator) endRefused(ctx context.Context, e *entry, x refused) (item, error) {
	completion := &msg.Completion{
		Workflow: e.run.State().ID, Task: e.plan.Name(x.attempt.Task), Attempt: x.attempt.Attempt,
		Reason: msg.Undeliverable, Error: x.why.Error(), EndedAt: c.sched.Now().UTC(),
	}
	ended, err := c.endAttempt(ctx, e, x.attempt, msg.Ended{Completion: completion})
	if err != nil {
		return item{}, err
	}
	if ended == nil {
		return item{}, fault.New(fault.Unavailable, "an earlier message of the attempt got through, a worker has it")
	}
	return endedItem(x.attempt, *ended), nil
}

// taskMessage builds the message of an attempt, at most limit bytes long.
func (c *Coordinator) taskMessage(ctx context.Context, e *entry, a engine.Attempt, limit int) ([]byte, error) {
	s := e.run.State()
	d := e.plan.Definition()
	t := &d.Tasks[a.Task]
	timeout := t.Timeout
	if timeout == 0 {
		timeout = d.DefaultTimeout
	}
	m := msg.Task{
		ID:       msg.FirstSendID(s.ID, t.Name, a.Attempt),
		Workflow: s.ID, Name: t.Name, Attempt: a.Attempt, Epoch: s.Epoch,
		Prefix: c.o.Prefix, Queues: c.o.Queues, TimeoutSeconds: timeout.Seconds(),
	}
	if s.Namespace != "" {
		m.Inbox = s.Namespace + c.o.Inbox
	}
	for _, k := range t.Kwargs {
		m.Kwargs = append(m.Kwargs, msg.Kwarg{Key: k.Key, Value: k.Value})
	}
	if parents := e.run.Parents(a.Task); len(t.DependsOn) > 0 {
		m.Upstream = &msg.Refs{}
		for _, p := range parents {
			m.Upstream.Add(s.ID, e.plan.Name(p), c.reference(e, p))
		}
	}
	packed, err := msg.PackTask(m, limit)
	if err != nil {
		return nil, err
	}
	if packed.Refs != nil {
		err := c.store.Outputs.Put(ctx, packed.RefsName, packed.Refs)
		// What is there was written for the same attempt: its parents are frozen.
		if err != nil && !fault.Is(err, fault.Exists) {
			return nil, err
		}
	}
	return packed.Body, nil
}

// reference returns the output reference of task t as messages carry it.
func (c *Coordinator) reference(e *entry, t int32) string {
	out := e.run.State().Outputs[t]
	switch out.Kind {
	case state.CanonicalOutput:
		sum := ""
		if out.HasMD5 {
			sum = hex.EncodeToString(out.MD5[:])
		}
		return msg.FormatBlobRef(msg.CanonicalOutput(e.run.State().ID, e.plan.Name(t)), sum)
	case state.InlineOutput, state.OtherOutput:
		return out.Text
	default:
		return ""
	}
}
