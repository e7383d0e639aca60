package cli

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"jobq/core/port"
	"jobq/core/state"
	"jobq/internal/config"
)

func newWatch(a *app) *cobra.Command {
	cmd := a.command(verb{
		use: "watch ID", short: "Follow a workflow to its end", group: groupLook, least: 1, most: 1,
		long: `Follow a workflow to its end, wherever it runs: on a terminal as a table of its tasks that stays in
place, else a line a change. Ends with the exit code of the workflow: 0 completed, 1 failed, 6
cancelled. Stopping it stops nothing but itself.`,
		run: func(cmd *cobra.Command, args []string) error {
			if err := workflowID(cmd, args[0]); err != nil {
				return err
			}
			return a.with(cmd.Context(), func(s *session) error { return a.watch(cmd.Context(), s, args[0]) })
		},
	})
	return cmd
}

func (a *app) watch(ctx context.Context, s *session, id string) error {
	d, _, err := s.Definition(ctx, id)
	if err != nil {
		return err
	}
	w := &watcher{a: a, s: s, id: id, p: newProgress(taskNames(d), time.Now())}
	first, err := w.look(ctx)
	if err != nil {
		return err
	}
	w.p.begun = first.CreatedAt
	_, isTerminal := a.lively(a.err)
	view := a.newScreen(w.region)
	status, err := w.follow(ctx, view, first.Status, isTerminal)
	view.close()
	if err != nil {
		return err
	}
	sum, err := s.Status(ctx, id)
	if err != nil {
		return err
	}
	if status.Ended() {
		if err := a.reportFrom(ctx, s, sum, false); err != nil {
			return err
		}
	}
	return endedAs(sum)
}

// watcher follows the stored state of one workflow.
type watcher struct {
	a   *app
	s   *session
	id  string
	p   *progress
	tag port.Tag
	// state is the newest that was loaded; stopped says that nothing runs it, to the
	// screen too.
	state   *state.Workflow
	stopped atomic.Bool
	// told is the line that was printed last, where there is no terminal.
	told string
}

// look loads the state if it has changed; nil is an unchanged one.
func (w *watcher) look(ctx context.Context) (*state.Workflow, error) {
	doc, err := w.s.store.States.Load(ctx, w.id, w.tag)
	if err != nil {
		return nil, notThere(w.id, err)
	}
	if doc.Unchanged {
		return nil, nil
	}
	now, err := decodeState(w.id, doc)
	if err != nil {
		return nil, err
	}
	w.tag, w.state = doc.Tag, now
	w.p.load(now, time.Now())
	return now, nil
}

// lookAtCommands finds out which commands run: their records change while the
// state does not.
func (w *watcher) lookAtCommands(ctx context.Context) error {
	l, err := w.s.live(ctx, w.state, func() ([]string, error) { return w.p.names, nil })
	if err == nil {
		w.p.live(l)
		w.stopped.Store(l.stopped)
	}
	return err
}

// follow looks until the workflow has ended and returns its last status.
func (w *watcher) follow(ctx context.Context, view *screen, status state.WorkflowStatus, isTerminal bool) (state.WorkflowStatus, error) {
	for {
		if err := w.lookAtCommands(ctx); err != nil {
			return status, err
		}
		if !isTerminal && !w.a.quiet() {
			w.tell(view, status)
		}
		if status.Ended() {
			return status, nil
		}
		if err := sleep(ctx, w.a.values.Duration(config.WatchInterval)); err != nil {
			return status, err
		}
		now, err := w.look(ctx)
		if err != nil {
			return status, err
		}
		if now != nil {
			status = now.Status
		}
	}
}

// tell prints a line if it says something new.
func (w *watcher) tell(view *screen, status state.WorkflowStatus) {
	s := w.p.snapshot(time.Now())
	now := fmt.Sprintf("%s: %d/%d, %s", w.word(status), s.counts.Ended(), s.total, liveText(s.counts, s.active, s.more))
	if now != w.told {
		view.printf("%s", now)
		w.told = now
	}
}

// word is status in the words for people.
func (w *watcher) word(status state.WorkflowStatus) string {
	if w.stopped.Load() && !status.Ended() {
		return wordStopped + " (" + w.a.commandLine("run", "--resume", w.id) + ")"
	}
	return status.String()
}

// region is the table on a terminal.
func (w *watcher) region(_, height int) []string {
	if w.a.quiet() {
		return nil
	}
	p := palette(w.a.colored(w.a.err))
	s := w.p.snapshot(time.Now())
	lines := []string{strings.TrimSpace(w.id + "  " + headline(s, p))}
	if w.stopped.Load() {
		lines = append(lines, "  nothing runs it; to go on with it: "+w.a.commandLine("run", "--resume", w.id))
	}
	groups := groupLines(s, height-2-len(lines), p)
	lines = append(lines, groups...)
	if names := runningLine(s); names != "" && len(lines) < height-1 {
		lines = append(lines, names)
	}
	return lines
}
