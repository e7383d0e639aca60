package cli

import (
	"context"

	"github.com/spf13/cobra"

	"jobq/core/coord"
	"jobq/core/engine"
)

func newRetry(a *app) *cobra.Command {
	var run bool
	var view runFlags
	cmd := a.workflowCommand(verb{
		use: "retry ID", short: "Reset the tasks that did not succeed", group: groupCommand,
		long: `Reset the tasks of a workflow that ended without success, so that they run again; what succeeded is
kept. With --run they run here and now, as with "jobq run".`,
		example: "  jobq retry nightly-7\n  jobq retry nightly-7 --run",
	}, func(ctx context.Context, c *coord.Coordinator, id string) (engine.Answer, error) {
		return c.Retry(ctx, id, a.by())
	}, a.servedBy)
	plain := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := emptyFlag(cmd, "cwd"); err != nil {
			return err
		}
		if !run && view.cwd != "" {
			return usageError("retry", "--cwd says where the tasks run here: it goes with --run")
		}
		if !run {
			return plain(cmd, args)
		}
		if err := a.configure("retry", settingFlags(cmd), false); err != nil {
			return err
		}
		if err := workflowID(cmd, args[0]); err != nil {
			return err
		}
		view.json = cmd.Flag("json").Value.String() == "true"
		return a.resume(cmd.Context(), args[0], true, view)
	}
	cmd.Flags().BoolVar(&run, "run", false, "run them on this machine, to the end")
	view.addCwd(cmd)
	return cmd
}
