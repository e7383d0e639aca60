package cli

import (
	"io"
	"strings"

	"github.com/spf13/cobra"

	"jobq/core/fault"
	"jobq/core/state"
)

func newMark(a *app) *cobra.Command {
	var asJSON bool
	var output string
	cmd := a.command(verb{
		use: "mark ID TASK completed|skipped", short: "Give a task a result by hand", group: groupCommand, least: 3, most: 3,
		long: `Give a task that is not running the status completed or skipped by hand, so that what depends on it
can go on. The event log keeps who did it and when.`,
		example: "  jobq mark nightly-7 download completed --output '{\"path\": \"/data/7\"}'\n  jobq mark nightly-7 notify skipped",
		run: func(cmd *cobra.Command, args []string) error {
			if err := workflowID(cmd, args[0]); err != nil {
				return err
			}
			to, err := markStatus(args[2])
			if err != nil {
				return err
			}
			if output, err = a.document(output); err != nil {
				return err
			}
			return a.with(cmd.Context(), func(s *session) error {
				c, err := s.commander(cmd.Context(), args[0], args[1])
				if err != nil {
					return err
				}
				answer, err := c.Mark(cmd.Context(), args[0], args[1], to, output, a.by())
				if err != nil {
					return a.commandError(args[0], err)
				}
				if err := a.printAnswer(args[0], answer, asJSON); err != nil {
					return err
				}
				a.servedBy(cmd.Context(), s, args[0])
				return nil
			})
		},
	})
	cmd.Flags().StringVar(&output, "output", "", "make this `JSON` document the output of the task; - reads it from standard input")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func markStatus(word string) (state.TaskStatus, error) {
	switch word {
	case state.Completed.String():
		return state.Completed, nil
	case state.Skipped.String():
		return state.Skipped, nil
	}
	return 0, usageError("mark", "%q: a task can be marked completed or skipped", word)
}

// document returns text, or standard input for "-".
func (a *app) document(text string) (string, error) {
	if text != "-" {
		return text, nil
	}
	// One byte more than an output by hand may have is enough to refuse it.
	body, err := io.ReadAll(io.LimitReader(a.in, state.MaxInlineOutput+1))
	if err != nil {
		return "", fault.Wrap(fault.Invalid, err, "standard input cannot be read")
	}
	return strings.TrimSpace(string(body)), nil
}
