package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"jobq/core/coord"
	"jobq/core/fault"
	"jobq/core/port"
	"jobq/core/state"
)

// listPage is how many rows one call of a listing brings.
const listPage = 1000

// listAnswer is the answer of list --json.
type listAnswer struct {
	Workflows []coord.Summary `json:"workflows"`
	// Next continues the listing, absent at its end.
	Next string `json:"next,omitempty"`
}

// listOptions are the flags of list.
type listOptions struct {
	status        []string
	prefix, after string
	recent, limit int
}

func newList(a *app) *cobra.Command {
	var o listOptions
	var asJSON bool
	cmd := a.command(verb{
		use: "list", short: "List workflows, newest first", group: groupLook,
		example: "  jobq list --status running\n  jobq list --recent 20 --status failed\n  jobq myaccount/Experiments list",
		run: func(cmd *cobra.Command, _ []string) error {
			if err := checkWords("status", o.status, workflowWords()); err != nil {
				return err
			}
			if o.limit < 0 || o.recent < 0 {
				return usageError("list", "a number of workflows cannot be negative")
			}
			return a.with(cmd.Context(), func(s *session) error {
				answer, err := listWorkflows(cmd.Context(), s, o)
				if err != nil {
					return err
				}
				if err := s.tellStopped(cmd.Context(), answer.Workflows); err != nil {
					return err
				}
				switch {
				case asJSON:
					return printJSON(a.out, answer)
				case s.absent:
					return nil // that has been said
				default:
					return a.printList(answer)
				}
			})
		},
	})
	f := cmd.Flags()
	f.StringSliceVar(&o.status, "status", nil, "only workflows in these `STATUSES`, separated by commas")
	f.IntVar(&o.recent, "recent", 0, "look at the `N` newest workflows only; 0 is all")
	f.IntVar(&o.limit, "limit", 100, "list at most `N` workflows; 0 is all")
	f.StringVar(&o.prefix, "id-prefix", "", "only workflows whose id begins with `TEXT`")
	f.StringVar(&o.after, "after", "", "begin behind this `PLACE` (the \"next\" of the page before)")
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// listWorkflows pages through the index. With recent the newest are counted
// before the status is looked at, so that the answer is about the last N runs.
func listWorkflows(ctx context.Context, s *session, o listOptions) (listAnswer, error) {
	answer := listAnswer{Workflows: []coord.Summary{}, Next: o.after}
	seen := 0
	for {
		filter := port.Filter{Prefix: o.prefix, After: answer.Next, Limit: listPage}
		if o.recent == 0 {
			filter.Status = o.status
			if o.limit > 0 {
				filter.Limit = min(listPage, o.limit-len(answer.Workflows))
			}
		} else {
			filter.Limit = min(listPage, o.recent-seen)
		}
		page, next, err := s.List(ctx, filter)
		if err != nil {
			return answer, err
		}
		seen += len(page)
		answer.Next = next
		for _, w := range page {
			if len(o.status) == 0 || slices.Contains(o.status, w.Status) {
				answer.Workflows = append(answer.Workflows, w)
			}
		}
		full := o.limit > 0 && len(answer.Workflows) >= o.limit
		if full && len(answer.Workflows) > o.limit {
			answer.Workflows = answer.Workflows[:o.limit]
		}
		if next == "" || full || o.recent > 0 && seen >= o.recent {
			break
		}
	}
	if o.recent > 0 {
		answer.Next = "" // what lies behind the N newest was not asked for
	}
	return answer, nil
}

// maxStopped bounds how many unfinished workflows one listing looks at to find
// those that nobody runs.
const maxStopped = 100

// tellStopped marks those of all that are runs of this machine that no process
// goes on with. The first maxStopped unfinished ones are looked at, and their counts
// made those of their states: a process that was killed left its row behind.
func (s *session) tellStopped(ctx context.Context, all []coord.Summary) error {
	if !s.onThisMachine() {
		return nil // what runs elsewhere is run by services
	}
	looked := 0
	for i, sum := range all {
		if endedWord(sum.Status) || looked == maxStopped {
			continue
		}
		looked++
		w, err := s.loadState(ctx, sum.WorkflowID)
		if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Corrupt) || fault.Is(err, fault.TooNew) {
			continue // doctor tells of it
		}
		if err == nil {
			all[i].Counts, all[i].UpdatedAt = w.Counts(), coord.Time{Time: w.UpdatedAt}
			all[i].Stopped, err = s.stopped(ctx, w)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// endedWord reports whether a workflow of that status has ended.
func endedWord(word string) bool {
	return slices.ContainsFunc(state.WorkflowStatuses(), func(s state.WorkflowStatus) bool { return s.String() == word && s.Ended() })
}

func (a *app) printList(answer listAnswer) error {
	if len(answer.Workflows) == 0 {
		a.note("there is no such workflow in %s", a.where)
		return nil
	}
	now := time.Now()
	t := tableOf("workflow", "name", "status", "done", "failed", "created", "updated")
	for _, w := range answer.Workflows {
		status := statusWord(w, w.Stopped)
		if w.CancelRequested && status != wordStopped && !endedWord(w.Status) {
			status = "cancelling"
		}
		t.add(
			w.WorkflowID, line(w.Name), status, fmt.Sprintf("%d/%d", w.Counts.Completed+w.Counts.Skipped, w.Total), w.Counts.Failed+w.Counts.UpstreamFailed,
			age(now, w.CreatedAt.Time)+" ago", age(now, w.UpdatedAt.Time)+" ago",
		)
	}
	if err := printTable(a.out, t); err != nil {
		return err
	}
	if answer.Next != "" {
		a.note("there are more workflows: add --limit 0")
	}
	return nil
}
