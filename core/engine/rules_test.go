package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"jobq/core/engine"
	"jobq/core/state"
)

// rule is a story in one line: a definition, what happens, and the picture at
// the end. sent, if given, lists every attempt that was to be sent.
type rule struct {
	tasks string
	do    string
	want  string
	sent  []string
}

func checkRules(t *testing.T, rules map[string]rule) {
	t.Helper()
	for name, r := range rules {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := begin(t, r.tasks)
			w.do(r.do)
			w.want(r.want)
			if r.sent != nil {
				w.wantSent(r.sent...)
			}
		})
	}
}

const (
	pair    = "a:\nb: a\n"
	two     = "a:\nb:\n"
	diamond = "a:\nb: a\nc: a\nd: b c\n"
)

func TestPolicies(t *testing.T) {
	t.Parallel()
	checkRules(t, map[string]rule{
		"all waits for the last parent":                  {two + "c: a b", "ok a", "a completed, b ready, c pending: running", nil},
		"all runs when every parent completed":           {two + "c: a b", "ok a b", "a completed, b completed, c ready: running", nil},
		"all gives up with the first failure":            {two + "c: a b", "fail a", "a failed, b ready, c upstream_failed: running", nil},
		"any runs with the first success":                {two + "c: a b any", "ok a", "a completed, b ready, c ready: running", nil},
		"any outlives failures":                          {two + "c: a b any", "fail a; ok b", "a failed, b completed, c ready: running", nil},
		"any gives up when all failed":                   {two + "c: a b any", "fail a b", "a failed, b failed, c upstream_failed: failed", nil},
		"any without a success stays failed below":       {two + "c: a b any\nd: c", "fail a b", "a failed, b failed, c upstream_failed, d upstream_failed: failed", nil},
		"N runs when N parents succeeded":                {two + "c:\nd: a b c 2", "ok a c", "a completed, b ready, c completed, d ready: running", nil},
		"N gives up when N are out of reach":             {two + "c:\nd: a b c 2", "fail a c", "a failed, b ready, c failed, d upstream_failed: running", nil},
		"all_settled runs after failures":                {two + "c: a b all_settled", "fail a; ok b", "a failed, b completed, c ready: running", nil},
		"all_settled waits for the last to end":          {two + "c: a b all_settled", "fail a", "a failed, b ready, c pending: running", nil},
		"all_settled runs behind upstream_failed":        {pair + "c: b all_settled", "fail a; ok c", "a failed, b upstream_failed, c completed: failed", nil},
		"a diamond runs in waves":                        {diamond, "ok a b c d", "a completed, b completed, c completed, d completed: completed", []string{"a/1", "b/1", "c/1", "d/1"}},
		"a failure upstream reaches any depth":           {pair + "c: b\nd: c", "fail a", "a failed, b upstream_failed, c upstream_failed, d upstream_failed: failed", nil},
		"a started any child keeps running":              {two + "c: a b any", "ok a; fail b; ok c", "a completed, b failed, c completed: failed", nil},
		"all_sinks_succeed forgives what a sink forgave": {"sinks\n" + two + "c: a b any", "ok a; fail b; ok c", "a completed, b failed, c completed: completed", nil},
		"all_sinks_succeed wants every sink":             {"sinks\n" + two + "c: a", "ok a c; fail b", "a completed, b failed, c completed: failed", nil},
	})
}

func TestSkips(t *testing.T) {
	t.Parallel()
	checkRules(t, map[string]rule{
		"the child of a skipped task runs":                        {"a:\nb: a if a\nc: b", "ok a; false b", "a completed, b skipped, c ready: running", nil},
		"skips and completions make a completed workflow":         {"a:\nb: a if a\nc: b", "ok a; false b; ok c", "a completed, b skipped, c completed: completed", nil},
		"all takes skipped parents as successes":                  {"a: if -\nb: if -\nc: a b", "false a b", "a skipped, b skipped, c ready: pending", nil},
		"any takes one skipped parent":                            {"a: if -\nb:\nc: a b any", "false a", "a skipped, b ready, c ready: pending", nil},
		"N counts skipped parents":                                {"a: if -\nb:\nc:\nd: a b c 2", "false a; ok b", "a skipped, b completed, c ready, d ready: running", nil},
		"all_settled counts skipped parents":                      {"a: if -\nb:\nc: a b all_settled", "false a; fail b", "a skipped, b failed, c ready: running", nil},
		"skip never spreads by itself":                            {"a: if -\nb: a\nc: b\nd: c", "false a; ok b c d", "a skipped, b completed, c completed, d completed: completed", nil},
		"a skip deep in a chain opens the next":                   {"a:\nb: a\nc: b if b\nd: c\ne: d", "ok a b; false c; ok d", "a completed, b completed, c skipped, d completed, e ready: running", nil},
		"a condition without parents can skip the whole workflow": {"a: if -", "false a", "a skipped: completed", nil},
		"all skipped is completed":                                {"a: if -\nb: a if a\nc: b if b", "false a b c", "a skipped, b skipped, c skipped: completed", nil},
		"an error is not false":                                   {"a:\nb: a if a\nc: b", "ok a; error b", "a completed, b failed, c upstream_failed: failed", nil},
		"an error that hangs on a parent skips":                   {"a:\nb: a all_settled if a\nc: b", "fail a; hung b", "a failed, b skipped, c ready: running", nil},
		"a failed parent wins over the condition":                 {pair + "c: a b if a", "fail a", "a failed, b upstream_failed, c upstream_failed: failed", nil},
	})
}

func TestConditionsAreAskedForOnce(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		tasks, before, event string
		need                 []string
	}{
		"when the policy is met":                                {"a:\nb: a if a", "", "ok a", []string{"b"}},
		"any waits for a named parent that still runs":          {two + "c: a b any if b", "", "ok a", nil},
		"any asks when the named parent has ended":              {two + "c: a b any if b", "ok a", "fail b", []string{"c"}},
		"any does not wait for a parent that is not named":      {two + "c: a b any if a", "", "ok a", []string{"c"}},
		"a named parent alone does not meet the policy":         {two + "c: a b if a", "", "ok a", nil},
		"all_settled asks when the last has ended":              {two + "c: a b all_settled if a", "fail a", "ok b", []string{"c"}},
		"a skip asks for the conditions behind it":              {"a:\nb: a if a\nc: b if b", "ok a", "false b", []string{"c"}},
		"a second parent does not ask again":                    {two + "c: a b any if a", "ok a", "ok b", nil},
		"two children are asked for in the order of the file":   {"a:\nc: a if a\nb: a if a", "", "ok a", []string{"c", "b"}},
		"retry asks again for a condition that had an error":    {"a:\nb: a if a", "ok a; error b", "retry", []string{"b"}},
		"a verdict that nobody waits for does not ask for more": {"a:\nb: a if a", "", "false b", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := begin(t, tc.tasks)
			w.do(tc.before)
			w.do(tc.event)
			var got []string
			for _, i := range w.last.Need {
				got = append(got, w.plan.Name(i))
			}
			if len(got) != len(tc.need) {
				t.Fatalf("after %q Need is %v, want %v", tc.event, got, tc.need)
			}
			for i := range got {
				if got[i] != tc.need[i] {
					t.Fatalf("after %q Need is %v, want %v", tc.event, got, tc.need)
				}
			}
		})
	}
}

func TestRootsWithConditionsAreAskedForAtTheStart(t *testing.T) {
	t.Parallel()
	w := begin(t, "a: if -\nb: a\nc: if -")
	if got := w.last.Need; len(got) != 2 || got[0] != 0 || got[1] != 2 {
		t.Fatalf("Activated needs %v, want tasks 0 and 2", got)
	}
	if got := reload(t, w.run).Outstanding().Need; len(got) != 2 {
		t.Errorf("after a reload Outstanding needs %v, want both again", got)
	}
}

func TestRetries(t *testing.T) {
	t.Parallel()
	checkRules(t, map[string]rule{
		"0 retries are one attempt":                      {"a:", "fail a", "a failed: failed", []string{"a/1"}},
		"1 retry is two attempts":                        {"a: retries 1", "fail a a", "a failed: failed", []string{"a/1", "a/2"}},
		"2 retries are three attempts":                   {"a: retries 2", "fail a a a", "a failed: failed", []string{"a/1", "a/2", "a/3"}},
		"a success ends them":                            {"a: retries 2\nb: a", "fail a; ok a", "a completed, b ready: running", []string{"a/1", "a/2", "b/1"}},
		"a repeated failure counts once":                 {"a: retries 1", "fail a; late a; late a", "a ready: running", []string{"a/1", "a/2"}},
		"a failure before the dispatch is known counts":  {"a: retries 1", "fail a; sent a; fail a", "a failed: failed", []string{"a/1", "a/2"}},
		"a message refused for good is not sent again":   {"a: retries 5", "refused a", "a failed: failed", []string{"a/1"}},
		"given back uses no budget":                      {"a:", "back a; wait 1s; back a; wait 2s; fail a", "a failed: failed", []string{"a/1", "a/2", "a/3"}},
		"given back waits":                               {"a:", "back a; wait 999ms", "a parked: running", []string{"a/1"}},
		"each give-back in a row waits longer":           {"a:", "back a; wait 1s; back a; wait 1s", "a parked: running", []string{"a/1", "a/2"}},
		"a failure ends the row of give-backs":           {"a: retries 1", "back a; wait 1s; fail a; back a; wait 1s", "a ready: running", []string{"a/1", "a/2", "a/3", "a/4"}},
		"ended by the coordinator is given back":         {"a:", "fenced a; wait 1s", "a ready: pending", []string{"a/1", "a/2"}},
		"a completion without number is of attempt 1":    {"a:", "unnumbered a", "a completed: completed", nil},
		"later it says nothing":                          {"a: retries 1", "fail a; unnumbered a", "a ready: running", nil},
		"a late completion changes nothing":              {"a: retries 1\nb: a", "fail a; late a", "a ready, b pending: running", nil},
		"a completion of an ended task changes nothing":  {pair, "ok a; fail a", "a completed, b ready: running", nil},
		"a completion of a task that waits says nothing": {pair, "ok b", "a ready, b pending: pending", nil},
		"an unknown task changes nothing":                {"a:", "ok b", "a ready: pending", nil},
	})
}

func TestLimit(t *testing.T) {
	t.Parallel()
	const three = "limit 2\na:\nb:\nc:\n"
	checkRules(t, map[string]rule{
		"the rest is parked":                         {three, "", "a ready, b ready, c parked: pending", []string{"a/1", "b/1"}},
		"an end frees a slot":                        {three, "sent a b; ok b", "a running, b completed, c ready: running", []string{"a/1", "b/1", "c/1"}},
		"a back-off frees its slot":                  {three, "back a", "a parked, b ready, c ready: running", []string{"a/1", "b/1", "c/1"}},
		"a back-off that is over waits for a slot":   {three, "back a; wait 1m", "a parked, b ready, c ready: running", nil},
		"a back-off blocks nobody":                   {"limit 1\na:\nb:\n", "back a; ok b; wait 1s", "a ready, b completed: running", []string{"a/1", "b/1", "a/2"}},
		"a retry comes back by position":             {"limit 1\na: retries 1\nb:\n", "fail a", "a ready, b parked: running", []string{"a/1", "a/2"}},
		"marked while parked takes no slot":          {three, "mark c completed; rerun c; ok a; ok c", "a completed, b ready, c completed: running", []string{"a/1", "b/1", "c/1"}},
		"an old place in the line ends no back-off":  {"limit 1\na:\nb:\n", "mark b skipped; rerun b; ok a; back b", "a completed, b parked: running", []string{"a/1", "b/1"}},
		"parked twice is numbered once":              {"limit 1\na:\nb:\n", "mark b skipped; rerun b; ok a", "a completed, b ready: running", []string{"a/1", "b/1"}},
		"cancel empties the waiting room":            {three, "cancel; ok a b", "a completed, b completed, c cancelled: cancelled", []string{"a/1", "b/1"}},
		"cancelled while parked can be retried once": {three, "cancel; fenced a b; retry; ok a b", "a completed, b completed, c ready: running", []string{"a/1", "b/1", "a/2", "b/2", "c/1"}},
	})
}

func TestBackOffStopsGrowing(t *testing.T) {
	t.Parallel()
	w := begin(t, "a:")
	wait := time.Second
	for n := range 40 {
		w.do("back a")
		until := w.run.Outstanding().ParkedUntil
		if got := until.Sub(w.now); got != wait {
			t.Fatalf("after %d give-backs the task waits %s, want %s", n+1, got, wait)
		}
		w.do("wait " + wait.String())
		wait = min(2*wait, 5*time.Minute)
	}
}

func TestResultOfAttemptsThatDidNotEndTheTask(t *testing.T) {
	t.Parallel()
	w := begin(t, "a: retries 1\nb: a")
	w.step(engine.Completion{Task: "a", Attempt: 1, Output: state.Output{Kind: state.InlineOutput, Text: "1"}, Error: "boom", EndedAt: w.now})
	s := w.run.State()
	if _, kept := s.Outputs[0]; kept || s.EndedAt[0] != 0 {
		t.Errorf("a failed attempt left output %v and end %d on a task that goes on", s.Outputs[0], s.EndedAt[0])
	}
	if s.Reasons[0] != "boom" {
		t.Errorf("the reason of the next attempt is %q, want %q", s.Reasons[0], "boom")
	}
	w.do("sent a")
	w.step(engine.Completion{Task: "a", Attempt: 2, Success: true, StartedAt: w.now.Add(1), EndedAt: w.now.Add(time.Minute)})
	if s.Reasons[0] != "" || s.EndedAt[0] != w.now.Add(time.Minute).UnixMilli() {
		t.Errorf("after success reason is %q, end %d", s.Reasons[0], s.EndedAt[0])
	}
}

func TestTextsKeepToTheirRoom(t *testing.T) {
	t.Parallel()
	const n = 2000
	var tasks strings.Builder
	for i := range n {
		fmt.Fprintf(&tasks, "t%d:\n", i)
	}
	w := begin(t, tasks.String())
	for i := range n {
		ev := engine.Completion{Task: fmt.Sprintf("t%d", i), Attempt: 1, Error: strings.Repeat("x", 5000)}
		if _, err := w.run.Step(ev, w.now); err != nil {
			t.Fatal(err)
		}
	}
	total := 0
	for _, text := range w.run.State().Reasons {
		total += len(text)
	}
	if total > state.MaxTextTotal || total < state.MaxTextTotal-100 {
		t.Errorf("%d bytes of reasons, want nearly %d and no more", total, state.MaxTextTotal)
	}
	first, kept := w.run.State().Reasons[0], len(w.run.State().Reasons)
	if len(first) != state.MaxText || kept < n/3 {
		t.Errorf("the first reason has %d bytes and %d tasks have one; want %d, and room for many short ones", len(first), kept, state.MaxText)
	}
	if err := engine.Check(w.run); err != nil {
		t.Error(err)
	}
}

func TestInlineOutputsKeepToTheirRoom(t *testing.T) {
	t.Parallel()
	const most = state.MaxInlineTotal / state.MaxInlineOutput
	var tasks strings.Builder
	for i := range most {
		fmt.Fprintf(&tasks, "t%d:\n", i)
	}
	tasks.WriteString("more:\n")
	w := begin(t, tasks.String())
	if w.run.InlineRoom(state.MaxInlineOutput + 1) {
		t.Error("there is room for an output above the limit of one")
	}
	for i := range most {
		if !w.run.InlineRoom(state.MaxInlineOutput) {
			t.Fatalf("no room for output %d of %d", i+1, most)
		}
		out := state.Output{Kind: state.InlineOutput, Text: strings.Repeat("1", state.MaxInlineOutput)}
		if _, err := w.run.Step(engine.Completion{Task: fmt.Sprintf("t%d", i), Attempt: 1, Success: true, Output: out}, w.now); err != nil {
			t.Fatal(err)
		}
	}
	if w.run.InlineRoom(1) || reload(t, w.run).InlineRoom(1) {
		t.Error("there is room above the limit of all")
	}
	w.do("rerun t1; fail t1 more")
	full := state.Output{Kind: state.InlineOutput, Text: strings.Repeat("2", state.MaxInlineOutput)}
	for _, tc := range []struct {
		task string
		out  state.Output
		done bool
	}{
		{"t1", full, true},
		{"more", state.Output{Kind: state.InlineOutput, Text: "2"}, false},
		{"more", state.Output{}, true},
	} {
		if got := *w.step(engine.Mark{Task: tc.task, To: state.Completed, Output: tc.out}).Answer; got.Done != tc.done || !tc.done && !strings.Contains(got.Text, "no room for 1 bytes") {
			t.Errorf("%s marked with %d bytes: %+v, want done %t", tc.task, len(tc.out.Text), got, tc.done)
		}
	}
	w.do("rerun t0; ok t0")
	if !w.run.InlineRoom(state.MaxInlineOutput) {
		t.Error("an output that is gone still takes room")
	}
}

func TestFrozenParents(t *testing.T) {
	t.Parallel()
	w := begin(t, two+"c: a b any")
	w.do("fail a; ok b")
	if got := w.run.Parents(2); len(got) != 1 || got[0] != 1 {
		t.Fatalf("c gets the outputs of %v, want those of b alone", got)
	}
	w.do("mark a completed")
	if got := reload(t, w.run).Parents(2); len(got) != 1 || got[0] != 1 {
		t.Errorf("after a mark the same attempt gets %v, want what was frozen", got)
	}
	w.do("ok c; rerun c")
	if got := w.run.Parents(2); len(got) != 2 {
		t.Errorf("the next attempt gets the outputs of %v, want both", got)
	}
}

func TestParentsThatRunAgainGiveTheirOldOutput(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		child string
		want  int
	}{
		"all gets every parent":                      {"c: a b x", 3},
		"any gets those whose old output is there":   {"c: a b x any", 2},
		"a number gets those too":                    {"c: a b x 2", 2},
		"all_settled gets those too, and no failure": {"c: a b x all_settled", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := begin(t, two+"x:\n"+tc.child)
			w.step(engine.Completion{Task: "a", Attempt: 1, Success: true, Output: state.Output{Kind: state.CanonicalOutput}})
			w.do("ok b x; back c; rerun a x; wait 1s")
			if got := w.run.Parents(3); w.attempt("c") != 2 || len(got) != tc.want {
				t.Errorf("attempt %d gets the outputs of %v, want %d parents", w.attempt("c"), got, tc.want)
			}
		})
	}
}

func TestReportsDoNotSwellTheState(t *testing.T) {
	t.Parallel()
	w := begin(t, "a:")
	long := strings.Repeat("x", 40_000)
	w.step(engine.Completion{Task: "a", Attempt: 1, Error: long, Exit: state.Exit{Signal: long, Word: long, Worker: long}})
	if doc := encode(t, w.run); len(doc) > 4<<10 {
		t.Errorf("a state of one task has %d bytes", len(doc))
	}
}

// No clock can be ahead so far that a task is not tried again.
func TestABackOffByAClockFarAheadIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		ahead time.Duration
		want  string
	}{
		"minutes": {4 * time.Minute, "a parked: running"},
		"a year":  {365 * 24 * time.Hour, "a ready: running"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := begin(t, "a:")
			w.do("sent a")
			w.now = epoch.Add(tc.ahead)
			w.do("back a")
			w.now = epoch.Add(time.Second)
			w.step(engine.Wake{})
			w.want(tc.want)
			w.now = epoch.Add(tc.ahead + time.Second)
			w.step(engine.Wake{})
			w.want("a ready: running")
		})
	}
}

// The output of the first attempt of a first life has a name without an attempt, by
// which the removal of that life may take it at any time.
func TestALaterLifeHasNoFirstAttempt(t *testing.T) {
	t.Parallel()
	w := begin(t, "a: if -")
	w.do("false a")
	if w.run.State().HighestAttempt != 0 {
		t.Fatalf("an attempt was made: %s", w)
	}
	p := newPlan(t, parse(t, "a:"))
	r := newRun(t, p, engine.Begin(p, "w1", "hash", w.run.State().Tombstone(), epoch))
	out, err := r.Step(engine.Activated{}, epoch)
	if err != nil || len(out.Send) != 1 || out.Send[0].Attempt != 2 {
		t.Errorf("Activated sends %+v, %v, want attempt 2", out.Send, err)
	}
}
