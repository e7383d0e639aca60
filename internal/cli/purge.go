package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"jobq/core/coord"
	"jobq/core/fault"
	"jobq/core/port"
	"jobq/core/state"
)

func newPurge(a *app) *cobra.Command {
	var all, yes, asJSON bool
	cmd := a.command(verb{
		use: "purge ID...", short: "Remove workflows that have ended, with all their data", group: groupCommand, most: -1,
		long: `Remove workflows that have ended: their definition, outputs, logs and history. A few bytes stay, so
that the id can be used again without meeting old messages.`,
		example: "  jobq purge nightly-6 nightly-7\n  jobq purge --all --yes",
		run: func(cmd *cobra.Command, ids []string) error {
			switch {
			case all == (len(ids) > 0):
				return usageError("purge", "say what to remove: either ids, or --all")
			case all && !yes:
				return fault.New(fault.Invalid, "--all removes every workflow that has ended").WithRemedy("add --yes if that is meant")
			}
			for _, id := range ids {
				if err := workflowID(cmd, id); err != nil {
					return err
				}
			}
			return a.with(cmd.Context(), func(s *session) error {
				if all {
					var err error
					if ids, err = endedWorkflows(cmd.Context(), s); err != nil {
						return err
					}
					if len(ids) == 0 {
						a.note("no workflow has ended")
					}
				}
				return a.purge(cmd.Context(), s, ids, asJSON)
			})
		},
	})
	cmd.Flags().BoolVar(&all, "all", false, "remove every workflow that has ended")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask back about --all")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a line for each workflow")
	return cmd
}

// purge removes ids, all of them even where one fails.
func (a *app) purge(ctx context.Context, s *session, ids []string, asJSON bool) error {
	var errs []error
	for _, id := range ids {
		answer, err := s.Purge(ctx, id, a.by())
		if err == nil {
			err = a.printAnswer(id, answer, asJSON)
		} else {
			err = a.commandError(id, err)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func endedWorkflows(ctx context.Context, s *session) ([]string, error) {
	var ids, words []string
	for _, status := range state.WorkflowStatuses() {
		if status.Ended() && status != state.WorkflowPurged {
			words = append(words, status.String())
		}
	}
	err := eachWorkflow(ctx, s, port.Filter{Status: words}, func(w coord.Summary) (bool, error) {
		ids = append(ids, w.WorkflowID)
		return true, nil
	})
	return ids, err
}
