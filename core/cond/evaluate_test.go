package cond_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jobq/core/cond"
)

// outputs are the outputs of parents; "" is a parent that completed without one,
// absent a parent that did not complete.
type outputs map[string]string

const absent = "absent"

func (o outputs) inputs() ([]string, map[string]cond.Input) {
	inputs := make(map[string]cond.Input, len(o))
	for name, output := range o {
		switch output {
		case absent:
		case "":
			inputs[name] = cond.Input{Completed: true}
		default:
			inputs[name] = cond.Input{Output: []byte(output), Completed: true}
		}
	}
	return slices.Sorted(maps.Keys(o)), inputs
}

func evaluate(t *testing.T, source string, o outputs) cond.Result {
	t.Helper()
	parents, inputs := o.inputs()
	program, faults := cond.Compile(source, parents)
	if len(faults) > 0 {
		t.Fatalf("%s is refused: %v", source, faults)
	}
	return program.Evaluate(inputs)
}

func TestConditionsMeanWhatTheyMeanInPython(t *testing.T) {
	t.Parallel()
	o := outputs{
		"a":    `{"n": 3, "f": 0.5, "s": "été", "b": true, "none": null, "l": [1, 2.0, "x", null], "o": {"k": 1, "": 2}, "e": [], "big": 123456789012345678901234567890}`,
		"b":    `{"n": 3.0, "l": [true, 2], "o": {"": 2.0, "k": true}, "s": "\ud83d\ude00", "half": "\ud83d", "neg": -0}`,
		"none": "",
	}
	for group, sources := range map[string][]string{
		"numbers compare by their exact values": {
			"inputs.a.n == inputs.b.n", "inputs.a.big > 1e29", "inputs.a.big < 1e30",
			"inputs.a.big == 123456789012345678901234567890", "9007199254740993 > 9007199254740992.0",
			"9223372036854775807 < 9223372036854775808.0", "-9223372036854775808 == -9223372036854775808.0",
			"100000000000000000000000 > 99999999999999991611392.0", "0.1 != 0.30000000000000004",
			"1e999 > 123456789012345678901234567890", "-1e999 < -1e308", "1e999 == 1e400", "-0.0 == 0", "inputs.b.neg == 0",
			"0x1F == 31 == 0o37 == 0b1_1111", "1_000.5e0_1 == 10005", "-9223372036854775808 < -9223372036854775807",
		},
		"booleans are the numbers one and zero": {
			"True == 1", "false == 0.0", "true > 0.5", "inputs.a.b == 1", "true in [1]", "not true == 2", "true < 2",
		},
		"values of other kinds are never equal": {
			`inputs.a.n != "3"`, "None != false", "None != 0", `"" != None`, "inputs.a.l != inputs.a.o", "inputs.a.e != inputs.a.none",
		},
		"empty values, zero and None are false": {
			"not inputs.a.none", "not inputs.a.e", `not ""`, "not 0.0", "not -0.0", "not inputs.none", "inputs.a.l", `"0"`, "1e-300", "inputs.a.o",
		},
		"and, or return the operand that decided": {
			"(inputs.a.none or inputs.a.n) == 3", "(inputs.a.n and inputs.a.s) == 'été'", `(0 or "") == ""`,
			"(inputs.a.e or 0 or inputs.a.f) == 0.5", "(1 and None) == None",
		},
		"what is decided is not evaluated further": {
			"true or inputs.a.nope", "not (false and inputs.a.nope < 1)", "not (2 < 1 < inputs.a.nope)",
			"(inputs.a.n or inputs.a.nope) == 3",
		},
		"chains compare neighbours": {
			"1 < 2 < 3", "not 1 < 3 < 2", "3 > 2 < 4 != 5", "1 == 1 == true", "1 < 2 in [2, 3]", "(1 < 2) == true",
			"not (3 < 2) == true", "1 in [1] != 2",
		},
		"operators bind as in Python": {
			"true or false and false", "not false and true", "not 1 == 2", "not true or true", "not (false or true and false)",
			"not not inputs.a.n", `not "x" in "abc"`,
		},
		"in looks into texts, lists, tuples and keys": {
			`"" in "abc"`, `"bc" in "abc"`, `"ac" not in "abc"`, "2 in inputs.a.l", "true in inputs.a.l", "None in inputs.a.l",
			`"k" in inputs.a.o`, "1 not in inputs.a.o", "None not in inputs.a.o", "3 in (1, 2, 3)", `inputs.a.n in [inputs.b.n]`,
			"1 not in ()", "(1) in [1]", "inputs.a.e in ([], 1)", "inputs.a.e not in ((), 1)",
		},
		"lists and objects compare item by item": {
			"inputs.a.o == inputs.b.o", "inputs.b.l > inputs.a.e", "inputs.a.l[1] == 2",
			"inputs.a.l in [inputs.a.l]", "inputs.b.l <= inputs.b.l", "inputs.a.l not in [(1, 2.0)]", "inputs.b.l < inputs.a.l",
		},
		"items are counted from both ends": {
			"inputs.a.l[0] == 1", "inputs.a.l[-1] == None", "inputs.a.l[-4] == inputs.a.l[0x0]", "inputs.a.s[0] == 'é'",
			"inputs.a.s[-1] == inputs.a.s[2]", "inputs.b.s[0] == inputs.b.s[-1]", "inputs.a.o[''] == 2",
		},
		"texts order by code point": {
			`"Z" < "a"`, `"abc" < "abd"`, `"10" < "9"`, `"ab" < "abc"`, "inputs.a.s > 'z'", `"\uffff" < inputs.b.s`,
			`inputs.b.half < "\uffff"`, "inputs.b.half != inputs.b.s",
		},
		"escapes are Python's": {
			`"\x41\u0042\U00000043\104" == 'ABCD'`, `"a\
b" == "ab"`, `r"\n" == "\\n"`, `U"\t" == '	'`, `'\'' == "'"`, `"\ud83d" == inputs.b.half`, `"\ud83d\ude00" != inputs.b.s`,
			`"\U0001F600" == inputs.b.s`, `"\08" == "\x008"`,
		},
		"a parent without output is None": {
			"inputs.none == None", "inputs.none == null", "not inputs.none", "inputs.none in [None]",
		},
	} {
		t.Run(group, func(t *testing.T) {
			t.Parallel()
			for _, source := range sources {
				if got := evaluate(t, source, o); got.Outcome != cond.True {
					t.Errorf("%s is %s: %s", source, got.Outcome, got.Reason)
				}
			}
		})
	}
}

func TestWhatCannotBeEvaluatedIsAnError(t *testing.T) {
	t.Parallel()
	o := outputs{
		"a": `{"n": 1, "s": "x", "none": null, "o": {}, "l": [1, {}]}`, "list": "[1]", "bad": "{", "latin": "\"\xe9\"",
		"huge": `{"n": ` + strings.Repeat("9", 4301) + `}`, "deep": strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001),
		"empty": "", "skipped": absent, "z": `{"n": "text"}`,
	}
	tests := map[string]struct {
		source             string
		blames, incomplete []string
		column             int
		message            string
	}{
		"a field that is missing":             {"inputs.a.mea < 1", []string{"a"}, nil, 1, `the output of "a" has no field "mea"; it has l, n, none, o, s`},
		"a field below a field":               {"true and inputs.a.o.x", []string{"a"}, nil, 10, `inputs.a.o has no field "x"`},
		"a field of a number":                 {"inputs.a.n.x", []string{"a"}, nil, 1, `inputs.a.n is a number and has no field "x"`},
		"a field of None":                     {"inputs.a.none.x", []string{"a"}, nil, 1, "is None and has no field"},
		"a field of a list":                   {"inputs.list.x", []string{"list"}, nil, 1, `the output of "list" is a list`},
		"an item past the end":                {"inputs.list[1]", []string{"list"}, nil, 1, "has 1 items and no item 1"},
		"an item before the start":            {"inputs.list[-2]", []string{"list"}, nil, 1, "no item -2"},
		"an item past every end":              {"inputs.list[99999999999999999999]", []string{"list"}, nil, 1, "no item"},
		"an item of an object":                {"inputs.a[0]", []string{"a"}, nil, 1, "is an object and has no item 0"},
		"a character past the end":            {"inputs.a.s[1]", []string{"a"}, nil, 1, "shorter"},
		"None has no order":                   {"1 > inputs.a.none", []string{"a"}, nil, 1, "a number and None have no order"},
		"objects have no order":               {"inputs.a.o < inputs.a.o", []string{"a"}, nil, 1, "an object and an object"},
		"kinds have no common order":          {"inputs.a.s != inputs.z.n > inputs.a.n", []string{"a", "z"}, nil, 15, "a text and a number"},
		"items have no order":                 {"inputs.list > inputs.list or inputs.list < inputs.a.o", []string{"a"}, nil, 30, "a list and an object"},
		"a number is no container":            {"1 in inputs.a.n", []string{"a"}, nil, 1, "a number holds nothing"},
		"a number is in no text":              {"inputs.a.n in inputs.a.s", []string{"a"}, nil, 1, "a number can't be part of a text"},
		"a list is no key":                    {"inputs.list in inputs.a.o", []string{"list"}, nil, 1, "a list can't be a key"},
		"literals blame nobody":               {"1 < None", nil, nil, 1, "a number and None"},
		"a literal that can't be right":       {"inputs.a.n < None", nil, nil, 1, "a number and None"},
		"an output that is no JSON":           {"inputs.bad == 1", []string{"bad"}, nil, 1, `the output of "bad" is not JSON`},
		"an output that is no UTF-8":          {"inputs.latin == 1", []string{"latin"}, nil, 1, `is not UTF-8`},
		"an integer without end":              {"inputs.huge.n == 1", []string{"huge"}, nil, 1, "more than 4300 digits"},
		"nesting without end":                 {"inputs.deep == 1", []string{"deep"}, nil, 1, "nested deeper than 10000"},
		"a field of a completed parent":       {"inputs.empty.x == 1", []string{"empty"}, nil, 1, `"empty" has no output`},
		"a field of a skipped parent":         {"inputs.skipped.x == 1", []string{"skipped"}, []string{"skipped"}, 1, `"skipped" did not complete`},
		"a skipped parent in a comparison":    {"inputs.a.n < inputs.skipped", []string{"skipped"}, []string{"skipped"}, 1, "a number and None"},
		"two parents, one of them skipped":    {"inputs.empty < inputs.skipped", []string{"empty", "skipped"}, []string{"skipped"}, 1, "None and None"},
		"a value that or chose":               {"(inputs.skipped or inputs.z.n) < 1", []string{"skipped", "z"}, []string{"skipped"}, 1, "a text and a number"},
		"a value before the one or skipped":   {"(inputs.z.n or inputs.skipped) < 1", []string{"z"}, nil, 1, "a text and a number"},
		"a fixed reference in an aggregate":   {`not any(inputs["[az]"].n > inputs.a.mea)`, []string{"a"}, nil, 28, `no field "mea"`},
		"a literal in an aggregate":           {`not any(inputs["[az]"].n > None)`, nil, nil, 9, "None have no order"},
		"the value of an aggregate":           {`count(inputs["[az]"].n) < inputs.z.n`, []string{"z"}, nil, 1, "a number and a text"},
		"an error in the middle of and":       {"inputs.a.n and inputs.a.x and inputs.skipped.y", []string{"a"}, nil, 16, `no field "x"`},
		"an error inside not":                 {"not inputs.a.x", []string{"a"}, nil, 5, `no field "x"`},
		"an error inside a list":              {"1 in [2, inputs.a.x]", []string{"a"}, nil, 10, `no field "x"`},
		"an error on the left of a chain":     {"inputs.a.x < 1 < inputs.skipped", []string{"a"}, nil, 1, `no field "x"`},
		"an error later in a chain":           {"0 < inputs.a.n < inputs.skipped.x", []string{"skipped"}, []string{"skipped"}, 18, "did not complete"},
		"a parent that is not in the inputs":  {"inputs.skipped.x", []string{"skipped"}, []string{"skipped"}, 1, "did not complete"},
		"evaluation goes from left to right":  {"inputs.a.one < inputs.a.two", []string{"a"}, nil, 1, `no field "one"`},
		"every error of a list blames itself": {"inputs.z.n in [1, inputs.skipped.n]", []string{"skipped"}, []string{"skipped"}, 19, "did not complete"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := evaluate(t, test.source, o)
			if got.Outcome != cond.Error || got.Err == nil {
				t.Fatalf("%s is %s: %s", test.source, got.Outcome, got.Reason)
			}
			if got.Err.Line != 1 || got.Err.Column != test.column || !strings.Contains(got.Err.Message, test.message) {
				t.Errorf("error %v, want column %d: %q", got.Err, test.column, test.message)
			}
			if !strings.Contains(got.Reason, "can't be evaluated: ") {
				t.Errorf("reason %q", got.Reason)
			}
			if diff := cmp.Diff(test.blames, got.Blames); diff != "" {
				t.Errorf("blames (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.incomplete, got.Incomplete); diff != "" {
				t.Errorf("incomplete (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnInputThatCannotBeEvaluatedDoesNotSatisfyAnAggregate(t *testing.T) {
	t.Parallel()
	o := outputs{
		"base": `{"x": 2}`, "t-1": `{"x": 1, "ok": true}`, "t-2": `{"x": "n/a", "ok": 1}`, "t-3": `{"ok": 0}`, "t-4": "", "t-5": absent,
		"t-6": "[", "t-7": `{"x": null}`,
	}
	for source, want := range map[string]cond.Outcome{
		`all(inputs["t-1"].x < inputs["t-[1]"].x or true)`:        cond.True,
		`count(inputs["t-*"].x < 5) == 1`:                         cond.True,
		`all(inputs["t-[1-3]"].ok or true)`:                       cond.True,
		`all(inputs["t-*"].ok or true)`:                           cond.False,
		`any(inputs["t-*"].x < 5)`:                                cond.True,
		`any(inputs["t-[2-7]"].x < 5)`:                            cond.False,
		`not any(inputs["t-[2-7]"].x < 5)`:                        cond.True,
		`almost_all(inputs["t-*"].x < 5, 6)`:                      cond.True,
		`almost_all(inputs["t-*"].x < 5, 5)`:                      cond.False,
		`almost_all(inputs["t-*"].x < 5, 99999999999999999999)`:   cond.True,
		`count(inputs["t-*"].x < inputs.base.x) == 1`:             cond.True,
		`count(inputs["t-*"] == None) == 2`:                       cond.True,
		`count(not inputs["t-*"].ok) == 1`:                        cond.True,
		`count(inputs["t-*"].ok) == 2`:                            cond.True,
		`all(inputs["t-*"].x < inputs["t-*"].x or inputs.base.x)`: cond.False,
		`0 < count(inputs["t-*"].ok) < 3`:                         cond.True,
		`count(inputs["t-*"].ok) in [1, 2]`:                       cond.True,
		`count(inputs["t-*"].ok and inputs["t-*"].x == 1)`:        cond.True,
		`count(inputs["t-*"].x == 3)`:                             cond.False,
	} {
		if got := evaluate(t, source, o); got.Outcome != want {
			t.Errorf("%s is %s, want %s: %s", source, got.Outcome, want, got.Reason)
		}
	}
}

func TestTolerantCompilingGivesPythonsAnswerOverNothing(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]cond.Outcome{
		`all(inputs["x-*"].ok)`:           cond.True,
		`any(inputs["x-*"].ok)`:           cond.False,
		`count(inputs["x-*"].ok) == 0`:    cond.True,
		`almost_all(inputs["x-*"].ok, 0)`: cond.True,
	} {
		if _, faults := cond.Compile(source, []string{"a"}); len(faults) != 1 {
			t.Errorf("%s: faults %v, want that of the pattern", source, faults)
		}
		program, faults := cond.CompileTolerant(source, []string{"a"})
		if len(faults) > 0 {
			t.Fatalf("%s: %v", source, faults)
		}
		if got := program.Evaluate(nil).Outcome; got != want {
			t.Errorf("%s is %s, want %s", source, got, want)
		}
	}
	if _, faults := cond.CompileTolerant("inputs.b", []string{"a"}); len(faults) == 0 {
		t.Error("a reference to no parent is tolerated")
	}
}

func TestProgramsCanBeSharedByGoroutines(t *testing.T) {
	t.Parallel()
	o := outputs{"t-1": `{"x": 1}`, "t-2": `{"x": 3}`}
	parents, inputs := o.inputs()
	program, faults := cond.Compile(`count(inputs["t-*"].x < 2) == 1 and inputs["t-1"].x in (1, 2)`, parents)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	for range 8 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			for range 200 {
				if got := program.Evaluate(inputs); got.Outcome != cond.True {
					t.Fatal(got.Reason)
				}
			}
		})
	}
}
