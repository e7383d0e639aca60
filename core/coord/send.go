package coord

import (
	"context"
	"encoding/hex"

	"jobq/core/engine"
	"jobq/core/fault"
	"jobq/core/msg"
	"jobq/core/port"
	"jobq/core/state"
)

// sendChunk bounds the messages that are built and sent as one piece of work:
// small enough that a fan-out of any size stops at its deadline between two.
const sendChunk = 100

// dispatch is an attempt to be sent, with the id of its message.
type dispatch struct {
	attempt engine.Attempt
	id      string
}

// dispatches lists what a batch has to send, once its state is saved.
func (c *Coordinator) dispatches(e *entry, b batch) []dispatch {
	s := e.run.State()
	all := make([]dispatch, 0, len(b.send)+len(b.resend)+len(b.repair))
	for _, a := range b.send {
		if e.run.Sendable(a) {
			all = append(all, dispatch{a, msg.FirstSendID(s.ID, e.plan.Name(a.Task), a.Attempt)})
		}
	}
	for _, a := range b.resend {
		if e.run.Sendable(a) {
			c.stats.resent.Add(1)
			all = append(all, dispatch{a, msg.ResendID(s.ID, e.plan.Name(a.Task), a.Attempt, s.Version)})
		}
	}
	for _, a := range b.repair {
		c.repaired("lost message", s.ID)
		all = append(all, dispatch{a, msg.RepairID(s.ID, e.plan.Name(a.Task), a.Attempt, s.Version)})
	}
	return all
}

// chunk is a part of what one queue gets.
type chunk struct {
	queue string
	all   []dispatch
}

func chunked(e *entry, all []dispatch) []chunk {
	var chunks []chunk
	open := map[string]int{}
	for _, d := range all {
		q := e.plan.Definition().Tasks[d.attempt.Task].Queue
		at, ok := open[q]
		if !ok || len(chunks[at].all) == sendChunk {
			at, chunks = len(chunks), append(chunks, chunk{queue: q})
			open[q] = at
		}
		chunks[at].all = append(chunks[at].all, d)
	}
	return chunks
}

// send puts the messages of attempts into their queues until ctx ends. Accepted
// ones become marks. A message that is refused for good ends its attempt: the
// result holds what follows. Whatever else stays unsent is left to a wake.
func (c *Coordinator) send(ctx context.Context, j *job, e *entry, all []dispatch) ([]*item, error) {
	if all = c.beginSends(j.wf, all); len(all) == 0 {
		return nil, nil
	}
	chunks := chunked(e, all)
	results := make([]sent, len(chunks))
	c.sched.Parallel(ctx, len(chunks), c.o.Parallel, func(ctx context.Context, i int) {
		results[i] = c.sendChunk(ctx, e, chunks[i])
	})
	var accepted []engine.Attempt
	var refusals []refused
	for _, r := range results {
		accepted = append(accepted, r.accepted...)
		refusals = append(refusals, r.refused...)
		j.left = j.left || r.left
	}
	c.endSends(j.wf, all, accepted)
	if len(accepted) > 0 {
		j.helped = j.helped || j.traced
		c.noteMarks(j.wf)
	}
	if len(j.repair) > 0 {
		j.resent = append(j.resent, accepted...)
	}
	if err := c.remark(j.wf, e); err != nil {
		return nil, err
	}
	return c.endRefused(ctx, j, e, refusals), nil
}

// sent is what became of the messages of a chunk.
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

func (c *Coordinator) sendChunk(ctx context.Context, e *entry, ch chunk) sent {
	var r sent
	s := e.run.State()
	q := c.store.Queues.Queue(s.Namespace + ch.queue)
	limit := q.Props().MaxMessage
	attempts := make([]engine.Attempt, 0, len(ch.all))
	messages := make([]port.Message, 0, len(ch.all))
	for _, d := range ch.all {
		if ctx.Err() != nil {
			r.left = true
			break
		}
		body, err := c.taskMessage(ctx, e, d.attempt, limit)
		switch {
		case err == nil:
			attempts = append(attempts, d.attempt)
			messages = append(messages, port.Message{ID: d.id, Body: body})
		case refusal(err):
			r.refused = append(r.refused, refused{d.attempt, err})
		default:
			c.log.Warn("task message not made", "workflow", s.ID, "task", e.plan.Name(d.attempt.Task), "error", err)
			r.left = true
		}
	}
	c.post(ctx, q, attempts, messages, &r)
	return r
}

// post sends messages, creating the queue once where it is missing. One that is
// missing again is an outage, not a refusal.
func (c *Coordinator) post(ctx context.Context, q port.Queue, attempts []engine.Attempt, messages []port.Message, r *sent) {
	for try := 0; len(messages) > 0; try++ {
		errs := q.Send(ctx, messages)
		missing, left, why := 0, 0, error(nil)
		for i, a := range attempts {
			switch err := at(errs, i); {
			case err == nil:
				c.stats.sent.Add(1)
				r.accepted = append(r.accepted, a)
			case fault.Is(err, fault.NotFound) && try == 0:
				attempts[missing], messages[missing] = a, messages[i]
				missing++
			case refusal(err):
				r.refused = append(r.refused, refused{a, err})
			default:
				left, why = left+1, err
			}
		}
		if left > 0 {
			c.log.Warn("task messages not sent", "queue", q.Name(), "messages", left, "error", why)
			r.left = true
		}
		attempts, messages = attempts[:missing], messages[:missing]
		if missing == 0 {
			return
		}
		if err := c.store.Queues.Ensure(ctx, q.Name()); err != nil {
			if !refusal(err) && !fault.Is(err, fault.Denied) {
				r.left = true
				return
			}
			for _, a := range attempts {
				r.refused = append(r.refused, refused{a, err})
			}
			return
		}
	}
}

// refusal reports whether no repeat of the same send can succeed.
func refusal(err error) bool {
	return fault.Is(err, fault.TooLarge) || fault.Is(err, fault.Invalid)
}

// at returns the error of message i: a nil slice means that all went well.
func at(errs []error, i int) error {
	if errs == nil {
		return nil
	}
	return errs[i]
}

// endRefused ends attempts whose message was refused for good through their
// records, as every attempt that has a number is ended.
func (c *Coordinator) endRefused(ctx context.Context, j *job, e *entry, all []refused) []*item {
	ends := make([]attemptEnd, len(all))
	for i, x := range all {
		completion := &msg.Completion{
			Workflow: j.wf, Task: e.plan.Name(x.attempt.Task), Attempt: x.attempt.Attempt,
			Reason: msg.Undeliverable, Error: x.why.Error(), EndedAt: c.sched.Now().UTC(),
		}
		ends[i] = attemptEnd{x.attempt, msg.Ended{Completion: completion}}
	}
	return c.endAttempts(ctx, j, e, ends)
}

// taskMessage builds the message of an attempt, at most limit bytes long.
func (c *Coordinator) taskMessage(ctx context.Context, e *entry, a engine.Attempt, limit int) ([]byte, error) {
	s := e.run.State()
	d := e.plan.Definition()
	t := &d.Tasks[a.Task]
	m := msg.Task{
		ID:       msg.FirstSendID(s.ID, t.Name, a.Attempt),
		Workflow: s.ID, Name: t.Name, Attempt: a.Attempt, Epoch: s.Epoch,
		Prefix: c.o.Prefix, Queues: c.o.Queues, TimeoutSeconds: d.TimeoutOf(int(a.Task)).Seconds(),
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
		m.Statuses = statuses(e, a.Task, parents)
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

// statuses returns the parents of task t by status, less those of which the task
// gets the outputs of a success: given is what it gets, in the same order.
func statuses(e *entry, t int32, given []int32) map[string][]string {
	var out map[string][]string
	for _, p := range e.plan.Graph().Parents(int(t)) {
		status := e.run.State().TaskStatus[p]
		if len(given) > 0 && given[0] == p {
			given = given[1:]
			if status == state.Completed {
				continue
			}
		}
		if out == nil {
			out = map[string][]string{}
		}
		out[status.String()] = append(out[status.String()], e.plan.Name(p))
	}
	return out
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
