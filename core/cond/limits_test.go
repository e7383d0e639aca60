package cond_test

import (
	"strings"
	"testing"
	"time"

	"jobq/core/cond"
)

// TestTenThousandParentsTakeMilliseconds takes the best of several runs: the
// machine may be busy with something else, and its best moment is what we cost.
func TestTenThousandParentsTakeMilliseconds(t *testing.T) {
	const limit = 50 * time.Millisecond * slowdown
	parents, inputs := manyParents(10_000)
	best := time.Hour
	for began := time.Now(); best > limit && time.Since(began) < 20*time.Second; {
		start := time.Now()
		program, faults := cond.Compile(`all(inputs["train-*"].loss < 0.1 and inputs["train-*"].ok)`, parents)
		if len(faults) > 0 {
			t.Fatal(faults)
		}
		if got := program.Evaluate(inputs); got.Outcome != cond.True {
			t.Fatal(got.Reason)
		}
		best = min(best, time.Since(start))
	}
	t.Log(best)
	if best > limit {
		t.Errorf("compiling and evaluating took %v, want less than %v", best, limit)
	}
}

// TestHostileConditionsEnd compiles and evaluates what is made to take for ever,
// to overflow a stack or to fill the memory.
func TestHostileConditionsEnd(t *testing.T) {
	t.Parallel()
	parents, inputs := manyParents(2_000)
	parents = append(parents, "big", "deep", "text", "digits", "wide", strings.Repeat("a", 256))
	const levels = 9_998
	inputs["big"] = cond.Input{Output: []byte(`{"l": [` + strings.Repeat("[1, 2], ", 50_000) + `1], "m": [` + strings.Repeat("[1, 2], ", 50_000) + "2]}")}
	inputs["deep"] = cond.Input{Output: []byte(`{"l": ` + strings.Repeat("[", levels) + strings.Repeat("]", levels) + `, "m": ` + strings.Repeat("[", levels) + strings.Repeat("]", levels) + "}")}
	inputs["text"] = cond.Input{Output: []byte(`{"s": "` + strings.Repeat("a", 1<<20) + `", "t": "` + strings.Repeat("a", 1<<19) + `b"}`)}
	inputs["digits"] = cond.Input{Output: []byte(`{"n": ` + strings.Repeat("7", 1<<20) + "}")}
	inputs["wide"] = cond.Input{Output: []byte(`{"l": [` + strings.Repeat(strings.Repeat("1", 4000)+", ", 200) + `1]}`)}
	for name, source := range map[string]string{
		"many aggregates":            repeated("count(inputs.*.loss)<1e9", " and "),
		"large lists, many times":    repeated("inputs.big.l!=inputs.big.m", " and "),
		"large lists in aggregates":  "count(" + repeated("inputs.big.l!=inputs.big.m", " and ") + " or inputs.*)",
		"list in its own items":      repeated("inputs.big.l not in inputs.big.m", " and "),
		"deep lists":                 repeated("inputs.deep.l<=inputs.deep.m", " and "),
		"long texts":                 repeated("inputs.text.t not in inputs.text.s", " and "),
		"digits without end":         "inputs.digits.n == 1",
		"large numbers":              repeated("inputs.wide.l==inputs.wide.l", " and "),
		"chain of comparisons":       strings.Repeat("1<", 2047) + "2",
		"chain of and":               strings.Repeat("1 and ", 682) + "1",
		"chain of in":                "1 in " + repeated("[1]", " in "),
		"long list":                  "1 in [" + strings.Repeat("0,", 2040) + "]",
		"long list in an aggregate":  "any(inputs.* in [" + strings.Repeat("0,", 2020) + "])",
		"list that is made anew":     "any(1 in [" + strings.Repeat("0,", 2000) + "inputs.*.x])",
		"pattern of stars":           `any(inputs["` + strings.Repeat("*a", 2000) + `*b"])`,
		"pattern of sets":            `any(inputs["` + strings.Repeat("[a-", 1300) + `])`,
		"parentheses that don't end": strings.Repeat("(", 4096),
		"brackets that don't end":    "inputs" + strings.Repeat("[", 4090),
		"negations that don't end":   strings.Repeat("not ", 1024),
		"signs that don't end":       strings.Repeat("-", 4096),
		"aggregates that don't end":  strings.Repeat("all(", 1024),
		"arithmetic that is long":    strings.Repeat("1+", 2047) + "1",
		"hyphens that don't end":     "inputs.a" + strings.Repeat("-a", 2000),
		"texts side by side":         strings.Repeat(`""`, 2048),
		"lines":                      strings.Repeat("\n", 4096),
		"long path":                  "inputs.deep.l" + strings.Repeat("[0]", 1300),
		"unknown names":              repeated("inputs.trai_00001", " or "),
	} {
		t.Run(name, func(t *testing.T) {
			outcome, took := "", time.Duration(0)
			// A machine that was busy with something else may try again.
			for try := 0; try == 0 || took > 5*time.Second*slowdown && try < 3; try++ {
				start := time.Now()
				outcome = "refused"
				program, faults := cond.CompileTolerant(source, parents)
				if len(faults) == 0 {
					result := program.Evaluate(inputs)
					outcome = result.Outcome.String()
					if strings.Contains(result.Reason, "internal") {
						t.Error(result.Reason)
					}
				}
				for _, fault := range faults {
					if strings.Contains(fault.Message, "internal") {
						t.Error(fault)
					}
				}
				took = time.Since(start)
			}
			if took > 5*time.Second*slowdown {
				t.Errorf("took %v", took)
			} else {
				t.Log(outcome, took)
			}
		})
	}
}

// repeated joins as many copies of a text as fit into a condition with some room.
func repeated(text, separator string) string {
	number := (cond.MaximumLength - 64) / (len(text) + len(separator))
	return strings.Repeat(text+separator, number) + text
}
