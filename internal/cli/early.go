package cli

import (
	"context"
	"errors"
	"fmt"

	"jobq/core/coord"
	"jobq/core/dag"
	"jobq/core/fault"
	"jobq/internal/local"
	"jobq/store"
)

// standing is what is known of a run that was stopped before it was seen.
type standing struct {
	coord.Summary
	// runner is the process that goes on with it, empty for none.
	runner string
}

// interruptedEarly says how a run stands that a stop met while it was being submitted or
// while another process had it.
func (a *app) interruptedEarly(ctx context.Context, o local.Options, v *runView, f runFlags) error {
	end := a.slow.begin()
	now, err := a.lookAgain(context.WithoutCancel(ctx), o)
	end()
	switch {
	case fault.Is(err, fault.NotFound) && o.Definition != nil:
		a.tell("jobq: interrupted; nothing was submitted\n")
		return ended(exitInterrupted)
	case err != nil:
		a.tell(fmt.Sprintf("jobq: interrupted; how run %s stands cannot be seen: %s\n  look again: %s\n",
			o.WorkflowID, plain(err.Error()), a.commandLine("status", o.WorkflowID)))
		return ended(exitInterrupted)
	case now.runner != "":
		a.tell(fmt.Sprintf("jobq: interrupted; run %s goes on: %s has it\n  follow it: %s\n",
			o.WorkflowID, now.runner, a.commandLine("watch", o.WorkflowID)))
	default:
		v.interrupted(now.Summary)
	}
	if f.json {
		now.Stopped = now.runner == "" && !endedWord(now.Status)
		if err := printJSON(a.out, now.Summary); err != nil {
			return err
		}
	}
	return ended(exitInterrupted)
}

// lookAgain reads how the run of o stands. Fails with fault.NotFound where it was not
// submitted, though there may be another one of that name.
func (a *app) lookAgain(ctx context.Context, o local.Options) (standing, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, lastWords, errors.New("the last look at the run took too long"))
	defer cancel()
	var now standing
	err := a.withPlace(ctx, store.Local, o.Prefix, func(s *session) (err error) {
		if now.Summary, err = s.Status(ctx, o.WorkflowID); err != nil {
			return err
		}
		if err := s.isOf(ctx, o); err != nil {
			return err
		}
		now.runner, err = s.runner(ctx, o.WorkflowID)
		return err
	})
	return now, err
}

// isOf fails with fault.NotFound where the stored workflow has another definition than
// the one to submit.
func (s *session) isOf(ctx context.Context, o local.Options) error {
	if o.Definition == nil {
		return nil
	}
	d, _, err := s.Definition(ctx, o.WorkflowID)
	if err == nil && dag.Hash(d) != dag.Hash(o.Definition) {
		err = fault.Newf(fault.NotFound, "workflow %s exists with another definition", o.WorkflowID)
	}
	return err
}

// runner names the process that runs the workflow, as far as it is known; empty is none.
func (s *session) runner(ctx context.Context, id string) (string, error) {
	holder, err := s.store.Leases.Holder(ctx, local.Lease(id))
	if err != nil || holder == "" {
		return "", err
	}
	members, err := s.store.Presence.Members(ctx)
	for _, m := range members {
		if m.ID == holder {
			return fmt.Sprintf("process %d on %s", m.PID, m.Host), err
		}
	}
	return "another process", err
}
