package cond_test

import (
	"strings"
	"testing"
	"time"

	"jobq/core/cond"
)

// fuzzParents have names of every sort.
var fuzzParents = []string{"a", "b", "train-a", "train-b", "x[1]", "p/q", "été"}

var fuzzSeeds = []string{
	`inputs.a.x < 1 and not inputs["train-a"].ok or 3 in [1, -2.5e3, "x"]`,
	`all(0 < inputs["train-*"].loss <= 0.01) and count(inputs.*.ok) >= 2`,
	`almost_all(inputs["[!t]*"].x == inputs.a.x, 1) != any(inputs.*.y)`,
	`"\x41\u00e9\N{DASH}" in r'\n' "joined" # comment`,
	"(inputs.a\n  .x[0][-1] == (1, 2,)) if true else lambda: 0",
	`inputs.train-a.x inputs.class inputs.2x inputs["x[1]"]["k"] :=`,
	"0x1f 0b12 1_000 1__0 .5 1e 1e5j 007 1.2.3",
	`f"{inputs}" b"" """x""" ${{ }} && || ! ? ~ -1 --1`,
	"inputs.a.b.c.d(((([[[[{{{{",
}

// FuzzParse reads anything without a panic, in time, and with faults whose
// places are inside the source.
func FuzzParse(f *testing.F) {
	for _, seed := range fuzzSeeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, source string) {
		start := time.Now()
		expression, faults := cond.Parse(source)
		if (expression == nil) != (len(faults) > 0) {
			t.Fatalf("%q: expression %v and faults %v", source, expression, faults)
		}
		if expression != nil {
			faults = expression.Check(fuzzParents)
		}
		lines := strings.Count(source, "\n") + strings.Count(source, "\r") + 1
		for _, fault := range faults {
			if fault.Line < 1 || fault.Line > lines || fault.Column < 1 || fault.Column > len(source)+1 || fault.Message == "" {
				t.Errorf("%q: %v", source, fault)
			}
			if strings.Contains(fault.Message, "internal") && !strings.Contains(source, "internal") {
				t.Errorf("%q: %v", source, fault)
			}
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

// FuzzEvaluate evaluates whatever compiles on any outputs: it ends, its texts are
// bounded, and the same inputs give the same answer.
func FuzzEvaluate(f *testing.F) {
	for _, seed := range fuzzSeeds {
		f.Add(seed, `{"x": [1, {"k": null}], "ok": true, "loss": 0.5}`, `"text"`)
		f.Add(seed, `[1e999, -0.0, 123456789012345678901]`, ``)
	}
	f.Fuzz(func(t *testing.T, source, first, second string) {
		program, faults := cond.CompileTolerant(source, fuzzParents)
		if len(faults) > 0 {
			return
		}
		inputs := map[string]cond.Input{
			"a": {Output: []byte(first), Completed: true}, "train-a": {Output: []byte(first)},
			"b": {Output: []byte(second), Completed: true}, "x[1]": {Completed: true},
		}
		start := time.Now()
		result := program.Evaluate(inputs)
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("took %v", took)
		}
		if again := program.Evaluate(inputs); again.Reason != result.Reason || again.Outcome != result.Outcome {
			t.Errorf("first %s (%s), then %s (%s)", result.Outcome, result.Reason, again.Outcome, again.Reason)
		}
		if (result.Outcome == cond.Error) != (result.Err != nil) || result.Reason == "" {
			t.Errorf("%s with error %v and reason %q", result.Outcome, result.Err, result.Reason)
		}
		if len(result.Trace) > 32 || len(result.Reason) > 600 || result.Omitted < 0 {
			t.Errorf("%d entries, %d omitted, reason of %d bytes", len(result.Trace), result.Omitted, len(result.Reason))
		}
		if result.Err != nil && strings.Contains(result.Err.Message, "internal: ") && !strings.Contains(source, "internal") {
			t.Error(result.Err)
		}
		if len(result.Blames) < len(result.Incomplete) {
			t.Errorf("blames %v, incomplete %v", result.Blames, result.Incomplete)
		}
	})
}
