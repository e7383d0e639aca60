package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"jobq/core/engine"
	"jobq/core/state"
)

func TestExplain(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		tasks, do, task, want string
	}{
		"waiting for parents":               {two + "c: a b", "ok a", "c", `the policy all is not met: 1 of 2 parents succeeded, 0 failed; waits for "b" (ready)`},
		"waiting for a number of parents":   {two + "x:\nc: a b x 2", "fail a; sent b", "c", `the policy 2 is not met: 0 of 3 parents succeeded, 1 failed; waits for "b" (running), "x" (ready)`},
		"waiting for a named parent":        {two + "c: a b any if b", "ok a", "c", `the policy is met; the condition waits for "b" (ready)`},
		"waiting for a verdict":             {"a:\nb: a if a", "ok a", "b", "the policy is met; the condition is to be evaluated"},
		"waiting for a slot":                {"limit 1\na:\nb:", "", "b", "waits for a slot: max_parallelism, 1 of 1 are used"},
		"waiting after a give-back":         {"a:", "back a", "a", "waits until 2026-03-01T12:00:01Z before the next attempt (attempt 1: stopped)"},
		"waiting for a slot to try again":   {"limit 1\na:\nb: retries 1", "ok a; back b; wait 1s; fail b; back b", "b", "waits until 2026-03-01T12:00:02Z before the next attempt (attempt 3: stopped)"},
		"about to be sent":                  {"a:", "", "a", `attempt 1 is to be sent to queue "q"`},
		"sent":                              {"a:", "sent a", "a", `attempt 1 was sent to queue "q" at 2026-03-01T12:00:00Z; its attempt record tells whether a worker has it`},
		"being stopped":                     {"a:", "sent a; cancel", "a", "attempt 1 is being stopped, because the workflow is being cancelled"},
		"completed":                         {"a: retries 1", "fail a; ok a", "a", "attempt 2 succeeded"},
		"marked":                            {"a:", "fail a; mark a completed", "a", "marked completed by ada"},
		"failed":                            {"a: retries 1", "fail a a", "a", "attempt 2 failed and is not tried again: exit 1"},
		"a condition with an error":         {"a:\nb: a if a", "ok a; error b", "b", "the condition could not be evaluated: no such field"},
		"skipped":                           {"a: if -", "false a", "a", "it was false"},
		"skipped by hand":                   {"a: if -", "mark a skipped", "a", "marked skipped by ada"},
		"cancelled":                         {pair, "cancel", "b", "the workflow was cancelled"},
		"cancelled between two attempts":    {"a:", "back a; cancel", "a", "stopped"},
		"behind a failed parent":            {pair, "fail a", "b", `the policy all can no longer be met: 1 of 1 parents did not succeed; it began with "a" (failed)`},
		"far behind a failure":              {pair + "c: b\nd: c", "fail a", "d", `the policy all can no longer be met: 1 of 1 parents did not succeed; it began with "a" (failed)`},
		"behind two failures on three ways": {two + "c: a\nd: a b any\ne: c d 1", "fail a b", "e", `the policy 1 can no longer be met: 2 of 2 parents did not succeed; it began with "a" (failed), "b" (failed)`},
		"not behind what succeeded":         {two + "c: a b", "ok b; fail a", "c", `the policy all can no longer be met: 1 of 2 parents did not succeed; it began with "a" (failed)`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := begin(t, tc.tasks)
			w.do(tc.do)
			got := engine.NewExplainer(w.run, w.now).Explain(w.task(tc.task))
			if got.Text != tc.want {
				t.Errorf("%s (%s) is explained as\n %s\nwant\n %s", tc.task, got.Status, got.Text, tc.want)
			}
		})
	}
}

func TestExplainFailedExits(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		exit      state.Exit
		why, want string
	}{
		"the reason tells the exit": {state.Exit{Known: true, Code: 3}, "exit code 3: boom", "attempt 1 failed and is not tried again: exit code 3: boom"},
		"an exit code alone":        {state.Exit{Known: true, Code: 3}, "", "attempt 1 failed and is not tried again: exit code 3"},
		"a signal alone":            {state.Exit{Known: true, Code: -1, Signal: "SIGKILL"}, "", "attempt 1 failed and is not tried again: ended by signal SIGKILL"},
		"nothing is known":          {state.Exit{}, "", "attempt 1 failed and is not tried again"},
	} {
		w := begin(t, "a:")
		w.step(engine.Completion{Task: "a", Attempt: 1, Error: tc.why, Exit: tc.exit})
		if got := engine.NewExplainer(w.run, w.now).Explain(0).Text; got != tc.want {
			t.Errorf("%s: %+v with %q is explained as %q, want %q", name, tc.exit, tc.why, got, tc.want)
		}
	}
}

func TestExplainNamesFewTasks(t *testing.T) {
	t.Parallel()
	var tasks strings.Builder
	var names string
	for _, r := range "abcdefgh" {
		tasks.WriteString(string(r) + ":\n")
		names += " " + string(r)
	}
	w := begin(t, tasks.String()+"z:"+names)
	got := engine.NewExplainer(w.run, w.now).Explain(w.task("z"))
	if len(got.Waiting.Tasks) != engine.MaxExplained || got.Waiting.Total != 8 || !strings.HasSuffix(got.Text, `"e" (ready) and 3 more`) {
		t.Errorf("z waits for %d of %d named tasks: %s", len(got.Waiting.Tasks), got.Waiting.Total, got.Text)
	}
	w.do("fail" + names)
	got = engine.NewExplainer(w.run, w.now).Explain(w.task("z"))
	if len(got.Blocking.Tasks) != engine.MaxExplained || got.Blocking.Total != 8 {
		t.Errorf("z is blocked by %d of %d named tasks: %s", len(got.Blocking.Tasks), got.Blocking.Total, got.Text)
	}
}

func TestExplainBeforeTheBeginning(t *testing.T) {
	t.Parallel()
	p := newPlan(t, parse(t, pair))
	r := newRun(t, p, engine.Begin(p, "w1", "hash", nil, epoch))
	if got := engine.NewExplainer(r, epoch.Add(time.Hour)).Explain(0).Text; got != "the workflow has not begun" {
		t.Errorf("a root before Activated is explained as %q", got)
	}
}

// Everything behind a failure can be explained at once: at the end of a long chain, where
// every task of a layer is behind every one of the layer before, and at the end of a
// chain into which each step brings a failure of its own.
func TestManyTasksAreExplainedInTime(t *testing.T) {
	t.Parallel()
	chain := []string{"t0:"}
	for i := range 50_000 {
		chain = append(chain, fmt.Sprintf("t%d: t%d", i+1, i))
	}
	var layers []string
	before := ""
	for layer := range 30 {
		names := ""
		for i := range 30 {
			name := fmt.Sprintf("l%d-%d", layer, i)
			layers, names = append(layers, name+":"+before), names+" "+name
		}
		before = names
	}
	comb, failures := []string{"f0:", "t0: f0"}, "fail f0"
	for i := range 30_000 {
		comb = append(comb, fmt.Sprintf("f%d:", i+1), fmt.Sprintf("t%d: t%d f%d", i+1, i, i+1))
	}
	for _, end := range []int{1, 2, 30_000} {
		failures += fmt.Sprintf(" f%d", end)
	}
	for name, tc := range map[string]struct {
		tasks []string
		fail  string
		last  int // how many are explained
		want  string
	}{
		"a chain": {chain, "fail t0", len(chain), `1 of 1 parents did not succeed; it began with "t0" (failed)`},
		"layers":  {layers, "fail l0-0 l0-1", len(layers), `30 of 30 parents did not succeed; it began with "l0-0" (failed), "l0-1" (failed)`},
		"a comb":  {comb, failures, 100, `2 of 2 parents did not succeed; it began with "f0" (failed), "f1" (failed), "f2" (failed), "f30000" (failed)`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := begin(t, strings.Join(tc.tasks, "\n"))
			w.do(tc.fail)
			begun := time.Now()
			x := engine.NewExplainer(w.run, w.now)
			var last string
			for i := len(tc.tasks) - tc.last; i < len(tc.tasks); i++ {
				last = x.Explain(int32(i)).Text
			}
			if !strings.HasSuffix(last, tc.want) {
				t.Errorf("the last task is explained as %q, want %q", last, tc.want)
			}
			// Looking from each task alone takes over a minute for the chain.
			if took := time.Since(begun); took > 10*time.Second {
				t.Errorf("to explain %d tasks took %v", tc.last, took)
			}
		})
	}
}
