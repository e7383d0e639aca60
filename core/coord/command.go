package coord

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"jobq/core/engine"
	"jobq/core/fault"
	"jobq/core/msg"
	"jobq/core/port"
	"jobq/core/state"
)

// Command identifies a call: a repeat under the same ID answers what the first
// one did. By says who asked.
type Command struct {
	ID string
	By string
}

// The words of commands on the wire and in claims.
const (
	kindSubmit = "submit"
	kindCancel = "cancel"
	kindRetry  = "retry"
	kindRerun  = "rerun"
	kindMark   = "mark"
	kindPurge  = "purge"
)

// rerunArgs and markArgs are the arguments of their commands on the wire.
type rerunArgs struct {
	Tasks      []string `json:"tasks"`
	Downstream bool     `json:"downstream,omitempty"`
}

type markArgs struct {
	Task   string `json:"task"`
	To     string `json:"to"`
	Output string `json:"output,omitempty"`
}

// Cancel stops workflow wf. The answer is definite; running tasks end later.
// Fails with fault.Conflict when there is nothing to cancel.
func (c *Coordinator) Cancel(ctx context.Context, wf string, cmd Command) (engine.Answer, error) {
	return c.command(ctx, wf, cmd, kindCancel, nil)
}

// Retry resets the tasks of wf that ended without success. Fails with
// fault.Conflict when there is none or the workflow is being cancelled.
func (c *Coordinator) Retry(ctx context.Context, wf string, cmd Command) (engine.Answer, error) {
	return c.command(ctx, wf, cmd, kindRetry, nil)
}

// Rerun runs tasks of wf again, with everything behind them if downstream.
func (c *Coordinator) Rerun(ctx context.Context, wf string, tasks []string, downstream bool, cmd Command) (engine.Answer, error) {
	return c.command(ctx, wf, cmd, kindRerun, rerunArgs{tasks, downstream})
}

// RerunDry says what Rerun would do and changes nothing.
func (c *Coordinator) RerunDry(ctx context.Context, wf string, tasks []string, downstream bool) (engine.Answer, error) {
	e, err := c.peek(ctx, wf)
	if err != nil {
		return engine.Answer{}, err
	}
	out, err := e.run.Step(engine.Rerun{Tasks: tasks, Downstream: downstream, DryRun: true}, c.sched.Now())
	if err != nil {
		return engine.Answer{}, err
	}
	if len(out.Answer.Tasks) == 0 {
		return *out.Answer, fault.New(fault.Conflict, out.Answer.Text)
	}
	return *out.Answer, nil
}

// Mark gives a task of wf the status completed or skipped by hand. output is
// JSON text or empty.
func (c *Coordinator) Mark(ctx context.Context, wf, task string, to state.TaskStatus, output string, cmd Command) (engine.Answer, error) {
	if len(output) > state.MaxInlineOutput {
		return engine.Answer{}, fault.Newf(fault.TooLarge, "an output given by hand may have %d bytes, this has %d", state.MaxInlineOutput, len(output))
	}
	if output != "" && !json.Valid([]byte(output)) {
		return engine.Answer{}, fault.New(fault.Invalid, "the output is not JSON")
	}
	return c.command(ctx, wf, cmd, kindMark, markArgs{task, to.String(), output})
}

// Purge removes everything of a workflow that has ended, but for a tombstone.
func (c *Coordinator) Purge(ctx context.Context, wf string, cmd Command) (engine.Answer, error) {
	return c.command(ctx, wf, cmd, kindPurge, nil)
}

// command claims, applies and confirms. While others keep winning it goes on for
// Options.CommandPatience; then the command goes into the inbox and the state is
// watched for it.
func (c *Coordinator) command(ctx context.Context, wf string, cmd Command, kind string, args any) (engine.Answer, error) {
	if cmd.ID == "" {
		cmd.ID = c.newID()
	}
	m := msg.Command{ID: cmd.ID, Workflow: wf, Kind: kind, By: cmd.By}
	if args != nil {
		raw, err := json.Marshal(args)
		if err != nil {
			return engine.Answer{}, fault.Wrap(fault.Internal, err, "the command cannot be encoded")
		}
		m.Args = raw
	}
	if _, err := c.peek(ctx, wf); err != nil {
		return engine.Answer{}, err
	}
	if err := c.claim(ctx, m); err != nil {
		return engine.Answer{}, err
	}
	answer, err := c.applyCommand(ctx, m)
	if code := fault.CodeOf(err); err != nil && (code == fault.Conflict || code.Transient()) {
		return c.enqueueCommand(ctx, m, err)
	}
	if unclaim := c.unclaim(ctx, m); err == nil && unclaim != nil {
		c.log.Warn("claim row stays until the sweep", "workflow", wf, "error", unclaim)
	}
	if err == nil && !answer.Done {
		err = fault.New(fault.Conflict, answer.Text)
	}
	return answer, err
}

// applyCommand runs the loop with the command until it is in a saved state.
func (c *Coordinator) applyCommand(ctx context.Context, m msg.Command) (engine.Answer, error) {
	end := c.sched.Now().Add(c.o.CommandPatience)
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		j := &job{wf: m.Workflow, items: []item{{inbox: msg.Inbox{Command: &m}, trace: true}}}
		round, cancel := c.sched.WithTimeout(ctx, c.o.roundTime(), roundOperation)
		err := c.update(round, j)
		cancel()
		if purged, ok := errors.AsType[*purgedError](err); ok {
			return purgedAnswer(m, purged)
		}
		if err == nil && j.answer == nil {
			return engine.Answer{}, fault.New(fault.Internal, "the command had no answer")
		}
		if err == nil {
			return *j.answer, nil
		}
		code := fault.CodeOf(err)
		if code != fault.Conflict && !code.Transient() || !c.sched.Now().Before(end) {
			return engine.Answer{}, err
		}
		if err := c.sched.Sleep(ctx, c.jitter(wait)); err != nil {
			return engine.Answer{}, err
		}
	}
}

// purgedAnswer answers a command that meets a tombstone: the repeat of a purge
// gets its first answer, everything else finds nothing.
func purgedAnswer(m msg.Command, p *purgedError) (engine.Answer, error) {
	if known, ok := p.tombstone.Command(m.ID); ok {
		var a engine.Answer
		if err := json.Unmarshal(known.Answer, &a); err == nil {
			return a, nil
		}
	}
	return engine.Answer{}, fault.Newf(fault.NotFound, "workflow %s was purged", m.Workflow)
}

// unconfirmedAfter is how long a command in the inbox is waited for.
const unconfirmedAfter = 30 * time.Second

func (c *Coordinator) enqueueCommand(ctx context.Context, m msg.Command, cause error) (engine.Answer, error) {
	body, err := msg.EncodeCommand(m)
	if err != nil {
		return engine.Answer{}, err
	}
	e, err := c.peek(ctx, m.Workflow)
	if err != nil {
		return engine.Answer{}, errors.Join(err, cause)
	}
	q := c.store.Queues.Queue(e.run.State().Namespace + c.o.Inbox)
	if err := firstError(q.Send(ctx, []port.Message{{ID: c.newID(), Body: body}})); err != nil {
		return engine.Answer{}, fault.Wrap(fault.Unavailable, err, "the command could neither be applied nor queued")
	}
	end := c.sched.Now().Add(unconfirmedAfter)
	for c.sched.Now().Before(end) {
		if err := c.sched.Sleep(ctx, time.Second); err != nil {
			break
		}
		e, err := c.peek(ctx, m.Workflow)
		if err != nil {
			continue
		}
		if known, ok := e.run.State().Command(m.ID); ok {
			var a engine.Answer
			return a, json.Unmarshal(known.Answer, &a)
		}
	}
	return engine.Answer{}, fault.Wrap(fault.Unavailable, cause, "queued, not confirmed").
		WithRemedy("the command is durable and will be applied; look at the status in a moment")
}

// commandEvent turns a command of the wire into an event of the engine.
func commandEvent(m *msg.Command) (engine.Event, error) {
	base := engine.Command{ID: m.ID, By: m.By}
	switch m.Kind {
	case kindCancel:
		return engine.Cancel{Command: base}, nil
	case kindRetry:
		return engine.Retry{Command: base}, nil
	case kindPurge:
		return engine.Purge{Command: base}, nil
	case kindRerun:
		var a rerunArgs
		err := json.Unmarshal(m.Args, &a)
		return engine.Rerun{Command: base, Tasks: a.Tasks, Downstream: a.Downstream}, commandError(m, err)
	case kindMark:
		var a markArgs
		err := json.Unmarshal(m.Args, &a)
		ev := engine.Mark{Command: base, Task: a.Task, To: state.Completed}
		if a.To == state.Skipped.String() {
			ev.To = state.Skipped
		}
		if a.Output != "" {
			ev.Output = state.Output{Kind: state.InlineOutput, Text: a.Output}
		}
		return ev, commandError(m, err)
	default:
		// A newer program may know it: the message must not be lost here.
		return nil, fault.Newf(fault.TooNew, "command %q is not known to this program", m.Kind)
	}
}

func commandError(m *msg.Command, err error) error {
	if err == nil {
		return nil
	}
	return fault.Wrapf(fault.Invalid, err, "the arguments of command %s cannot be read", m.Kind)
}

// claimTime is after how long the sweep finishes a command that its caller left.
const claimTime = 60 * time.Second

func claimKey(m msg.Command) string { return m.Workflow + "!" + m.ID }

func (c *Coordinator) claim(ctx context.Context, m msg.Command) error {
	note, err := json.Marshal(m)
	if err != nil {
		return fault.Wrap(fault.Internal, err, "the claim cannot be encoded")
	}
	return c.store.Index.PutDue(ctx, port.Due{
		Key: claimKey(m), Workflow: m.Workflow, DueAt: c.sched.Now().Add(claimTime), Note: string(note),
	})
}

func (c *Coordinator) unclaim(ctx context.Context, m msg.Command) error {
	return c.store.Index.DeleteDue(ctx, claimKey(m))
}

// peek reads wf for a view. The entry is nobody else's and is not cached.
func (c *Coordinator) peek(ctx context.Context, wf string) (*entry, error) {
	doc, err := c.store.States.Load(ctx, wf, "")
	if fault.Is(err, fault.NotFound) {
		return nil, fault.Wrapf(fault.NotFound, err, "workflow %s does not exist", wf)
	}
	if err != nil {
		return nil, err
	}
	e, err := c.decode(ctx, wf, doc)
	if _, purged := errors.AsType[*purgedError](err); purged {
		return nil, fault.Newf(fault.NotFound, "workflow %s was purged", wf)
	}
	return e, err
}
