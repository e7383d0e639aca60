package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"jobq/core/coord"
	"jobq/core/state"
)

// notice makes the notice of one move and of the counts after it.
func notice(task, to string, cause state.Cause, c state.Counts) coord.Notice {
	return coord.Notice{
		View:  coord.Summary{Counts: c},
		Moves: []coord.Move{{Task: task, To: to, Cause: cause}},
	}
}

func TestProgressFollowsNotices(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	p := newProgress([]string{"prep-1", "prep-2", "end"}, start)
	p.changed(notice("prep-1", "ready", state.CauseNumbered, state.Counts{Pending: 2, Ready: 1}), start)
	p.changed(notice("prep-2", "ready", state.CauseNumbered, state.Counts{Pending: 1, Ready: 2}), start)
	if s := p.snapshot(start); len(s.running) > 0 || s.active > 0 {
		t.Errorf("running = %q, want none: what was sent only waits", s.running)
	}
	// Workers take what they like: the second here.
	p.command("prep-2", 1, true)
	if s := p.snapshot(start); !cmp.Equal(s.running, []string{"prep-2"}) || !strings.Contains(headline(s, false), "1 running  1 queued") {
		t.Errorf("running = %q, headline %q, want the one that began, and one that waits", s.running, headline(s, false))
	}
	p.command("prep-1", 1, true)
	p.command("prep-1", 1, false)
	p.changed(notice("prep-1", "completed", state.CauseSucceeded, state.Counts{Pending: 1, Ready: 1, Completed: 1}), start.Add(2*time.Second))
	s := p.snapshot(start.Add(2 * time.Second))
	if !cmp.Equal(s.running, []string{"prep-2"}) {
		t.Errorf("running = %q, want the one that has not ended", s.running)
	}
	if s.rate != 0.5 || s.left != 4*time.Second {
		t.Errorf("rate = %v, left = %v, want 1 task in 2 s and 2 tasks left", s.rate, s.left)
	}
	if diff := cmp.Diff(state.Counts{Pending: 1, Ready: 1, Completed: 1}, s.counts); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	// The next attempt of a task may begin before the notice of the last one's end.
	p.command("prep-1", 2, true)
	late := notice("prep-1", "ready", state.CauseRetrying, state.Counts{Pending: 1, Ready: 2})
	late.Moves[0].Attempt = 1
	p.changed(late, start.Add(3*time.Second))
	if s := p.snapshot(start.Add(3 * time.Second)); !cmp.Equal(s.running, []string{"prep-2", "prep-1"}) {
		t.Errorf("running = %q, want the later attempt too", s.running)
	}
	p.changed(notice("unknown", "failed", state.CauseExhausted, state.Counts{Pending: 1, Ready: 1, Completed: 1}), start.Add(3*time.Second))
}

func TestProgressTakesOverAState(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	p := newProgress([]string{"a-1", "a-2", "b"}, now)
	w := state.New("w", 3)
	w.TaskStatus = []state.TaskStatus{state.Completed, state.Running, state.Pending}
	p.load(w, now)
	w.TaskStatus = []state.TaskStatus{state.Running, state.Completed, state.Skipped}
	p.load(w, now.Add(time.Second))
	p.live(liveTasks{running: []int32{0}})
	s := p.snapshot(now.Add(time.Second))
	if !cmp.Equal(s.running, []string{"a-1"}) {
		t.Errorf("running = %q, want a task that runs again and none that ended", s.running)
	}
	var total state.Counts
	for _, g := range s.groups {
		addCounts(&total, g.counts)
	}
	if diff := cmp.Diff(s.counts, total); diff != "" {
		t.Errorf("the groups do not add up (-counts +groups):\n%s", diff)
	}
}

// TestProgressKeepsUp would take minutes if a change cost time in proportion to
// the number of tasks.
func TestProgressKeepsUp(t *testing.T) {
	t.Parallel()
	const n = 100_000
	names := make([]string, n)
	for i := range names {
		names[i] = "task-" + time.Duration(i).String()
	}
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	p := newProgress(names, now)
	for _, name := range names {
		p.changed(notice(name, "ready", state.CauseNumbered, state.Counts{Ready: n}), now)
	}
	for i, name := range names {
		now = now.Add(time.Millisecond)
		p.command(name, 1, true)
		p.command(name, 1, false)
		p.changed(notice(name, "completed", state.CauseSucceeded, state.Counts{Completed: i + 1, Ready: n - i - 1}), now)
		if i%1000 == 0 {
			p.snapshot(now)
		}
	}
	if s := p.snapshot(now); s.counts.Completed != n || len(s.running) != 0 {
		t.Errorf("snapshot = %+v", s.counts)
	}
}
