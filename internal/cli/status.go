package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"jobq/core/coord"
	"jobq/core/fault"
	"jobq/core/state"
)

func newStatus(a *app) *cobra.Command {
	var asJSON, withTasks bool
	var after string
	cmd := a.command(verb{
		use: "status ID", short: "Show one workflow", group: groupLook, least: 1, most: 1,
		long: `Show one workflow: its status, how many tasks are in each status, and with --tasks every task.
The answer is read from the state itself, never from a listing.`,
		example: "  jobq status nightly-7\n  jobq status nightly-7 --tasks --json",
		run: func(cmd *cobra.Command, args []string) error {
			if err := workflowID(cmd, args[0]); err != nil {
				return err
			}
			return a.with(cmd.Context(), func(s *session) error {
				var sum coord.Summary
				var err error
				if withTasks {
					sum, err = s.Tasks(cmd.Context(), args[0], coord.TaskFilter{After: after, Live: true})
				} else {
					sum, err = s.summary(cmd.Context(), args[0], a.note)
				}
				switch {
				case err != nil:
					return err
				case asJSON:
					if sum.Stopped, err = s.isStopped(cmd.Context(), sum); err != nil {
						return err
					}
					return printJSON(a.out, sum)
				default:
					return a.printStatus(cmd.Context(), s, sum)
				}
			})
		},
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.Flags().BoolVar(&withTasks, "tasks", false, "list the tasks, at most 1000")
	cmd.Flags().StringVar(&after, "after", "", "with --tasks, begin behind the task of this `NAME` (the \"next\" of the page before)")
	return cmd
}

// isStopped reports whether the workflow of sum is a run of this machine that no
// process goes on with.
func (s *session) isStopped(ctx context.Context, sum coord.Summary) (bool, error) {
	if endedWord(sum.Status) || !s.onThisMachine() {
		return false, nil
	}
	w, err := s.loadState(ctx, sum.WorkflowID)
	if err != nil {
		return false, err
	}
	return s.stopped(ctx, w)
}

// rowBound is how long the index row of a workflow is waited for that nothing but a
// name is wanted of.
const rowBound = 5 * time.Second

// summary is Status without the definition, which is most of the work for a large
// workflow: the name is in the index row, everything else in the state. Without the
// row it is Status.
func (s *session) summary(ctx context.Context, id string, note func(format string, args ...any)) (coord.Summary, error) {
	w, err := s.loadState(ctx, id)
	if err != nil {
		return coord.Summary{}, err
	}
	bounded, cancel := context.WithTimeout(ctx, rowBound)
	defer cancel()
	row, err := s.store.Index.Get(bounded, id)
	if err != nil {
		if !fault.Is(err, fault.NotFound) { // a row is derived and may be late
			note("the index cannot be read; what is shown is from the state alone: %s\n  next: %s", brief(err.Error()), fault.RemedyOf(err))
		}
		return s.Status(ctx, id)
	}
	return coord.Summary{
		WorkflowID: w.ID, Name: row.Name, Status: w.Status.String(), CancelRequested: w.CancelRequested,
		Total: len(w.TaskStatus), Counts: w.Counts(), CreatedAt: coord.Time{Time: w.CreatedAt}, UpdatedAt: coord.Time{Time: w.UpdatedAt},
		Error: w.Error,
	}, nil
}

// printStatus writes a workflow for people, who want to know what runs and what
// waits.
func (a *app) printStatus(ctx context.Context, s *session, sum coord.Summary) error {
	var l liveTasks
	if sum.Counts.Open() > 0 {
		w, err := s.loadState(ctx, sum.WorkflowID)
		if err != nil {
			return err
		}
		if l, err = s.live(ctx, w, func() ([]string, error) { return s.names(ctx, w) }); err != nil {
			return err
		}
	}
	if err := a.print(summaryText(sum, l, time.Now())); err != nil {
		return err
	}
	if sum.Tasks != nil {
		if err := a.print(""); err != nil {
			return err
		}
		if err := a.printTasks(sum.Tasks, false); err != nil {
			return err
		}
	}
	if sum.Next != "" {
		a.note("there are more tasks: %s", a.commandLine("status", sum.WorkflowID, "--tasks", "--after", sum.Next))
	}
	if l.stopped {
		a.note("nothing runs it; to go on with it: %s", a.commandLine("run", "--resume", sum.WorkflowID))
	}
	return nil
}

// statusWord is the status of a workflow in the words for people.
func statusWord(s coord.Summary, stopped bool) string {
	running := s.Status == state.WorkflowRunning.String()
	switch {
	case s.CancelRequested && running && stopped:
		return wordStopped + " (being cancelled)"
	case stopped:
		return wordStopped
	case s.CancelRequested && running:
		return s.Status + " (being cancelled)"
	default:
		return s.Status
	}
}

// summaryText writes a workflow for people.
func summaryText(s coord.Summary, l liveTasks, now time.Time) string {
	lines := []string{
		"workflow  " + s.WorkflowID,
		"name      " + line(s.Name),
		"status    " + statusWord(s, l.stopped),
		fmt.Sprintf("tasks     %d: %s", s.Total, liveText(s.Counts, len(l.running), l.more)),
		fmt.Sprintf("created   %s (%s ago)", clockText(s.CreatedAt), age(now, s.CreatedAt.Time)),
		fmt.Sprintf("updated   %s (%s ago)", clockText(s.UpdatedAt), age(now, s.UpdatedAt.Time)),
	}
	if s.Error != "" {
		lines = append(lines, "error     "+line(s.Error))
	}
	return strings.Join(lines, "\n")
}

func clockText(t coord.Time) string { return t.Local().Format(time.DateTime) }

// countsOf returns the counts by status, in reading order.
func countsOf(c state.Counts) []int {
	return []int{c.Pending, c.Ready, c.Running, c.Completed, c.Failed, c.UpstreamFailed, c.Skipped, c.Cancelled}
}

// countsText names the statuses that tasks are in.
func countsText(c state.Counts) string {
	var parts []string
	for i, n := range countsOf(c) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, taskWords()[i]))
		}
	}
	return strings.Join(parts, ", ")
}
