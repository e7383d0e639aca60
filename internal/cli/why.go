package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"jobq/core/coord"
)

// whyAnswer is the answer of why --json.
type whyAnswer struct {
	Task coord.TaskView `json:"task"`
	// History are the moves of the task, oldest first, as far as the event log
	// has them.
	History []coord.Move `json:"history"`
}

func newWhy(a *app) *cobra.Command {
	var asJSON bool
	cmd := a.command(verb{
		use: "why ID TASK", short: "Say why a task is where it is", group: groupLook, least: 2, most: 2,
		long: `Say in one sentence why a task waits, runs, was skipped or failed, and how it came there.`,
		run: func(cmd *cobra.Command, args []string) error {
			if err := workflowID(cmd, args[0]); err != nil {
				return err
			}
			return a.with(cmd.Context(), func(s *session) error {
				view, _, err := s.task(cmd.Context(), args[0], args[1])
				if err != nil {
					return err
				}
				moves, err := s.Events(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				view.WorkflowID = args[0]
				answer := whyAnswer{Task: view, History: []coord.Move{}}
				for _, m := range moves {
					if m.Task == view.Name {
						answer.History = append(answer.History, m)
					}
				}
				if asJSON {
					return printJSON(a.out, answer)
				}
				return a.printWhy(answer)
			})
		},
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func (a *app) printWhy(w whyAnswer) error {
	if err := a.print(fmt.Sprintf("%s is %s: %s", line(w.Task.Name), taskWord(w.Task), plain(w.Task.Reason))); err != nil {
		return err
	}
	if len(w.History) == 0 {
		return nil
	}
	t := tableOf("when", "from", "to", "because", "attempt")
	for _, m := range w.History {
		because := string(m.Cause)
		if m.Reason != "" {
			because += ": " + brief(m.Reason)
		}
		attempt := "-"
		if m.Attempt > 0 {
			attempt = fmt.Sprint(m.Attempt)
		}
		t.AppendRow([]any{m.Time.Local().Format(time.DateTime), m.From, m.To, because, attempt})
	}
	fmt.Fprintln(a.out)
	return printTable(a.out, t)
}
