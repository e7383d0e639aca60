package cond_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"jobq/core/cond"
)

func TestReasonNamesWhatDecidedAndItsValues(t *testing.T) {
	t.Parallel()
	o := outputs{
		"train": `{"mae": 0.2, "epochs": 50, "rate": 1.0, "big": 1e999, "tags": ["a", {"b": null}], "s": "<é>\n", "none": null}`,
		"t-a":   `{"loss": 0.001, "ok": true}`, "t-b": `{"loss": 0.02, "ok": true}`, "t-c": `{"ok": false}`,
		"gone": absent,
	}
	for source, want := range map[string]string{
		"inputs.train.mae < 0.1":                     "inputs.train.mae < 0.1 is false: inputs.train.mae = 0.2",
		"inputs.train.epochs and 2 > 1 and 1 > 2":    "1 > 2 is false",
		"inputs.train.mae < 1 and inputs.train.tags": `inputs.train.mae < 1 and inputs.train.tags is true: inputs.train.mae = 0.2, inputs.train.tags = ["a", {"b": null}]`,
		"inputs.train.none or inputs.train.mae > 1":  "inputs.train.none or inputs.train.mae > 1 is false: inputs.train.none = null, inputs.train.mae = 0.2",
		"inputs.train.none or inputs.train.mae < 1":  "inputs.train.mae < 1 is true: inputs.train.mae = 0.2",
		"0 < inputs.train.mae < 0.1 < nope"[:26]:     "inputs.train.mae < 0.1 is false: inputs.train.mae = 0.2",
		"not inputs.train.rate":                      "not inputs.train.rate is false: inputs.train.rate = 1.0",
		"inputs.train.s == ''":                       `inputs.train.s == '' is false: inputs.train.s = "<é>\n"`,
		"inputs.train.big < 5":                       "inputs.train.big < 5 is false: inputs.train.big = Infinity",
		"inputs.gone":                                "inputs.gone is false: inputs.gone = null",
		"(inputs.train.mae\n  < 0.1) and\ttrue":      "inputs.train.mae < 0.1 is false: inputs.train.mae = 0.2",
		`all(inputs["t-*"].loss < 0.01)`: `all(inputs["t-*"].loss < 0.01) is false: 2 of 3 inputs do not satisfy it, 1 can't be evaluated: ` +
			`inputs["t-b"].loss = 0.02, inputs["t-c"].loss: no field "loss"`,
		`count(inputs["t-*"].ok) >= 3`: `count(inputs["t-*"].ok) >= 3 is false: count(inputs["t-*"].ok) = 2 ` +
			`(2 of 3 inputs satisfy it: inputs["t-a"].ok = true, inputs["t-b"].ok = true)`,
		`almost_all(inputs["t-*"].ok, 1)`: `almost_all(inputs["t-*"].ok, 1) is true: 1 of 3 inputs do not satisfy it, 1 may fail it: inputs["t-c"].ok = false`,
		`any(inputs["t-*"].loss > 1)`:     `any(inputs["t-*"].loss > 1) is false: 0 of 3 inputs satisfy it, 1 can't be evaluated`,
		"inputs.train.mea < 0.1": `inputs.train.mea can't be evaluated: the output of "train" has no field "mea"; ` +
			`it has big, epochs, mae, none, rate, s, tags`,
		"inputs.train.mae < inputs.gone": "inputs.train.mae < inputs.gone can't be evaluated: a number and None have no order (inputs.train.mae = 0.2, inputs.gone = null)",
	} {
		if got := evaluate(t, source, o).Reason; got != want {
			t.Errorf("%s\ngot  %s\nwant %s", source, got, want)
		}
	}
}

func TestErrorSuggestsTheFieldThatWasMeant(t *testing.T) {
	t.Parallel()
	got := evaluate(t, "inputs.train.mea < 0.1", outputs{"train": `{"mae": 1}`})
	if want := `did you mean "mae"?`; got.Err == nil || got.Err.Hint != want {
		t.Errorf("got %v, want the hint %s", got.Err, want)
	}
}

func TestTraceHoldsTheValuesThatWereRead(t *testing.T) {
	t.Parallel()
	o := outputs{"a": `{"x": 1, "y": {"z": "é"}}`, "t-1": `{"ok": false}`, "t-2": `{"ok": true}`, "t-3": "{}"}
	got := evaluate(t, `inputs.a.x == 1 and inputs.a.y and any(inputs["t-*"].ok and inputs.a.x) or inputs.a.nope`, o)
	want := []cond.TraceEntry{
		{Reference: "inputs.a.x", Parent: "a", Value: "1"},
		{Reference: "inputs.a.y", Parent: "a", Value: `{"z": "é"}`},
		{Reference: `inputs["t-2"].ok`, Parent: "t-2", Value: "true"},
		{Reference: `inputs["t-1"].ok`, Parent: "t-1", Value: "false"},
		{Reference: `inputs["t-3"].ok`, Parent: "t-3", Problem: `no field "ok"`},
	}
	if diff := cmp.Diff(want, got.Trace); diff != "" || got.Omitted != 0 {
		t.Errorf("omitted %d, trace (-want +got):\n%s", got.Omitted, diff)
	}
}

func TestTraceAndReasonAreBounded(t *testing.T) {
	t.Parallel()
	long := outputs{}
	for i := range 300 {
		long[fmt.Sprintf("%s-%03d", strings.Repeat("名", 80), i)] = `{"x": "` + strings.Repeat("é", 5000) + `"}`
	}
	many := outputs{}
	for i := range 300 {
		many[fmt.Sprint(i)] = `{"x": 1}`
	}
	huge := outputs{"a": "{" + strings.Repeat(`"k`+strings.Repeat("x", 99)+`": 1, `, 1) + `"last": [` + strings.Repeat("[1],", 50_000) + "1]}"}
	for name, test := range map[string]struct {
		source string
		outputs
		entries, omitted int
	}{
		"long names and values": {`any(inputs.*.x == 1)`, long, 3, 297},
		"many values":           {`all(inputs.*.x == 2)`, many, 32, 268},
		"a large value":         {`inputs.a.last == 1`, huge, 1, 0},
		"a field of too many":   {`inputs.a.nope == 1`, huge, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := evaluate(t, test.source, test.outputs)
			size := 0
			for _, entry := range got.Trace {
				size += len(entry.Reference) + len(entry.Value) + len(entry.Problem)
				for _, text := range []string{entry.Reference, entry.Value, entry.Problem} {
					if !utf8.ValidString(text) {
						t.Errorf("a character was cut in two: %q", text)
					}
				}
			}
			if size > 1024 || len(got.Trace) != test.entries || got.Omitted != test.omitted {
				t.Errorf("%d entries of %d bytes, %d omitted; want %d, at most 1024, %d", len(got.Trace), size, got.Omitted, test.entries, test.omitted)
			}
			if len(got.Reason) > 600 || !utf8.ValidString(got.Reason) {
				t.Errorf("reason of %d bytes: %s", len(got.Reason), got.Reason)
			}
		})
	}
}
