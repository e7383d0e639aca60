package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"jobq/core/coord"
	"jobq/core/fault"
	"jobq/core/port"
	"jobq/core/state"
)

// tasksAnswer is the answer of tasks --json.
type tasksAnswer struct {
	Tasks []coord.TaskView `json:"tasks"`
	// More says that --limit left tasks out.
	More bool `json:"more"`
}

func newTasks(a *app) *cobra.Command {
	var filter coord.TaskFilter
	var asJSON bool
	var limit int
	var workflows []string
	cmd := a.command(verb{
		use: "tasks [ID...]", short: "List tasks of some workflows, or of all", group: groupLook, most: -1,
		example: "  jobq tasks --status failed\n  jobq tasks --workflow nightly-7 --prefix train-\n  jobq tasks --queue gpu-a100 --status running",
		run: func(cmd *cobra.Command, args []string) error {
			var ids []string
			for _, id := range slices.Concat(workflows, args) {
				if !slices.Contains(ids, id) {
					ids = append(ids, id)
				}
				if err := workflowID(cmd, id); err != nil {
					return err
				}
			}
			if err := checkWords("status", filter.Status, taskWords()); err != nil {
				return err
			}
			if limit < 0 {
				return usageError("tasks", "a number of tasks cannot be negative")
			}
			filter.Live = true
			return a.with(cmd.Context(), func(s *session) error {
				answer, err := listTasks(cmd.Context(), s, ids, filter, limit)
				if err != nil {
					return err
				}
				return a.printTaskList(answer, asJSON, len(ids) != 1)
			})
		},
	})
	f := cmd.Flags()
	f.StringSliceVar(&workflows, "workflow", nil, "only the workflow `ID`; may be repeated")
	f.StringVar(&filter.Prefix, "prefix", "", "only tasks whose name begins with `TEXT`")
	f.StringSliceVar(&filter.Status, "status", nil, "only tasks in these `STATUSES`, separated by commas")
	f.StringVar(&filter.Queue, "queue", "", "only tasks of the queue `NAME`")
	f.IntVar(&limit, "limit", 100, "list at most `N` tasks; 0 is all")
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// listTasks collects the tasks that filter selects, workflow by workflow, in the
// order of ids or else newest workflow first.
func listTasks(ctx context.Context, s *session, ids []string, filter coord.TaskFilter, limit int) (tasksAnswer, error) {
	answer := tasksAnswer{Tasks: []coord.TaskView{}}
	take := func(id string) error {
		filter.After = ""
		for {
			filter.Limit = coord.MaxTasks
			if limit > 0 {
				filter.Limit = min(coord.MaxTasks, limit-len(answer.Tasks)+1)
			}
			sum, err := s.Tasks(ctx, id, filter)
			if err != nil {
				return err
			}
			for _, t := range sum.Tasks {
				t.WorkflowID = id
				answer.Tasks = append(answer.Tasks, t)
			}
			if limit > 0 && len(answer.Tasks) > limit {
				answer.Tasks, answer.More = answer.Tasks[:limit], true
			}
			if answer.More || sum.Next == "" {
				return nil
			}
			filter.After = sum.Next
		}
	}
	if len(ids) > 0 {
		for _, id := range ids {
			if err := take(id); err != nil || answer.More {
				return answer, err
			}
		}
		return answer, nil
	}
	return answer, eachWorkflow(ctx, s, port.Filter{}, func(w coord.Summary) (bool, error) {
		if !mayHold(w.Counts, filter.Status) {
			return true, nil
		}
		err := take(w.WorkflowID)
		if fault.Is(err, fault.NotFound) {
			err = nil // purged since it was listed
		}
		return !answer.More, err
	})
}

// eachWorkflow calls f with every workflow that filter selects, newest first,
// until it returns false.
func eachWorkflow(ctx context.Context, s *session, filter port.Filter, f func(coord.Summary) (bool, error)) error {
	filter.Limit = listPage
	for {
		page, next, err := s.List(ctx, filter)
		if err != nil {
			return err
		}
		for _, w := range page {
			if more, err := f(w); err != nil || !more {
				return err
			}
		}
		if next == "" {
			return nil
		}
		filter.After = next
	}
}

// mayHold reports whether a workflow with these counts can have a task in one of
// statuses, so that its state need not be read.
func mayHold(c state.Counts, statuses []string) bool {
	if len(statuses) == 0 {
		return true
	}
	words := taskWords()
	for i, n := range countsOf(c) {
		if n > 0 && slices.Contains(statuses, words[i]) {
			return true
		}
	}
	return false
}

func (a *app) printTaskList(answer tasksAnswer, asJSON, several bool) error {
	if asJSON {
		return printJSON(a.out, answer)
	}
	if len(answer.Tasks) == 0 {
		a.note("there is no such task")
		return nil
	}
	if err := a.printTasks(answer.Tasks, several); err != nil {
		return err
	}
	if answer.More {
		a.note("there are more tasks: add --limit 0")
	}
	return nil
}

// printTasks writes a table of tasks.
func (a *app) printTasks(tasks []coord.TaskView, several bool) error {
	header := []any{"task", "status", "queue", "attempt", "exit", "time", "why"}
	if several {
		header = slices.Insert(header, 0, any("workflow"))
	}
	t := tableOf(header...)
	now := time.Now()
	for _, v := range tasks {
		row := []any{line(v.Name), taskWord(v), v.Queue, attemptText(v), exitText(v), durationText(v, now), brief(v.Reason)}
		if several {
			row = slices.Insert(row, 0, any(v.WorkflowID))
		}
		t.add(row...)
	}
	return printTable(a.out, t)
}

func attemptText(v coord.TaskView) string {
	switch {
	case v.Attempt == 0:
		return "-"
	case v.Start > 1:
		return fmt.Sprintf("%d.%d", v.Attempt, v.Start)
	default:
		return fmt.Sprint(v.Attempt)
	}
}

func exitText(v coord.TaskView) string {
	if v.ExitCode != nil {
		return fmt.Sprint(*v.ExitCode)
	}
	return orDash(strings.TrimPrefix(v.Signal, "SIG"))
}

// durationText is how long a task took, or has been running.
func durationText(v coord.TaskView, now time.Time) string {
	if v.StartedAt.IsZero() {
		return "-"
	}
	end := cmp.Or(v.CompletedAt.Time, now)
	return lasted(end.Sub(v.StartedAt.Time))
}
