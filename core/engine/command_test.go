package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"jobq/core/engine"
	"jobq/core/state"
)

func TestCancel(t *testing.T) {
	t.Parallel()
	checkRules(t, map[string]rule{
		"pending and parked tasks end at once":              {"limit 1\na:\nb:\nc: a", "cancel", "a ready, b cancelled, c cancelled: pending", nil},
		"nothing with a number ends the workflow at once":   {"a: if -", "cancel", "a cancelled: cancelled", nil},
		"a back-off ends at once":                           {"a:", "back a; cancel; wait 1h", "a cancelled: cancelled", []string{"a/1"}},
		"a running task that completes keeps its result":    {pair, "sent a; cancel; ok a", "a completed, b cancelled: cancelled", nil},
		"a workflow whose last task completes is completed": {"a:", "sent a; cancel; ok a", "a completed: completed", nil},
		"a running task that fails is not retried":          {"a: retries 3", "sent a; cancel; fail a", "a failed: cancelled", []string{"a/1"}},
		"a running task that was stopped is cancelled":      {"a: retries 3", "sent a; cancel; back a", "a cancelled: cancelled", []string{"a/1"}},
		"an attempt that nobody holds is fenced":            {"a:", "sent a; cancel; fenced a", "a cancelled: cancelled", nil},
		"while one attempt lives the workflow runs":         {two, "sent a b; cancel; fenced a", "a cancelled, b running: running", nil},
		"a completion before the fence counts":              {two, "cancel; ok a; fenced a; fenced b", "a completed, b cancelled: cancelled", nil},
		"a completion after the fence does not":             {two, "cancel; fenced a; ok a; fenced b", "a cancelled, b cancelled: cancelled", nil},
		"a dispatch that is told later still counts":        {"a:", "cancel; sent a", "a running: running", nil},
		"completed stays completed":                         {"a:", "ok a; cancel", "a completed: completed", nil},
		"failed stays failed":                               {"a:", "fail a; cancel", "a failed: failed", nil},
		"a failure before the cancel is a cancelled run":    {two, "fail a; cancel; fenced b", "a failed, b cancelled: cancelled", nil},
		"a verdict that comes too late says nothing":        {"a:\nb: a if a", "ok a; cancel; true b", "a completed, b cancelled: cancelled", nil},
		"a second cancel has nothing to do":                 {"a:", "cancel; cancel; ok a", "a completed: completed", nil},
	})
}

func TestCancelFencesWhatHasANumber(t *testing.T) {
	t.Parallel()
	w := begin(t, "limit 2\na:\nb:\nc:")
	w.do("sent a; cancel")
	want := []engine.Attempt{{Task: 0, Attempt: 1}, {Task: 1, Attempt: 1}}
	if diff := cmp.Diff(want, w.last.Fence); diff != "" {
		t.Errorf("cancel fences (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(engine.Outstanding{Fence: want}, reload(t, w.run).Outstanding()); diff != "" {
		t.Errorf("after a reload the state wants (-want +got):\n%s", diff)
	}
	if w.run.Sendable(want[1]) {
		t.Error("an intent may still be sent in a workflow that is being cancelled")
	}
}

func TestRetry(t *testing.T) {
	t.Parallel()
	const mixed = "a:\nb: a\nc: b\ns: if -\n"
	checkRules(t, map[string]rule{
		"only what ended without success is reset":       {mixed, "false s; ok a; fail b; retry", "a completed, b ready, c pending, s skipped: pending", []string{"a/1", "b/1", "b/2"}},
		"a second retry while it runs has nothing":       {mixed, "false s; ok a; fail b; retry; retry", "a completed, b ready, c pending, s skipped: pending", []string{"a/1", "b/1", "b/2"}},
		"the budget is whole again":                      {"a: retries 1", "fail a a; retry; fail a", "a ready: running", []string{"a/1", "a/2", "a/3", "a/4"}},
		"the late report of an old attempt says nothing": {"a:", "fail a; retry; late a", "a ready: pending", nil},
		"cancelled tasks are reset":                      {pair, "cancel; fenced a; retry", "a ready, b pending: pending", []string{"a/1", "a/2"}},
		"it is refused while cancelling":                 {pair, "sent a; cancel; retry", "a running, b cancelled: running", []string{"a/1"}},
		"it works while others run":                      {two, "sent a b; fail a; retry", "a ready, b running: running", []string{"a/1", "b/1", "a/2"}},
		"children that ran by any stay as they are":      {two + "c: a b any", "ok a; ok c; fail b; retry", "a completed, b ready, c completed: pending", nil},
		"children behind two failures wait for both":     {two + "c: a b", "fail a b; retry; ok a", "a completed, b ready, c pending: running", nil},
		"a completed workflow has nothing to retry":      {"a:", "ok a; retry", "a completed: completed", nil},
		"a readiness is never revoked":                   {"limit 1\na:\nb:\nc: a all_settled", "fail a; retry", "a parked, b ready, c parked: running", nil},
		"a question that nobody answered is withdrawn":   {two + "c: a all_settled if -", "fail a; retry; true c", "a ready, b ready, c pending: running", nil},
		"a skip that hung on the parent stays":           {"a:\nb: a all_settled if a", "fail a; hung b; retry; ok a", "a completed, b skipped: completed", nil},
	})
}

func TestRerun(t *testing.T) {
	t.Parallel()
	checkRules(t, map[string]rule{
		"exactly the selected task":                        {diamond, "ok a b c d; rerun b", "a completed, b ready, c completed, d completed: pending", nil},
		"everything behind it":                             {diamond, "ok a b c d; rerun-from b", "a completed, b ready, c completed, d pending: pending", nil},
		"a workflow that completed completes again":        {diamond, "ok a b c d; rerun b; ok b", "a completed, b completed, c completed, d completed: completed", nil},
		"a failure now is a failed workflow":               {diamond, "ok a b c d; rerun b; fail b", "a completed, b failed, c completed, d completed: failed", nil},
		"a running task is not selected":                   {diamond, "ok a b; rerun c", "a completed, b completed, c ready, d pending: running", nil},
		"nor one behind a selected one":                    {diamond, "ok a b; rerun-from a", "a completed, b completed, c ready, d pending: running", nil},
		"a pending task has not ended":                     {pair, "rerun b", "a ready, b pending: pending", nil},
		"an unknown task is refused":                       {pair, "rerun c", "a ready, b pending: pending", nil},
		"skipped tasks are judged again":                   {"a:\nb: a if a", "ok a; false b; rerun b; true b", "a completed, b ready: pending", nil},
		"a parked child outside it goes on":                {pair, "ok a; back b; rerun a; wait 1s", "a ready, b ready: running", []string{"a/1", "b/1", "a/2", "b/2"}},
		"a parked descendant waits for the new result":     {"limit 1\na:\nx:\nb: a", "ok a; rerun-from a; ok x; ok a", "a completed, x completed, b ready: running", []string{"a/1", "x/1", "a/2", "b/1"}},
		"a running child outside it may be tried again":    {"a:\nb: a retries 1", "ok a; rerun a; fail b", "a ready, b ready: running", []string{"a/1", "b/1", "a/2", "b/2"}},
		"what the failure had blocked runs now":            {pair + "c: b", "fail a; rerun a; ok a b c", "a completed, b completed, c completed: completed", nil},
		"under a failed parent a task fails again":         {pair, "fail a; rerun b", "a failed, b upstream_failed: failed", nil},
		"a question about the old result is withdrawn":     {"a:\nb: a if a", "ok a; rerun a; true b", "a ready, b pending: running", nil},
		"it is refused while cancelling":                   {two, "ok a; cancel; rerun a", "a completed, b ready: running", nil},
		"after a cancel it opens the workflow":             {two, "ok a; cancel; fenced b; rerun a; ok a", "a completed, b cancelled: cancelled", nil},
		"the attempt number goes on":                       {"a: retries 1", "fail a; ok a; rerun a; fail a; ok a", "a completed: completed", []string{"a/1", "a/2", "a/3", "a/4"}},
		"a parked descendant starts with its whole budget": {"limit 1\na:\nb: a retries 1\nx:\n", "ok a; fail b; back b; rerun-from a; ok x; ok a; fail b", "a completed, b ready, x completed: running", nil},
	})
}

func TestMark(t *testing.T) {
	t.Parallel()
	checkRules(t, map[string]rule{
		"a failed task is completed by hand":          {pair + "c: b", "fail a; mark a completed", "a completed, b ready, c pending: pending", nil},
		"or skipped":                                  {pair, "fail a; mark a skipped", "a skipped, b ready: pending", nil},
		"what another failure blocks stays blocked":   {two + "c: a b\nd: c", "fail a b; mark a completed", "a completed, b failed, c upstream_failed, d upstream_failed: failed", nil},
		"blocked on two ways it opens once":           {diamond, "fail a; mark a completed", "a completed, b ready, c ready, d pending: pending", []string{"a/1", "b/1", "c/1"}},
		"a pending task need not run":                 {pair + "c: b", "mark b completed", "a ready, b completed, c ready: pending", nil},
		"a candidate need not be judged":              {"a:\nb: a if a", "ok a; mark b skipped; true b", "a completed, b skipped: completed", nil},
		"a running task is refused":                   {"a:", "sent a; mark a completed", "a running: running", nil},
		"a ready task with a number is refused":       {"a:", "mark a completed", "a ready: pending", nil},
		"nothing but completed and skipped":           {"a:", "fail a; mark a failed", "a failed: failed", nil},
		"completed twice has nothing to do":           {"a:", "ok a; mark a completed", "a completed: completed", nil},
		"a completed task can be skipped":             {"a:", "ok a; mark a skipped", "a skipped: completed", nil},
		"the last failure makes a completed workflow": {two, "ok a; fail b; mark b completed", "a completed, b completed: completed", nil},
		"it is refused while cancelling":              {two + "c: a", "cancel; mark c completed", "a ready, b ready, c cancelled: pending", nil},
		"after a cancel the rest stays cancelled":     {pair + "c: b", "cancel; fenced a; mark a completed", "a completed, b cancelled, c cancelled: cancelled", nil},
		"an unknown task is refused":                  {"a:", "mark b completed", "a ready: pending", nil},
	})
}

func TestErrorFollowsMarks(t *testing.T) {
	t.Parallel()
	w := begin(t, two)
	w.do("fail a b")
	before := w.run.State().Error
	w.do("mark a completed")
	after := w.run.State().Error
	if !strings.HasPrefix(before, "2 failed") || !strings.HasPrefix(after, "1 failed") || w.last.Settled {
		t.Errorf("the error was %q and is %q, settled %t; want 2 and then 1 failed, not settled again", before, after, w.last.Settled)
	}
	if got := w.run.State().Reasons[0]; got != "marked completed by ada" {
		t.Errorf("the reason is %q", got)
	}
}

func TestMarkReplacesWhatWasKept(t *testing.T) {
	t.Parallel()
	out := state.Output{Kind: state.InlineOutput, Text: "1"}
	for name, tc := range map[string]struct {
		to   state.TaskStatus
		want state.Output
	}{
		"completed takes the output": {state.Completed, out},
		"skipped has none":           {state.Skipped, state.Output{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := begin(t, pair)
			w.step(engine.Completion{Task: "a", Attempt: 1, Error: "boom", Exit: state.Exit{Known: true, Code: 1}, Output: state.Output{Kind: state.CanonicalOutput}})
			w.step(engine.Mark{Task: "a", To: tc.to, Output: out})
			s := w.run.State()
			if _, exit := s.Exits[0]; exit || s.Outputs[0] != tc.want || s.Reasons[0] != "marked "+tc.to.String() {
				t.Errorf("exit kept: %t, output %+v, reason %q", exit, s.Outputs[0], s.Reasons[0])
			}
			if s.Error != "" || s.Status != state.WorkflowPending {
				t.Errorf("b can run, but the workflow is %s with error %q", s.Status, s.Error)
			}
		})
	}
}

func TestOldOutputStaysUntilTheTaskEndsAgain(t *testing.T) {
	t.Parallel()
	w := begin(t, "a: retries 1\nb: a")
	out := state.Output{Kind: state.InlineOutput, Text: `"old"`}
	w.step(engine.Completion{Task: "a", Attempt: 1, Success: true, Output: out})
	w.do("rerun a; fail a")
	if got := w.run.State().Outputs[0]; got != out {
		t.Errorf("while a runs again its output is %+v, want the old one", got)
	}
	w.do("ok a")
	if got, ok := w.run.State().Outputs[0]; ok {
		t.Errorf("after an end without output it is %+v, want none", got)
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		tasks, before string
		command       engine.Event
		want          engine.Answer
	}{
		"retry counts what moved": {pair + "c: b", "fail a", engine.Retry{}, engine.Answer{Done: true, Reset: 3, NowReady: 1, StillPending: 2, Epoch: 1, Text: "reset 3 of 3 tasks"}},
		"retry without a failure": {pair, "ok a", engine.Retry{}, engine.Answer{Text: "workflow w1 has no failed task to retry"}},
		"cancel counts both":      {pair, "", engine.Cancel{}, engine.Answer{Done: true, Epoch: 1, Text: "cancelled at once: 1, being stopped: 1"}},
		"rerun tries without doing": {
			diamond, "ok a b c d", engine.Rerun{Tasks: []string{"b"}, Downstream: true, DryRun: true},
			engine.Answer{Reset: 2, Kept: 2, Tasks: []string{"b", "d"}, Text: "would run again: 2, kept: 2"},
		},
		"rerun counts": {
			diamond, "ok a b c d", engine.Rerun{Tasks: []string{"b"}, Downstream: true},
			engine.Answer{Done: true, Reset: 2, NowReady: 1, StillPending: 1, Kept: 2, Epoch: 1, Text: "run again: 2, kept: 2"},
		},
		"mark counts what it opened": {
			pair + "c: b", "fail a", engine.Mark{Task: "a", To: state.Completed},
			engine.Answer{Done: true, Reset: 2, NowReady: 1, StillPending: 1, Epoch: 1, Text: `task "a" is completed now`},
		},
		"purge waits for the end": {pair, "", engine.Purge{}, engine.Answer{Text: "workflow w1 is pending; cancel it first"}},
		"purge may":               {pair, "fail a", engine.Purge{}, engine.Answer{Done: true, Epoch: 1, Text: "purged"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := begin(t, tc.tasks)
			w.do(tc.before)
			if diff := cmp.Diff(&tc.want, w.step(tc.command).Answer); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCommandCountsOnce(t *testing.T) {
	t.Parallel()
	w := begin(t, "a:")
	w.do("fail a")
	retry := engine.Retry{Command: engine.Command{ID: "r1"}}
	first := w.step(retry)
	w.do("fail a")
	w.run = reload(t, w.run)
	again := w.step(retry)
	if again.Changed || !again.Answer.Repeated || again.Answer.Text != first.Answer.Text || again.Answer.Epoch != 1 {
		t.Errorf("the repeat gave %+v (changed %t), want the first answer %+v", again.Answer, again.Changed, first.Answer)
	}
	w.want("a failed: failed")
}

func TestCommandsThatAreRememberedAreBounded(t *testing.T) {
	t.Parallel()
	w := begin(t, "a:")
	w.do("fail a")
	for i := range 100 {
		w.step(engine.Retry{Command: engine.Command{ID: fmt.Sprint("r", i)}})
		w.do("fail a; retry; fail a")
	}
	ids := w.run.State().Commands
	if len(ids) != state.MaxCommands || ids[len(ids)-1].ID != "r99" || ids[0].ID != "r36" {
		t.Errorf("%d commands are remembered, from %q to %q", len(ids), ids[0].ID, ids[len(ids)-1].ID)
	}
	if w.run.State().Epoch != 200 {
		t.Errorf("epoch %d after 200 commands", w.run.State().Epoch)
	}
}

func TestSecondLifeGoesOnFromTheNumbersOfTheFirst(t *testing.T) {
	t.Parallel()
	w := begin(t, "a: retries 2\nb: a")
	w.do("fail a a; ok a; fail b")
	w.step(engine.Purge{Command: engine.Command{ID: "p1"}})
	tombstone := w.run.State().Tombstone()
	b, err := state.Encode(tombstone)
	if err != nil || len(b) > 600 {
		t.Fatalf("a tombstone has %d bytes (%v)", len(b), err)
	}
	if _, err := engine.NewRun(w.plan, tombstone); err == nil {
		t.Error("a tombstone became a run")
	}
	later := w.now.Add(time.Hour)
	w = &world{t: t, plan: w.plan, now: later, run: newRun(t, w.plan, engine.Begin(w.plan, "w1", "hash", tombstone, later))}
	w.step(engine.Activated{})
	w.do("late a; unnumbered a")
	w.want("a ready, b pending: pending")
	w.do("ok a b")
	w.wantSent("a/4", "b/4")
	s := w.run.State()
	if s.BornEpoch != 2 || s.Epoch != 2 || s.HighestAttempt != 4 || s.BornAttempt != 3 {
		t.Errorf("born at epoch %d, now %d, highest attempt %d, %d before; want 2, 2, 4, 3", s.BornEpoch, s.Epoch, s.HighestAttempt, s.BornAttempt)
	}
	if !slices.ContainsFunc(s.Commands, func(c state.CommandResult) bool { return c.ID == "p1" }) {
		t.Error("the purge of the first life is forgotten: a repeat would purge the second")
	}
}

func TestBadPlans(t *testing.T) {
	t.Parallel()
	d := parse(t, two+"c: a if b")
	if _, err := engine.NewPlan(d, named(d)); err == nil {
		t.Error("a condition on a task outside depends_on was accepted; it could never be evaluated")
	}
	if _, err := engine.NewPlan(d, nil); err == nil {
		t.Error("a condition that nobody evaluates was accepted")
	}
	d = parse(t, "a: b\nb: a")
	if _, err := engine.NewPlan(d, nil); err == nil {
		t.Error("a cycle was accepted")
	}
	if _, err := engine.NewRun(newPlan(t, parse(t, two)), state.New("w", 1)); err == nil {
		t.Error("a state of another size was accepted")
	}
}

func TestARefusalThatIsKeptIsTheAnswerOfItsID(t *testing.T) {
	t.Parallel()
	w := begin(t, "a:")
	w.do("sent a")
	retry := engine.Retry{Command: engine.Command{ID: "r1", Settle: true}}
	first := w.step(retry)
	if !first.Changed || first.Answer.Done {
		t.Errorf("a retry of a running task gave %+v (changed %t), want a refusal that is kept", first.Answer, first.Changed)
	}
	w.do("fail a")
	w.run = reload(t, w.run)
	again := w.step(engine.Retry{Command: engine.Command{ID: "r1"}})
	if again.Changed || again.Answer.Done || !again.Answer.Repeated || again.Answer.Text != first.Answer.Text {
		t.Errorf("the copy gave %+v (changed %t), want the refusal", again.Answer, again.Changed)
	}
	w.want("a failed: failed")
}

// An id stands for one command: what another one that bears it would come to is not
// what the first one came to.
func TestAnIDThatAnotherKindOfCommandHasIsRefused(t *testing.T) {
	t.Parallel()
	w := begin(t, "a:")
	w.step(engine.Cancel{Command: engine.Command{ID: "k"}})
	for _, settle := range []bool{false, true} {
		out := w.step(engine.Retry{Command: engine.Command{ID: "k", Settle: settle}})
		if a := *out.Answer; a.Done || a.Repeated || out.Changed || a.Text != `the id "k" is that of an earlier command, a cancel` {
			t.Errorf("a retry under the id of a cancel: %+v", a)
		}
	}
	if a := w.step(engine.Cancel{Command: engine.Command{ID: "k"}}).Answer; !a.Done || !a.Repeated {
		t.Errorf("the cancel again: %+v", a)
	}
}

// What a caller wanted and left is not done after other commands, but what was done
// answers as ever.
func TestACommandThatWasLeftIsRefusedAfterAnother(t *testing.T) {
	t.Parallel()
	w := begin(t, "a:\nb: a")
	left := engine.Rerun{Command: engine.Command{ID: "left", Epoch: 1}, Tasks: []string{"a"}}
	done := engine.Rerun{Command: engine.Command{ID: "done", Epoch: 1}, Tasks: []string{"a"}}
	w.do("ok a b")
	if a := w.step(done).Answer; !a.Done || a.Epoch != 1 {
		t.Fatalf("a rerun of the present epoch: %+v", a)
	}
	w.do("ok a b")
	before := w.String()
	if a := w.step(left).Answer; a.Done || a.Repeated || a.Text != "another command came before this one, which its caller had left" {
		t.Errorf("a rerun of an earlier epoch: %+v", a)
	}
	if a := w.step(done).Answer; !a.Done || !a.Repeated {
		t.Errorf("the rerun that was done, again: %+v", a)
	}
	w.want(before)
}
