package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"jobq/core/coord"
	"jobq/core/dag"
	"jobq/core/fault"
	"jobq/core/port"
	"jobq/core/state"
	"jobq/store"
)

const (
	// maxRows is how many tasks get a row of their own in the table of results.
	maxRows = 30
	// maxReasons is how many tasks of each status are explained.
	maxReasons = 10
)

// loadState returns the runtime state of a workflow: one value a task, where a
// view has a whole row and its explanation.
func (s *session) loadState(ctx context.Context, id string) (*state.Workflow, error) {
	doc, err := s.store.States.Load(ctx, id, "")
	if err != nil {
		return nil, notThere(id, err)
	}
	return decodeState(id, doc)
}

func notThere(id string, err error) error {
	if fault.Is(err, fault.NotFound) {
		return coord.Absent(id, err)
	}
	return err
}

func decodeState(id string, doc port.Document) (*state.Workflow, error) {
	w, err := state.Decode(doc.Body)
	if err == nil && w.Status == state.WorkflowPurged {
		return nil, fault.Newf(fault.NotFound, "workflow %s was purged", id)
	}
	return w, err
}

// report writes how a workflow ended: the table of its tasks, and for everything
// that did not complete why. It says nothing to people who want to be left alone
// as long as all is well.
func (a *app) report(ctx context.Context, prefix string, sum coord.Summary, resumed bool) error {
	return a.withPlace(ctx, store.Local, prefix, func(s *session) error { return a.reportFrom(ctx, s, sum, resumed) })
}

// reportFrom is report from an open store. resumed says that the workflow lay idle
// between two processes.
func (a *app) reportFrom(ctx context.Context, s *session, sum coord.Summary, resumed bool) error {
	if !a.quiet() {
		d, _, err := s.Definition(ctx, sum.WorkflowID)
		if err != nil {
			return err
		}
		w, err := s.loadState(ctx, sum.WorkflowID)
		if err != nil {
			return err
		}
		fmt.Fprintln(a.err)
		if err := a.printResults(d, w); err != nil {
			return err
		}
	}
	if err := a.printReasons(ctx, s, sum); err != nil || a.quiet() {
		return err
	}
	took := "after " + seconds(sum.UpdatedAt.Sub(sum.CreatedAt.Time))
	if resumed {
		took = strings.TrimPrefix(took, "after ") + " after its first start"
	}
	fmt.Fprintf(a.err, "\nworkflow %s %s %s: %s\n", sum.WorkflowID,
		palette(a.colored(a.err)).paint(sum.Status, statusColor(sum.Status)), took, countsText(sum.Counts))
	if sum.Status == state.WorkflowFailed.String() || sum.Status == state.WorkflowCancelled.String() {
		fmt.Fprintf(a.err, "  next: %s\n", a.commandLine("retry", sum.WorkflowID, "--run"))
	}
	return nil
}

// printResults writes a row a task, or a row a group where there are many.
func (a *app) printResults(d *dag.Definition, w *state.Workflow) error {
	if len(d.Tasks) <= maxRows {
		t := tableOf("task", "status", "attempts", "time")
		for i := range d.Tasks {
			t.add(line(d.Tasks[i].Name), w.TaskStatus[i].String(), attempts(w, i), tookText(w, i))
		}
		return printTable(a.err, t)
	}
	header := []any{"tasks", "number"}
	total := w.Counts()
	shown := statusColumns(total)
	for _, i := range shown {
		header = append(header, taskWords()[i])
	}
	t := tableOf(append(header, "time", "longest")...)
	for _, g := range resultGroups(d, w) {
		row := []any{line(g.name), g.counts.Total()}
		for _, i := range shown {
			row = append(row, countsOf(g.counts)[i])
		}
		t.add(append(row, g.times()...)...)
	}
	return printTable(a.err, t)
}

// statusColumns returns the statuses, by position, that any task is in.
func statusColumns(c state.Counts) []int {
	var shown []int
	for i, n := range countsOf(c) {
		if n > 0 {
			shown = append(shown, i)
		}
	}
	return shown
}

// resultGroup is a row of results.
type resultGroup struct {
	name         string
	counts       state.Counts
	ran          int
	sum, longest time.Duration
}

func (g resultGroup) times() []any {
	if g.ran == 0 {
		return []any{"-", "-"}
	}
	return []any{lasted(g.sum), lasted(g.longest)}
}

func resultGroups(d *dag.Definition, w *state.Workflow) []resultGroup {
	g := groupTasks(taskNames(d), maxRows)
	rows := make([]resultGroup, len(g.names))
	for i, name := range g.names {
		rows[i].name = name
	}
	for i, at := range g.of {
		r := &rows[at]
		r.counts.Add(w.TaskStatus[i], 1)
		if d, known := took(w, i); known {
			r.ran++
			r.sum += d
			r.longest = max(r.longest, d)
		}
	}
	return rows
}

// took returns how long the last attempt of task i took, and whether there was one
// that ended.
func took(w *state.Workflow, i int) (d time.Duration, known bool) {
	_, exited := w.Exits[int32(i)]
	if !exited || w.StartedAt[i] == 0 || w.EndedAt[i] < w.StartedAt[i] || !w.TaskStatus[i].Terminal() {
		return 0, false
	}
	return time.Duration(w.EndedAt[i]-w.StartedAt[i]) * time.Millisecond, true
}

func tookText(w *state.Workflow, i int) string {
	if d, known := took(w, i); known {
		return lasted(d)
	}
	return "-"
}

// attempts counts the attempts of task i. Their numbers go on from those of an
// earlier life of the id.
func attempts(w *state.Workflow, i int) string {
	if w.Attempt[i] <= w.BornAttempt {
		return "-"
	}
	return fmt.Sprint(w.Attempt[i] - w.BornAttempt)
}

// printReasons says why tasks did not complete, the failed ones first, at most
// maxReasons of each status.
func (a *app) printReasons(ctx context.Context, s *session, sum coord.Summary) error {
	for _, word := range []string{"failed", "upstream_failed", "skipped", "cancelled", "running", "ready", "pending"} {
		n := countsOf(sum.Counts)[indexOf(taskWords(), word)]
		if n == 0 || a.quiet() && word != "failed" {
			continue
		}
		part, err := s.Tasks(ctx, sum.WorkflowID, coord.TaskFilter{Status: []string{word}, Limit: maxReasons})
		if err != nil {
			return err
		}
		fmt.Fprintf(a.err, "\n%s:\n", palette(a.colored(a.err)).paint(word, statusColor(word)))
		for _, t := range part.Tasks {
			a.printReason(ctx, s, sum.WorkflowID, t)
		}
		if more := n - len(part.Tasks); more > 0 {
			fmt.Fprintf(a.err, "  … and %d more: %s\n", more, a.commandLine("tasks", sum.WorkflowID, "--status", word, "--limit", "0"))
		}
	}
	return nil
}

func (a *app) printReason(ctx context.Context, s *session, id string, t coord.TaskView) {
	fmt.Fprintf(a.err, "  %s: %s\n", line(t.Name), brief(t.Reason))
	if t.Status != state.Failed.String() || t.Log == "" {
		return
	}
	// It may have written nothing. Where that cannot be seen, logs says why.
	if size, err := s.store.TaskLogs.Size(ctx, t.Log); err != nil || size > 0 {
		fmt.Fprintf(a.err, "    what it wrote: %s\n", a.commandLine("logs", id, t.Name))
	}
}

func indexOf(words []string, word string) int {
	for i, w := range words {
		if w == word {
			return i
		}
	}
	return 0
}
