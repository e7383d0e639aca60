package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"jobq/core/coord"
	"jobq/core/state"
)

// whyAnswer is the answer of why --json.
type whyAnswer struct {
	Task coord.TaskView `json:"task"`
	// History are the moves of the task, oldest first, as far as the event log
	// has them.
	History []pastMove `json:"history"`
}

// pastMove is a move with its time in the form of all others.
type pastMove struct {
	Version uint64     `json:"v"`
	At      coord.Time `json:"t"`
	coord.Move
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
				answer := whyAnswer{Task: view, History: []pastMove{}}
				for _, m := range moves {
					if m.Task == view.Name {
						answer.History = append(answer.History, pastMove{m.Version, coord.Time{Time: m.Time}, m})
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
	for _, r := range story(w) {
		attempt := "-"
		if r.attempt > 0 {
			attempt = fmt.Sprint(r.attempt)
		}
		t.add(r.at.Local().Format(momentForm), r.from, r.to, r.because, attempt)
	}
	if err := a.print(""); err != nil {
		return err
	}
	return printTable(a.out, t)
}

// momentForm writes an instant to the millisecond.
const momentForm = "2006-01-02 15:04:05.000"

// storyRow is a line of what happened to a task.
type storyRow struct {
	at       time.Time
	from, to string
	because  string
	attempt  uint32
}

// story tells the history of a task, with the beginning of each command that is
// known: the state notes only when an attempt was sent and when it ended.
func story(w whyAnswer) []storyRow {
	var rows []storyRow
	var sent time.Time
	for _, m := range w.History {
		r := storyRow{m.Time, m.From, m.To, becauseOf(m.Move), m.Attempt}
		if m.Cause == state.CauseNumbered {
			sent = m.Time
			r.because += " " + w.Task.Queue
		}
		if m.Exit != nil && m.Exit.Start > 0 {
			at := m.Time.Add(-time.Duration(m.Seconds * float64(time.Second)))
			rows = append(rows, began(at, sent, m.Exit.Worker, m.Exit.Start, m.Attempt))
		}
		rows = append(rows, r)
	}
	if v := w.Task; v.Stage == coord.StageStarted {
		rows = append(rows, began(v.StartedAt.Time, sent, v.Worker, v.Start, v.Attempt))
	}
	return rows
}

// began is the row of a command that began.
func began(at, sent time.Time, worker string, start, attempt uint32) storyRow {
	because := "began on " + worker
	if !sent.IsZero() {
		because += " after " + lasted(at.Sub(sent)) + " in the queue"
	}
	if start > 1 {
		because += fmt.Sprintf(", start %d: those before it were lost or given back", start)
	}
	return storyRow{at, "queued", wordRunning, because, attempt}
}

// becauseOf says why a task moved.
func becauseOf(m coord.Move) string {
	took := ""
	if m.Exit != nil {
		took = " after " + lasted(time.Duration(m.Seconds*float64(time.Second)))
	}
	text := moveText(m.Cause) + took
	if m.Reason != "" {
		text += ": " + brief(m.Reason)
	}
	return text
}

// moveText is a cause in words for people.
func moveText(c state.Cause) string {
	switch c {
	case state.CauseActivated:
		return "may run, waits for a slot"
	case state.CauseNumbered:
		return "goes to queue"
	case state.CauseExhausted:
		return "failed, no attempt is left"
	case state.CauseRetrying:
		return "failed, is tried again"
	case state.CauseUpstream:
		return "too many parents failed"
	case state.CauseRetried, state.CauseRerun, state.CauseMarked:
		return "command " + string(c)
	case state.CauseUnblocked:
		return "a parent was marked or runs again"
	default:
		return string(c)
	}
}
