package state_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jobq/core/state"
)

// page is docs/states.md, from this package.
var page = filepath.Join("..", "..", "docs", "states.md")

func TestStatesPageIsCurrent(t *testing.T) {
	t.Parallel()
	want := renderStates(t)
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, string(read(t, page))); diff != "" {
		t.Errorf("docs/states.md is out of date; write it with: go test ./core/state -run StatesPage -update\n(-should be +is)\n%s", diff)
	}
}

// TestTransitionsAreSound holds the table against the statuses.
func TestTransitionsAreSound(t *testing.T) {
	t.Parallel()
	seen := map[state.Transition]bool{}
	for _, m := range state.Transitions() {
		if seen[m] || m.From == m.To || !m.From.Valid() || !m.To.Valid() {
			t.Errorf("%s to %s (%s): twice, to itself, or of no status", m.From, m.To, m.Cause)
		}
		seen[m] = true
		if m.From.Terminal() && !byCommand(m.Cause) {
			t.Errorf("%s leaves %s, which only a command may", m.Cause, m.From)
		}
	}
}

// byCommand says that an operator is behind a move.
func byCommand(c state.Cause) bool {
	return slices.Contains([]state.Cause{state.CauseCancelled, state.CauseRetried, state.CauseRerun, state.CauseMarked, state.CauseUnblocked}, c)
}

var causes = []struct {
	cause   state.Cause
	meaning string
}{
	{state.CauseActivated, "The dependency policy is met, and the condition is true or there is none."},
	{state.CauseNumbered, "A slot is free and no back-off is left: the attempt gets its number. From here on its message may exist."},
	{state.CauseDispatched, "The queue accepted the message."},
	{state.CauseSucceeded, "The attempt reported success. A report may overtake the news that its message was accepted."},
	{state.CauseRetrying, "The attempt failed and `num_retries` leaves another one, which starts as soon as there is a slot."},
	{state.CauseExhausted, "The attempt failed and no other follows: the budget is used, the queue refuses the message for good, or the workflow is being cancelled."},
	{state.CauseGivenBack, "The attempt ended through no fault of the task. The next one uses no budget and waits 1 s, after each further time in a row twice as long, 5 min at most."},
	{state.CauseUpstream, "So many parents ended without success that the policy can no longer be met."},
	{state.CauseConditionFalse, "The condition is false, or could not be evaluated because a parent that it names did not complete."},
	{state.CauseConditionError, "The condition could not be evaluated: a field is missing or has the wrong type."},
	{state.CauseCancelled, "`cancel`: what has no attempt number ends at once, an attempt that has one when nobody can run it any more."},
	{state.CauseRetried, "`retry` resets every task that ended without success, with a whole budget."},
	{state.CauseRerun, "`rerun` runs the selected tasks again, whatever their result. A selected task that is parked waits for the new results."},
	{state.CauseMarked, "`mark` gives a task that has no live attempt a result by hand."},
	{state.CauseUnblocked, "`mark` or `rerun` changed a parent so that the policy can be met again."},
}

var taskWords = map[state.TaskStatus]string{
	state.Pending:        "waits for its parents, or for its condition to be evaluated",
	state.Parked:         "may run, but waits for a slot (`max_parallelism`) or for the end of a back-off; it has no attempt number and is never sent",
	state.Intent:         "has an attempt number in the saved state; its message is to be sent, or may have been",
	state.Running:        "was sent: it is on its queue or in the hands of a worker",
	state.Completed:      "ended with success",
	state.Failed:         "ended without success, and no attempt follows; or its condition could not be evaluated",
	state.UpstreamFailed: "did not run: its policy can no longer be met",
	state.Skipped:        "did not run because its condition is false; counts as a success for its children",
	state.Cancelled:      "was ended by a cancel of the workflow",
}

var workflowWords = map[state.WorkflowStatus]string{
	state.WorkflowPending:   "new, or tasks of an ended workflow were just reset",
	state.WorkflowRunning:   "something was sent; also while the workflow is being cancelled and attempts are still alive (`cancel_requested`)",
	state.WorkflowCompleted: "every task completed or was skipped; with `result_policy: all_sinks_succeed`, every task without children",
	state.WorkflowFailed:    "some task failed or is upstream_failed, and nothing can still run",
	state.WorkflowCancelled: "it was cancelled and nothing can still run",
	state.WorkflowPurged:    "it was removed; the numbers stay, so that a later workflow of this id goes on from them",
}

func renderStates(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(`# Statuses and how they change

This page is written from the table of moves in ` + "`core/state`" + ` by its tests; the engine makes no other move.

## Tasks

People and programs see *ready* for both *parked* and *numbered*.

| status | a task that |
|---|---|
`)
	for _, s := range state.TaskStatuses() {
		fmt.Fprintf(&b, "| %s | %s |\n", label(s), mustHave(t, taskWords[s], s.String()))
	}
	b.WriteString("\n### By themselves\n\n")
	diagram(&b, func(c state.Cause) bool { return !byCommand(c) })
	b.WriteString("\n### By command\n\nOnly `retry`, `rerun` and `mark` move a task that has ended.\n\n")
	diagram(&b, byCommand)
	b.WriteString("\n### Causes\n\n| cause | moves | meaning |\n|---|---|---|\n")
	for _, c := range causes {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", c.cause, moves(t, c.cause), c.meaning)
	}
	for _, m := range state.Transitions() {
		if !slices.ContainsFunc(causes, func(c struct {
			cause   state.Cause
			meaning string
		}) bool {
			return c.cause == m.Cause
		}) {
			t.Errorf("cause %q has no words on the page", m.Cause)
		}
	}
	b.WriteString("\n## Workflows\n\n| status | a workflow |\n|---|---|\n")
	for _, s := range state.WorkflowStatuses() {
		fmt.Fprintf(&b, "| %s | %s |\n", s, mustHave(t, workflowWords[s], s.String()))
	}
	b.WriteString("\n```mermaid\nstateDiagram-v2\n" + workflowDiagram + "```\n")
	return b.String()
}

const workflowDiagram = `    state "completed, failed or cancelled" as ended
    [*] --> pending : submit
    pending --> running : a message was accepted or a task ended
    pending --> ended : no task is open
    running --> ended : no task is open
    ended --> pending : retry, rerun, mark that opens a task
    ended --> ended : mark that changes the result
    ended --> purged : purge
    purged --> pending : submit again
`

func mustHave(t *testing.T, words, what string) string {
	t.Helper()
	if words == "" {
		t.Errorf("%s has no words on the page", what)
	}
	return words
}

// label tells the two kinds of ready apart.
func label(s state.TaskStatus) string {
	switch s {
	case state.Parked:
		return "ready (parked)"
	case state.Intent:
		return "ready (numbered)"
	default:
		return s.String()
	}
}

func node(s state.TaskStatus) string {
	return strings.NewReplacer("ready (", "", ")", "").Replace(label(s))
}

// diagram draws the moves whose cause is in, one arrow for each pair.
func diagram(b *strings.Builder, in func(state.Cause) bool) {
	b.WriteString("```mermaid\nstateDiagram-v2\n")
	type pair struct{ from, to state.TaskStatus }
	var pairs []pair
	words := map[pair][]string{}
	for _, m := range state.Transitions() {
		if !in(m.Cause) {
			continue
		}
		p := pair{m.From, m.To}
		if words[p] == nil {
			pairs = append(pairs, p)
		}
		words[p] = append(words[p], string(m.Cause))
	}
	for _, p := range pairs {
		fmt.Fprintf(b, "    %s --> %s : %s\n", node(p.from), node(p.to), strings.Join(words[p], ", "))
	}
	b.WriteString("```\n")
}

func moves(t *testing.T, c state.Cause) string {
	t.Helper()
	var order []string
	from := map[string][]string{}
	for _, m := range state.Transitions() {
		if m.Cause == c {
			to := node(m.To)
			if from[to] == nil {
				order = append(order, to)
			}
			from[to] = append(from[to], node(m.From))
		}
	}
	var words []string
	for _, to := range order {
		words = append(words, strings.Join(from[to], ", ")+" → "+to)
	}
	return mustHave(t, strings.Join(words, "; "), string(c))
}
