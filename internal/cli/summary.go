package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"jobq/core/coord"
	"jobq/core/port"
	"jobq/core/state"
)

// summaryAnswer is the answer of summary --json.
type summaryAnswer struct {
	Prefix string `json:"prefix"`
	// Workflows counts workflows by status, Tasks tasks by status.
	Workflows map[string]int `json:"workflows"`
	Total     int            `json:"total"`
	Tasks     state.Counts   `json:"tasks"`
	// Processes counts live processes by kind.
	Processes map[string]int `json:"processes"`
}

func newSummary(a *app) *cobra.Command {
	var asJSON bool
	cmd := a.command(verb{
		use: "summary", short: "Count workflows, tasks and processes", group: groupLook,
		run: func(cmd *cobra.Command, _ []string) error {
			return a.with(cmd.Context(), func(s *session) error {
				answer, err := summarise(cmd.Context(), s)
				if err != nil {
					return err
				}
				if asJSON {
					return printJSON(a.out, answer)
				}
				stopped, err := s.countStopped(cmd.Context(), answer)
				if err != nil {
					return err
				}
				return a.printSummary(answer, stopped)
			})
		},
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func summarise(ctx context.Context, s *session) (summaryAnswer, error) {
	answer := summaryAnswer{Prefix: s.place, Workflows: map[string]int{}, Processes: map[string]int{}}
	err := eachWorkflow(ctx, s, port.Filter{}, func(w coord.Summary) (bool, error) {
		answer.Total++
		answer.Workflows[w.Status]++
		addCounts(&answer.Tasks, w.Counts)
		return true, nil
	})
	if err != nil {
		return answer, err
	}
	members, err := s.store.Presence.Members(ctx)
	for _, m := range members {
		answer.Processes[m.Kind]++
	}
	return answer, err
}

// addCounts adds the counts of one workflow to a sum.
func addCounts(sum *state.Counts, c state.Counts) {
	sum.Pending += c.Pending
	sum.Ready += c.Ready
	sum.Running += c.Running
	sum.Completed += c.Completed
	sum.Failed += c.Failed
	sum.UpstreamFailed += c.UpstreamFailed
	sum.Skipped += c.Skipped
	sum.Cancelled += c.Cancelled
}

// countStopped counts the unfinished workflows that nobody runs, by status, among
// the newest maxStopped.
func (s *session) countStopped(ctx context.Context, answer summaryAnswer) (map[string]int, error) {
	count := map[string]int{}
	open := port.Filter{Limit: maxStopped}
	for _, status := range state.WorkflowStatuses() {
		if !status.Ended() && answer.Workflows[status.String()] > 0 {
			open.Status = append(open.Status, status.String())
		}
	}
	if len(open.Status) == 0 {
		return count, nil
	}
	newest, _, err := s.List(ctx, open)
	if err != nil {
		return nil, err
	}
	err = s.tellStopped(ctx, newest)
	for _, w := range newest {
		if w.Stopped {
			count[w.Status]++
		}
	}
	return count, err
}

func (a *app) printSummary(s summaryAnswer, stopped map[string]int) error {
	t := tableOf("what", "status", "number")
	all := 0
	for _, word := range workflowWords() {
		if n := s.Workflows[word] - stopped[word]; n > 0 {
			t.add("workflows", word, n)
		}
		all += stopped[word]
	}
	if all > 0 {
		t.add("workflows", wordStopped, all)
	}
	// Which of those that were sent run, only the workflows themselves tell.
	for _, p := range liveParts(s.Tasks, 0, false) {
		word := p.word
		if word == wordQueued {
			word += " or " + wordRunning
		}
		t.add("tasks", word, p.n)
	}
	for _, kind := range []string{kindCoordinator, kindWorker, kindRun} {
		if n := s.Processes[kind]; n > 0 {
			t.add("processes", kind, n)
		}
	}
	if t.Length() == 0 {
		a.note("there is nothing in %s", s.Prefix)
		return nil
	}
	return printTable(a.out, t)
}

// liveQueues returns the queues that a live worker serves.
func liveQueues(members []port.Member) map[string]int {
	queues := map[string]int{}
	for _, m := range members {
		if m.Kind == kindWorker {
			for _, q := range m.Queues {
				queues[q] += max(m.Slots, 1)
			}
		}
	}
	return queues
}

// hasKind reports whether a process of that kind lives.
func hasKind(members []port.Member, kind string) bool {
	return slices.ContainsFunc(members, func(m port.Member) bool { return m.Kind == kind })
}

// plural writes a number of things whose plural is irregular.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
