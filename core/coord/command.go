package coord

import (
	"cmp"
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
	e, err := c.read(ctx, wf)
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
	if to != state.Completed && to != state.Skipped {
		return engine.Answer{}, fault.Newf(fault.Invalid, "a task can be marked completed or skipped, not %s", to)
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
	given := cmd.ID != ""
	if !given {
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
	// What is refused on sight leaves no claim, which the sweep might carry out
	// when it is no longer wanted.
	settle := false
	answer, epoch, err := c.foresee(ctx, m)
	if err != nil {
		if !given || answer.Text == "" {
			return answer, err
		}
		// An earlier call under this id may have left a claim, or a copy in the inbox
		// that comes when the command can be done: the state must have the refusal.
		settle = true
	}
	if err := c.claim(ctx, m, epoch); err != nil {
		return engine.Answer{}, err
	}
	answer, rows, err := c.applyCommand(ctx, &item{inbox: msg.Inbox{Command: &m}, settle: settle}, c.sched.Now().Add(c.o.CommandPatience))
	if err != nil && passing(err) && ctx.Err() == nil {
		if answer, err = c.enqueueCommand(ctx, m, err); err == nil && answer.Done {
			return answer, nil // the claim stays: whoever did it may have stopped before the rows
		}
	}
	if err != nil && !neverApplied(err) {
		return answer, err // the claim stays: the command may have been applied
	}
	if rows != nil && answer.Done {
		return answer, nil // the claim stays: it brings the sweep to the rows
	}
	unclaim := c.unclaim(ctx, m)
	switch done := err == nil && answer.Done; {
	case done && unclaim != nil:
		c.log.Warn("claim row stays until the sweep", "workflow", wf, "error", unclaim)
	case !done && unclaim != nil && !settle:
		return answer, fault.Wrap(fault.Unavailable, unclaim, "the command was refused, but the sweep may try it again")
	case err == nil && !done:
		err = fault.New(fault.Conflict, answer.Text)
	}
	return answer, err
}

// passing reports whether err may be gone at the next try: others were faster, or
// the store had no answer.
func passing(err error) bool {
	switch fault.CodeOf(err) {
	case fault.Conflict, fault.Exists, fault.Throttled, fault.Unavailable, fault.Canceled, fault.LeaseLost:
		return true
	default:
		return false
	}
}

// neverApplied reports whether err says for certain that the command was not
// applied and never will be. A state that cannot be read says no such thing: an
// earlier call of the same command may be in it, with its claim as the only trace.
func neverApplied(err error) bool {
	return fault.Is(err, fault.NotFound) || fault.Is(err, fault.Invalid)
}

// foresee says what m would come to, without applying it, and which epoch it would
// begin. It fails where m is refused.
func (c *Coordinator) foresee(ctx context.Context, m msg.Command) (answer engine.Answer, epoch uint64, err error) {
	e, err := c.read(ctx, m.Workflow)
	if purged, ok := errors.AsType[*purgedError](err); ok {
		if _, known := remembered(purged.tombstone, m); known {
			return engine.Answer{}, 0, nil
		}
	}
	if err != nil {
		return engine.Answer{}, 0, err
	}
	ev, err := (&item{inbox: msg.Inbox{Command: &m}}).toEvent()
	if err != nil {
		return engine.Answer{}, 0, err
	}
	epoch = e.run.State().Epoch + 1
	out, err := e.run.Step(ev, c.sched.Now())
	if err != nil {
		return engine.Answer{}, 0, err
	}
	if !out.Answer.Done {
		return *out.Answer, epoch, fault.New(fault.Conflict, out.Answer.Text)
	}
	return *out.Answer, epoch, nil
}

// applyCommand runs the loop with the command of it until that is in a saved state,
// at the latest until end. rows is why the index rows could not be written then.
func (c *Coordinator) applyCommand(ctx context.Context, it *item, end time.Time) (answer engine.Answer, rows, err error) {
	m := *it.inbox.Command
	it.trace = true
	unknown := false
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		it.err = nil
		j := &job{wf: m.Workflow, items: []*item{it}, direct: true}
		err := cmp.Or(c.run(ctx, j), it.err)
		unknown = unknown || j.unknown
		if purged, ok := errors.AsType[*purgedError](err); ok {
			answer, err = purgedAnswer(m, purged)
			return answer, nil, err
		}
		if err == nil {
			// What was applied by a save of ours without an answer is no repeat.
			j.answer.Repeated = j.answer.Repeated && !unknown
			return *j.answer, j.rows, nil
		}
		if !passing(err) || !c.sched.Now().Before(end) {
			return engine.Answer{}, nil, err
		}
		if err := c.sched.Sleep(ctx, c.jitter(wait)); err != nil {
			return engine.Answer{}, nil, err
		}
	}
}

// purgedAnswer answers a command that meets a tombstone: the repeat of a purge
// gets its first answer, everything else finds nothing.
func purgedAnswer(m msg.Command, p *purgedError) (engine.Answer, error) {
	known, ok := remembered(p.tombstone, m)
	if !ok {
		return engine.Answer{}, p
	}
	return rememberedAnswer(known)
}

// remembered returns the result of m in s.
func remembered(s *state.Workflow, m msg.Command) (state.CommandResult, bool) {
	known, ok := s.Command(m.ID)
	return known, ok && known.Kind == m.Kind
}

func rememberedAnswer(known state.CommandResult) (engine.Answer, error) {
	a := engine.Answer{Repeated: true}
	if err := json.Unmarshal(known.Answer, &a); err != nil {
		return a, fault.Wrap(fault.Corrupt, err, "the remembered answer of a command cannot be read")
	}
	return a, nil
}

// unconfirmedAfter is how long a command in the inbox is waited for.
const unconfirmedAfter = 30 * time.Second

// enqueueCommand puts a command that could not be applied into the inbox and
// watches the state for it.
func (c *Coordinator) enqueueCommand(ctx context.Context, m msg.Command, cause error) (engine.Answer, error) {
	body, err := msg.EncodeCommand(m)
	if err != nil {
		return engine.Answer{}, err
	}
	e, err := c.read(ctx, m.Workflow)
	if purged, ok := errors.AsType[*purgedError](err); ok {
		if _, ours := remembered(purged.tombstone, m); ours && removing(purged.tombstone) {
			return engine.Answer{}, fault.Wrap(fault.Unavailable, cause, "the purge has begun and is not complete").
				WithRemedy("the sweep completes it; the same call can be made again")
		}
		// Perhaps by this very command, which another process brought to its end.
		return purgedAnswer(m, purged)
	}
	if err != nil {
		return engine.Answer{}, err // whether the command was applied is in what cannot be read
	}
	q := c.store.Queues.Queue(e.run.State().Namespace + c.o.Inbox)
	if err := c.tell(ctx, q, port.Message{ID: c.newID(), Body: body}); err != nil {
		return engine.Answer{}, fault.Wrap(fault.Unavailable, err, "the command could neither be applied nor queued")
	}
	for end := c.sched.Now().Add(unconfirmedAfter); c.sched.Now().Before(end); {
		if err := c.sched.Sleep(ctx, time.Second); err != nil {
			break
		}
		e, err := c.read(ctx, m.Workflow)
		if purged, ok := errors.AsType[*purgedError](err); ok {
			return purgedAnswer(m, purged)
		}
		if err != nil {
			continue
		}
		if known, ok := remembered(e.run.State(), m); ok {
			return rememberedAnswer(known)
		}
	}
	return engine.Answer{}, fault.Wrap(fault.Unavailable, cause, "queued, not confirmed").
		WithRemedy("the command is durable and will be decided; look at the status in a moment")
}

// commandEvent turns a command of the wire into an event of the engine.
func (it *item) commandEvent() (engine.Event, error) {
	m := it.inbox.Command
	base := engine.Command{ID: m.ID, By: m.By, Settle: it.settle, Epoch: it.epoch}
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
		switch a.To {
		case state.Completed.String():
		case state.Skipped.String():
			ev.To = state.Skipped
		default:
			if err == nil {
				return nil, fault.Newf(fault.TooNew, "a mark as %q is not known to this program", a.To)
			}
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

// claimed is the note of a claim. Epoch is the one that the command was to begin when
// it was claimed, or 0: what its caller left is done later only where no other
// command came since. He may have given it again, or want something else now.
type claimed struct {
	msg.Command
	Epoch uint64 `json:"epoch,omitempty"`
}

func (c *Coordinator) claim(ctx context.Context, m msg.Command, epoch uint64) error {
	note, err := json.Marshal(claimed{m, epoch})
	if err != nil {
		return fault.Wrap(fault.Internal, err, "the claim cannot be encoded")
	}
	return c.store.Index.PutDue(ctx, port.Due{
		Key: claimKey(m), Workflow: m.Workflow, DueAt: c.sched.Now().Add(claimTime), Note: string(note),
	})
}

func (c *Coordinator) unclaim(ctx context.Context, m msg.Command) error {
	return c.store.Index.DeleteDue(ctx, claimKey(m), 0)
}
