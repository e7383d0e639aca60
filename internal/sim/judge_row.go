package sim

import (
	"context"
	"fmt"
	"slices"

	"jobq/core/fault"
	"jobq/core/port"
	"jobq/core/state"
)

// judgeRow compares the index with the states. Where there are sweeps, the row of a
// workflow that ended must show what its last state has: that may be one from before
// a refusal was kept, which no row shows.
func (l *ledger) judgeRow(wf *workflow) {
	s := wf.s
	row, err := l.w.admin.Index.Get(context.Background(), wf.id)
	due := s.Status.Ended() && l.w.o.Sweeps
	if fault.Is(err, fault.NotFound) && !due {
		return
	}
	if err != nil {
		l.w.violate("the index agrees", "workflow %s is %s and has no row: %v", wf.id, s.Status, err)
		return
	}
	purged := s.Status == state.WorkflowPurged
	if due && row.Status != s.Status.String() {
		l.w.violate("the index agrees", "workflow %s is %s, its row says %s (version %d, state %d)", wf.id, s.Status, row.Status, row.StateVersion, s.Version)
		return
	}
	if purged {
		return // the row keeps what the last state had
	}
	late := row.BornEpoch != s.BornEpoch || row.StateVersion < wf.shown
	if due && (late || row.StateVersion > s.Version) {
		l.w.violate("the index agrees", "workflow %s is %s since version %d, its row has version %d", wf.id, s.Status, wf.shown, row.StateVersion)
		return
	}
	if late {
		return
	}
	if what := differs(row.Row, wf); what != "" {
		l.w.violate("the index agrees", "workflow %s is %s in version %d, and of its row %s", wf.id, s.Status, s.Version, what)
	}
}

// differs says in what a row is not the state of its version, "" for nothing. Of a
// workflow that goes on the row shows sends whose marks are saved later.
func differs(row port.Row, wf *workflow) string {
	s, d := wf.s, wf.plan.d
	want := recount(s)
	var queues []string
	for i := range d.Tasks {
		queues = append(queues, d.Tasks[i].Queue)
	}
	slices.Sort(queues)
	queues = slices.Compact(queues)
	got := row.Counts
	if !s.Status.Ended() {
		sent := got.Running - want.Running
		got.Ready, got.Running = got.Ready+sent, got.Running-sent
	}
	switch {
	case got != want:
		return fmt.Sprintf("the counts are %+v, a recount gives %+v", row.Counts, want)
	case row.Epoch != s.Epoch:
		return fmt.Sprintf("the epoch is %d, the state has %d", row.Epoch, s.Epoch)
	case !row.CreatedAt.Equal(s.CreatedAt):
		return fmt.Sprintf("the creation is %v, the state has %v", row.CreatedAt, s.CreatedAt)
	case row.Name != d.Name:
		return fmt.Sprintf("the name is %q, the definition has %q", row.Name, d.Name)
	case !slices.Equal(slices.Sorted(slices.Values(row.Queues)), queues):
		return fmt.Sprintf("the queues are %q, the definition has %q", row.Queues, queues)
	case row.DefaultQueue != d.DefaultQueue:
		return fmt.Sprintf("the default queue is %q, the definition has %q", row.DefaultQueue, d.DefaultQueue)
	case s.Status.Ended() && row.Error != s.Error:
		return fmt.Sprintf("the error is %q, the state has %q", row.Error, s.Error)
	}
	return ""
}

// looksLike reports whether the rows of two states show the same.
func looksLike(a, b *state.Workflow) bool {
	return a.Status == b.Status && a.Epoch == b.Epoch && a.BornEpoch == b.BornEpoch && a.Error == b.Error && recount(a) == recount(b)
}

// recount counts the tasks of s by their statuses as the index shows them.
func recount(s *state.Workflow) port.Counts {
	n := port.Counts{Total: len(s.TaskStatus)}
	for _, status := range s.TaskStatus {
		switch status {
		case state.Pending:
			n.Pending++
		case state.Parked, state.Intent:
			n.Ready++
		case state.Running:
			n.Running++
		case state.Completed:
			n.Completed++
		case state.Failed:
			n.Failed++
		case state.UpstreamFailed:
			n.UpstreamFailed++
		case state.Skipped:
			n.Skipped++
		case state.Cancelled:
			n.Cancelled++
		}
	}
	return n
}
