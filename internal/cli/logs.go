package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"jobq/core/coord"
	"jobq/core/fault"
	"jobq/core/msg"
	"jobq/core/state"
	"jobq/internal/config"
)

// logChunk is how much of a log is read with one call.
const logChunk = 256 << 10

func newLogs(a *app) *cobra.Command {
	var attempt uint32
	var follow bool
	cmd := a.command(verb{
		use: "logs ID [TASK]", short: "Print what tasks wrote", group: groupLook, least: 1, most: 2,
		long: `Print what a task wrote to standard output and standard error, byte for byte, in the order in which
it arrived. Without TASK the logs of all tasks that have one are printed, each under a line with its name.`,
		example: "  jobq logs nightly-7 train\n  jobq logs nightly-7 train --attempt 1\n  jobq logs nightly-7 train --follow",
		run: func(cmd *cobra.Command, args []string) error {
			if err := workflowID(cmd, args[0]); err != nil {
				return err
			}
			if follow && len(args) < 2 {
				return usageError("logs", "--follow needs the name of a task")
			}
			return a.with(cmd.Context(), func(s *session) error {
				l := logReader{session: s, out: a.out, note: a.note, wf: args[0], pause: a.values.Duration(config.WatchInterval)}
				switch {
				case len(args) == 1:
					return l.all(cmd.Context(), a, attempt)
				case follow:
					return l.follow(cmd.Context(), args[1], attempt)
				default:
					return l.one(cmd.Context(), args[1], attempt)
				}
			})
		},
	})
	cmd.Flags().Uint32Var(&attempt, "attempt", 0, "print attempt `N` instead of the newest")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on while the task runs")
	return cmd
}

// logReader prints logs of one workflow.
type logReader struct {
	*session
	out   io.Writer
	note  func(format string, args ...any)
	wf    string
	pause time.Duration
}

// task returns the present view of one task.
func (s *session) task(ctx context.Context, wf, name string) (coord.TaskView, coord.Summary, error) {
	sum, err := s.Tasks(ctx, wf, coord.TaskFilter{Names: []string{name}, Limit: 1, Live: true})
	if err != nil {
		return coord.TaskView{}, sum, err
	}
	if len(sum.Tasks) == 0 {
		w, err := s.loadState(ctx, wf)
		if err != nil {
			return coord.TaskView{}, sum, err
		}
		names, err := s.names(ctx, w)
		if err != nil {
			return coord.TaskView{}, sum, err
		}
		return coord.TaskView{}, sum, noTask(wf, name, names)
	}
	return sum.Tasks[0], sum, nil
}

// one prints the log of the newest start of an attempt, 0 being the newest.
func (l *logReader) one(ctx context.Context, task string, attempt uint32) error {
	view, _, err := l.task(ctx, l.wf, task)
	if err != nil {
		return err
	}
	if attempt == 0 {
		attempt = view.Attempt
	}
	names, err := l.starts(ctx, task, attempt)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		if 0 < attempt && attempt <= view.Attempt && (attempt < view.Attempt || terminalWord(view.Status)) {
			l.note("attempt %d of task %s of workflow %s wrote nothing", attempt, shellQuote(task), l.wf)
			return nil
		}
		return noLog(l.wf, view, attempt)
	}
	for i, name := range names {
		if len(names) > 1 {
			if err := l.title(i, task, attempt, i+1); err != nil {
				return err
			}
		}
		if _, err := l.copy(ctx, name, 0); err != nil {
			return err
		}
	}
	return nil
}

// title prints the line above a log, of which there are some already.
func (l *logReader) title(already int, task string, attempt uint32, start int) error {
	apart := ""
	if already > 0 {
		apart = "\n"
	}
	if _, err := fmt.Fprintf(l.out, "%s--- %s, attempt %d, start %d ---\n", apart, line(task), attempt, start); err != nil {
		return unwritten(err)
	}
	return nil
}

// noLog is the answer where nothing can have been written.
func noLog(wf string, v coord.TaskView, attempt uint32) error {
	why := "`jobq why " + wf + " " + shellQuote(v.Name) + "` says why"
	switch {
	case attempt == v.Attempt && attempt > 0:
		return fault.Newf(fault.NotFound, "attempt %d of task %s of workflow %s has written nothing yet", attempt, shellQuote(v.Name), wf).
			WithRemedy("add --follow to wait for it")
	case terminalWord(v.Status):
		return fault.Newf(fault.NotFound, "task %s of workflow %s had no attempt%s: it is %s", shellQuote(v.Name), wf, orNumber(attempt), v.Status).WithRemedy(why)
	default:
		return fault.Newf(fault.NotFound, "task %s of workflow %s has had no attempt%s yet: it is %s", shellQuote(v.Name), wf, orNumber(attempt), taskWord(v)).WithRemedy(why)
	}
}

// orNumber is the number behind the word attempt, if there is one.
func orNumber(attempt uint32) string {
	if attempt == 0 {
		return ""
	}
	return fmt.Sprintf(" %d", attempt)
}

// terminalWord reports whether a task of that status has ended.
func terminalWord(word string) bool {
	return slices.ContainsFunc(state.TaskStatuses(), func(s state.TaskStatus) bool { return s.String() == word && s.Terminal() })
}

// starts returns the names of the logs of an attempt, by start number.
func (l *logReader) starts(ctx context.Context, task string, attempt uint32) ([]string, error) {
	var names []string
	// The name of start 1 without its number is what all starts have in common.
	first := msg.LogName(l.wf, task, attempt, 1)
	for name, err := range l.store.TaskLogs.Names(ctx, first[:len(first)-1]) {
		if err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b) // 10 comes after 9
		}
		return slices.Compare([]byte(a), []byte(b))
	})
	return names, nil
}

// copy prints the stream called name from offset on and returns its end.
func (l *logReader) copy(ctx context.Context, name string, offset int64) (int64, error) {
	for {
		part, err := l.store.TaskLogs.Read(ctx, name, offset, logChunk)
		if err != nil {
			return offset, err
		}
		if _, err := l.out.Write(part); err != nil {
			return offset, unwritten(err)
		}
		offset += int64(len(part))
		if len(part) < logChunk {
			return offset, nil
		}
	}
}

// follow prints the log of a task as it grows, through further attempts, until
// the task has ended.
func (l *logReader) follow(ctx context.Context, task string, attempt uint32) error {
	offsets := map[string]int64{}
	told := ""
	for shown := attempt; ; {
		// What is written between the two reads is printed by the next turn; the
		// last turn reads after the task was seen to have ended, and the first turn
		// of an attempt after the one before was.
		view, _, err := l.task(ctx, l.wf, task)
		if err != nil {
			return err
		}
		wanted := cmp.Or(attempt, view.Attempt)
		for shown = cmp.Or(shown, wanted); ; shown++ {
			if err := l.goOn(ctx, task, shown, offsets); err != nil {
				return err
			}
			if shown >= wanted {
				break
			}
		}
		if terminalWord(view.Status) || attempt != 0 && attempt < view.Attempt {
			return nil
		}
		if waitsToRun(view) && view.Reason != told {
			told = view.Reason
			l.note("%s: %s", line(task), brief(told))
		}
		if err := sleep(ctx, l.pause); err != nil {
			return err
		}
	}
}

// goOn prints what the logs of an attempt have beyond offsets.
func (l *logReader) goOn(ctx context.Context, task string, attempt uint32, offsets map[string]int64) error {
	names, err := l.starts(ctx, task, attempt)
	if err != nil {
		return err
	}
	for _, name := range names {
		if offsets[name], err = l.copy(ctx, name, offsets[name]); err != nil {
			return err
		}
	}
	return nil
}

// all prints every log of the workflow, task by task.
func (l *logReader) all(ctx context.Context, a *app, attempt uint32) error {
	printed := 0
	filter := coord.TaskFilter{}
	for {
		sum, err := l.Tasks(ctx, l.wf, filter)
		if err != nil {
			return err
		}
		for _, t := range sum.Tasks {
			wanted := attempt
			if wanted == 0 {
				wanted = t.Attempt
			}
			names, err := l.starts(ctx, t.Name, wanted)
			if err != nil {
				return err
			}
			for i, name := range names {
				if err := l.title(printed, t.Name, wanted, i+1); err != nil {
					return err
				}
				if _, err := l.copy(ctx, name, 0); err != nil {
					return err
				}
				printed++
			}
		}
		if sum.Next == "" {
			break
		}
		filter.After = sum.Next
	}
	if printed == 0 {
		a.note("no task of workflow %s has written anything", l.wf)
	}
	return nil
}

// sleep waits for d or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fault.Wrap(fault.Canceled, context.Cause(ctx), "waiting was stopped")
	}
}
