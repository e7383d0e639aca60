package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"jobq/core/coord"
	"jobq/core/engine"
	"jobq/core/fault"
	"jobq/internal/obs"
)

// commandAnswer is what commands print with --json.
type commandAnswer struct {
	WorkflowID string `json:"workflow_id"`
	engine.Answer
}

func newCancel(a *app) *cobra.Command {
	return a.workflowCommand(verb{
		use: "cancel ID", short: "Stop a workflow", group: groupCommand,
		long: `Stop a workflow. What has not been sent is cancelled at once; running tasks get SIGTERM from their
workers and are cancelled when they have ended.`,
	}, func(ctx context.Context, c *coord.Coordinator, id string) (engine.Answer, error) {
		return c.Cancel(ctx, id, a.by())
	}, nil)
}

// workflowCommand builds a verb that applies one command to one workflow. hint,
// if there is one, tells what to do after it.
func (a *app) workflowCommand(v verb, apply func(context.Context, *coord.Coordinator, string) (engine.Answer, error),
	hint func(context.Context, *session, string)) *cobra.Command {
	var asJSON bool
	v.least, v.most = 1, 1
	v.run = func(cmd *cobra.Command, args []string) error {
		if err := workflowID(cmd, args[0]); err != nil {
			return err
		}
		return a.with(cmd.Context(), func(s *session) error {
			c, err := s.commander(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			answer, err := apply(cmd.Context(), c, args[0])
			if err != nil {
				return a.commandError(args[0], err)
			}
			if err := a.printAnswer(args[0], answer, asJSON); err != nil {
				return err
			}
			if hint != nil {
				hint(cmd.Context(), s, args[0])
			}
			return nil
		})
	}
	cmd := a.command(v)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// commandError gives a refused command the remedy of somebody who typed it.
func (a *app) commandError(id string, err error) error {
	refused, ok := errors.AsType[*fault.Error](err)
	if ok && refused.Code() == fault.Conflict && fault.RemedyOf(refused) == fault.Conflict.Remedy() {
		return refused.WithRemedy("`" + a.commandLine("status", id) + "` shows its present state")
	}
	return err
}

func (a *app) printAnswer(id string, answer engine.Answer, asJSON bool) error {
	if asJSON {
		return printJSON(a.out, commandAnswer{id, answer})
	}
	return a.print(id + ": " + line(answer.Text))
}

// servedBy says how to go on with a workflow after a command, where somebody has
// to: a run of one machine that has something to do and no process to do it. The
// command was done, whether or not that can be found out.
func (a *app) servedBy(ctx context.Context, s *session, id string) {
	w, err := s.loadState(ctx, id)
	stopped := false
	if err == nil {
		stopped, err = s.stopped(ctx, w)
	}
	if err != nil {
		a.log.Warn("it cannot be seen whether anybody runs the workflow", obs.KeyWorkflow, id, obs.KeyError, err)
	}
	if stopped {
		a.note("to go on with it: %s", a.commandLine("run", "--resume", id))
	}
}
