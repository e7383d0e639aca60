package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"jobq/core/engine"
	"jobq/core/fault"
)

// rerunFlags select what runs again.
type rerunFlags struct {
	tasks, from          []string
	failed, dryRun, json bool
}

func newRerun(a *app) *cobra.Command {
	var f rerunFlags
	cmd := a.command(verb{
		use: "rerun ID", short: "Run chosen tasks again", group: groupCommand, least: 1, most: 1,
		long: `Run chosen tasks of a workflow again, whether they succeeded or not; works on completed workflows too.
--task takes exactly the tasks named, --from adds everything behind them, --failed takes what ended
without success.`,
		example: "  jobq rerun nightly-7 --from train --dry-run\n  jobq rerun nightly-7 --task report",
		run: func(cmd *cobra.Command, args []string) error {
			if err := workflowID(cmd, args[0]); err != nil {
				return err
			}
			chosen := 0
			for _, given := range []bool{len(f.tasks) > 0, len(f.from) > 0, f.failed} {
				if given {
					chosen++
				}
			}
			if chosen != 1 {
				return usageError("rerun", "say what to run again: exactly one of --task, --from and --failed")
			}
			return a.with(cmd.Context(), func(s *session) error { return a.rerun(cmd.Context(), s, args[0], f) })
		},
	})
	cmd.Flags().StringArrayVar(&f.tasks, "task", nil, "run the task `NAME` again and nothing else; may be repeated")
	cmd.Flags().StringArrayVar(&f.from, "from", nil, "run the task `NAME` and everything behind it again; may be repeated")
	cmd.Flags().BoolVar(&f.failed, "failed", false, "run what ended without success again")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "change nothing: print what would run again and what is kept")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON object")
	return cmd
}

func (a *app) rerun(ctx context.Context, s *session, id string, f rerunFlags) error {
	tasks, downstream := f.tasks, false
	if len(f.from) > 0 {
		tasks, downstream = f.from, true
	}
	if f.failed {
		var err error
		if tasks, err = s.unsuccessful(ctx, id); err != nil {
			return err
		}
	}
	c, err := s.commander(ctx, id, tasks...)
	if err != nil {
		return err
	}
	if f.dryRun {
		answer, err := c.RerunDry(ctx, id, tasks, downstream)
		if err != nil {
			return a.commandError(id, err)
		}
		return a.printPlan(id, answer, f.json)
	}
	answer, err := c.Rerun(ctx, id, tasks, downstream, a.by())
	if err != nil {
		return a.commandError(id, err)
	}
	if err := a.printAnswer(id, answer, f.json); err != nil {
		return err
	}
	a.servedBy(ctx, s, id)
	return nil
}

// unsuccessful names the tasks of a workflow that ended without success.
func (s *session) unsuccessful(ctx context.Context, id string) ([]string, error) {
	d, _, err := s.Definition(ctx, id)
	if err != nil {
		return nil, err
	}
	w, err := s.loadState(ctx, id)
	if err != nil {
		return nil, err
	}
	var names []string
	for i := range d.Tasks {
		if w.TaskStatus[i].Unsuccessful() {
			names = append(names, d.Tasks[i].Name)
		}
	}
	if len(names) == 0 {
		return nil, fault.Newf(fault.Conflict, "no task of workflow %s ended without success", id).
			WithRemedy("`jobq tasks " + id + "` shows how they ended; --task and --from run successful ones again")
	}
	return names, nil
}

// printPlan writes the answer of a dry run.
func (a *app) printPlan(id string, answer engine.Answer, asJSON bool) error {
	if asJSON {
		return printJSON(a.out, commandAnswer{id, answer})
	}
	if err := a.print(fmt.Sprintf("would run again: %s", count(len(answer.Tasks), "task"))); err != nil {
		return err
	}
	for _, name := range answer.Tasks {
		if err := a.print("  " + line(name)); err != nil {
			return err
		}
	}
	return a.print(fmt.Sprintf("would be kept: %s", count(answer.Kept, "task")))
}
