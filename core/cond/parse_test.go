package cond_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jobq/core/cond"
)

// refusal is what is expected of a fault: its place and parts of its texts.
type refusal struct {
	place         cond.Position
	message, hint string
}

func at(column int, message, hint string) refusal {
	return refusal{cond.Position{Line: 1, Column: column}, message, hint}
}

func expectFaults(t *testing.T, faults []cond.Fault, want ...refusal) {
	t.Helper()
	if len(faults) != len(want) {
		t.Fatalf("got %d faults, want %d: %v", len(faults), len(want), faults)
	}
	for i, fault := range faults {
		if fault.Position != want[i].place || !strings.Contains(fault.Message, want[i].message) || !strings.Contains(fault.Hint, want[i].hint) {
			t.Errorf("fault %d is %v, want %v: %q with the hint %q", i, fault, want[i].place, want[i].message, want[i].hint)
		}
	}
}

func TestWhatIsNoConditionIsRefusedWithPlaceAndHint(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		source string
		want   []refusal
	}{
		"empty":                         {"", []refusal{at(1, "is empty", "leave the condition out")}},
		"only a comment":                {" # later", []refusal{at(9, "is empty", "")}},
		"cut short":                     {"inputs.a.x <", []refusal{at(13, "a value is expected", "")}},
		"two expressions":               {"true false", []refusal{at(6, `found "false"`, "")}},
		"two statements":                {"true; true", []refusal{at(5, `found ";"`, "one expression")}},
		"bracket closed twice":          {"(true))", []refusal{at(7, `found ")"`, "closes no bracket")}},
		"bracket left open":             {"(true", []refusal{at(6, `")" is expected`, "")}},
		"several lines":                 {"inputs.a.x\nand true", []refusal{{cond.Position{Line: 2, Column: 1}, "new line", "parentheses"}}},
		"character of no token":         {"inputs.a.x < 1 ¤ 2", []refusal{at(16, "unexpected character", "")}},
		"typographic quotation marks":   {"inputs.a.x == “ok”", []refusal{at(15, "unexpected character", `"`)}},
		"hard blank":                    {"inputs.a.x ==\u00a01", []refusal{at(14, "unexpected character", "ordinary blank")}},
		"NUL":                           {"true\x00", []refusal{at(5, "NUL", "")}},
		"not UTF-8":                     {"\"\xff\"", []refusal{at(1, "UTF-8", "")}},
		"C's and":                       {"true && true", []refusal{at(6, `"&&"`, "write and")}},
		"C's not":                       {"!true", []refusal{at(1, `"!"`, "write not")}},
		"keyword in capitals":           {"true AND true", []refusal{at(6, `"AND"`, "write and")}},
		"constant in capitals":          {"inputs.a.ok == TRUE", []refusal{at(16, `unknown name "TRUE"`, "write True")}},
		"single equals sign":            {"inputs.a.x = 1", []refusal{at(12, `"="`, "==")}},
		"triple equals sign":            {"inputs.a.x === 1", []refusal{at(12, `"==="`, "==")}},
		"is":                            {"inputs.a.x is not None", []refusal{at(12, "`is`", "!= None")}},
		"walrus":                        {"(true := 1)", []refusal{at(7, "assignments", "==")}},
		"C's conditional":               {"true ? 1 : 2", []refusal{at(6, `"?"`, "conditional")}},
		"Python's conditional":          {"1 if true else 2", []refusal{at(3, "conditional expressions", "and")}},
		"lambda":                        {"lambda: true", []refusal{at(1, `"lambda"`, "one expression")}},
		"import":                        {"import os", []refusal{at(1, `"import"`, "one expression")}},
		"comprehension":                 {"1 in [1 for i in inputs.a.l]", []refusal{at(9, "comprehensions", "any(")}},
		"object":                        {"1 in {1: 2}", []refusal{at(6, `"{"`, "braces")}},
		"template of another tool":      {"${{ inputs.a.x }}", []refusal{at(1, `"${{"`, "${{ }}")}},
		"addition":                      {"inputs.a.x + 1 > 2", []refusal{at(12, `arithmetic is not part of conditions: "+"`, "task compute")}},
		"bitwise and":                   {"(1 < 2) & (2 < 3)", []refusal{at(9, `"&"`, "write and")}},
		"power tower":                   {"9 ** 9 ** 9 > 1", []refusal{at(3, `"**"`, "task compute")}},
		"sign before a reference":       {"-inputs.a.x < 1", []refusal{at(1, `"-"`, "before a number")}},
		"two signs":                     {"--1 < 1", []refusal{at(1, `"-"`, "before a number")}},
		"not as an operand":             {"1 == not true", []refusal{at(6, `found "not"`, "parentheses")}},
		"not where in is meant":         {"1 not inputs.a.l", []refusal{at(3, "`not`", "not in")}},
		"f-string":                      {`f"{inputs.a.x}" == "1"`, []refusal{at(1, "f-strings", "reference itself")}},
		"bytes":                         {`inputs.a.s == b"x"`, []refusal{at(15, "bytes", "remove the b")}},
		"raw bytes":                     {`inputs.a.s == rb"x"`, []refusal{at(15, "bytes", "")}},
		"unknown prefix":                {`inputs.a.s == x"x"`, []refusal{at(15, `"x"`, "operator")}},
		"triple quotes":                 {`inputs.a.s == """x"""`, []refusal{at(15, "triple quotes", "")}},
		"text left open":                {`inputs.a.s == "ok`, []refusal{at(15, "not closed", `closing "`)}},
		"text over two lines":           {"inputs.a.s == 'o\nk'", []refusal{at(15, "not closed", "closing '")}},
		"texts side by side":            {`inputs['it''s'].x == 1`, []refusal{at(12, "side by side", `\'`)}},
		"unknown escape":                {`inputs.a.s == "\d"`, []refusal{at(16, `unknown escape`, `\\`)}},
		"short escape":                  {`inputs.a.s == "\u12"`, []refusal{at(16, "4 hexadecimal digits", "")}},
		"character past the last":       {`inputs.a.s == "\U00110000"`, []refusal{at(16, "no character", "0010FFFF")}},
		"character by name":             {`inputs.a.s == "\N{DASH}"`, []refusal{at(16, "names of characters", "itself")}},
		"complex number":                {"inputs.a.x == 1j", []refusal{at(15, `"1j"`, "complex")}},
		"zeros in front":                {"inputs.a.x == 007", []refusal{at(15, `"007"`, "zeros")}},
		"number with two points":        {"inputs.a.x == 1.2.3", []refusal{at(15, `"1.2.3"`, "")}},
		"number and word in one":        {"inputs.a.x < 0.1and true", []refusal{at(14, `"0.1and"`, "blank before and")}},
		"unknown name":                  {"mae < 0.1", []refusal{at(1, `unknown name "mae"`, "inputs.TASK.FIELD")}},
		"unknown function":              {`open("/etc/passwd")`, []refusal{at(1, `unknown function "open"`, "all, any, count")}},
		"call behind an unknown call":   {`__import__("os").system("id")`, []refusal{at(1, `unknown function "__import__"`, "")}},
		"method":                        {`inputs.a.s.startswith("x")`, []refusal{at(22, "call", "all, any, count")}},
		"inputs alone":                  {"inputs == 1", []refusal{at(1, "inputs alone", "inputs.TASK")}},
		"inputs by number":              {"inputs[0] == 1", []refusal{at(1, "not numbers", `inputs["TASK"]`)}},
		"computed key":                  {"inputs[inputs.a.x] == 1", []refusal{at(7, "brackets hold", `["NAME"]`)}},
		"computed index":                {"inputs.a[inputs.a.x] == 1", []refusal{at(9, "brackets hold", `["NAME"]`)}},
		"index that is no whole number": {"inputs.a[1.0] == 1", []refusal{at(9, "brackets hold", "")}},
		"slice":                         {"inputs.a.l[0:1] == 1", []refusal{at(11, "slices", "")}},
		"star behind a name":            {"inputs.a.*", []refusal{at(10, "directly behind inputs", "inputs.*")}},
		"dunder":                        {"inputs.__class__", []refusal{at(1, "two underscores", `inputs["__class__"]`)}},
		"dunder below a name":           {"inputs.a.__class__.x", []refusal{at(1, "two underscores", `inputs.a["__class__"].x`)}},
		"field of a literal":            {`"".__class__`, []refusal{at(3, "only a reference", "")}},
		"field of a group":              {"(inputs.a).x", []refusal{at(11, "only a reference", "parentheses")}},
		"keyword as a name":             {"inputs.class.x == 1", []refusal{at(1, `"class"`, `inputs["class"].x`)}},
		"keyword as a field":            {"inputs.a.from == 1", []refusal{at(1, `"from"`, `inputs.a["from"]`)}},
		"name with a hyphen":            {"inputs.train-gnn.mae < 0.1", []refusal{at(1, `"-"`, `inputs["train-gnn"].mae`)}},
		"name with hyphen and digit":    {"inputs.train-2.mae < 0.1", []refusal{at(1, `"-"`, `inputs["train-2"].mae`)}},
		"name with a slash":             {"inputs.prep/featurize.ok", []refusal{at(1, `"/"`, `inputs["prep/featurize"].ok`)}},
		"field with a hyphen":           {"inputs.a.val-mae < 0.1", []refusal{at(1, `"-"`, `inputs.a["val-mae"]`)}},
		"name that starts with a digit": {"inputs.2024-q1.x == 1", []refusal{at(1, `"-"`, `inputs["2024-q1"].x`)}},
		"field that is a number":        {"inputs.a.0 == 1", []refusal{at(1, "digit", `inputs.a["0"]`)}},
		"name outside ASCII":            {"inputs.データ.x == 1", []refusal{at(1, "outside ASCII", `inputs["データ"].x`)}},
		"list that is compared":         {"inputs.a.l == [1]", []refusal{at(15, "lists and tuples", "in [")}},
		"tuple as a condition":          {"(true, false)", []refusal{at(1, "lists and tuples", "")}},
		"condition in quotation marks":  {`"inputs.a.x < 1"`, []refusal{at(1, "whole condition is a text", "outer quotation marks")}},
		"aggregate as a value":          {"all == 1", []refusal{at(1, `"all"`, "call it")}},
		"aggregate of nothing":          {"any()", []refusal{at(4, "needs a condition", "")}},
		"aggregate of two":              {"any(inputs.*.x, 1)", []refusal{at(17, "takes one condition", "")}},
		"aggregate in an aggregate":     {"all(any(inputs.*.ok))", []refusal{at(5, "inside another", "")}},
		"almost_all without a limit":    {"almost_all(inputs.*.ok)", []refusal{at(1, "needs a limit", "almost_all(CONDITION, N)")}},
		"limit that is a text":          {`almost_all(inputs.*.ok, "2")`, []refusal{at(25, "whole number", "")}},
		"limit that is a fraction":      {"almost_all(inputs.*.ok, 1.5)", []refusal{at(25, "whole number", "")}},
		"limit below zero":              {"almost_all(inputs.*.ok, -1)", []refusal{at(25, "whole number", "")}},
		"limit that is computed":        {"almost_all(inputs.*.ok, inputs.a.n)", []refusal{at(25, "whole number", "")}},
		"too long":                      {strings.Repeat(" ", 4093) + "true", []refusal{at(1, "4097 bytes", "")}},
		"too many parentheses":          {strings.Repeat("(", 101) + "1" + strings.Repeat(")", 101), []refusal{at(101, "100 levels", "")}},
		"too many negations":            {strings.Repeat("not ", 101) + "1", []refusal{at(401, "100 levels", "")}},
		"place in characters": {
			`"é漢😀" == nope`,
			[]refusal{at(10, `unknown name "nope"`, "")},
		},
		"place on a later line": {
			"(true and\r\n  inputs.a.x is 1)",
			[]refusal{{cond.Position{Line: 2, Column: 14}, "`is`", ""}},
		},
		"every fault that leaves the rest readable": {
			`inputs.train-a.x < 1 and foo(inputs.b) or inputs.c.d + 1 > 2 and "\q" == b""`,
			[]refusal{
				at(1, `"-"`, `inputs["train-a"].x`), at(26, "unknown function", ""), at(54, "arithmetic", ""),
				at(67, "unknown escape", ""), at(74, "bytes", ""),
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expression, faults := cond.Parse(test.source)
			if expression != nil {
				t.Error("an expression is returned beside the faults")
			}
			expectFaults(t, faults, test.want...)
		})
	}
}

func TestWhatPythonReadsIsRead(t *testing.T) {
	t.Parallel()
	parents := []string{"a", "train-1"}
	for name, source := range map[string]string{
		"blanks around dots":          "inputs . a . x == 1",
		"leading and trailing lines":  "\n\n  inputs.a.x == 1\n \n# done\n",
		"comment between lines":       "(inputs.a.x == 1 # first\n  and true)",
		"trailing commas":             "all(inputs.*.x,) and 1 in [1,2,] and almost_all(inputs.*.x, 1,)",
		"words that Python allows":    "inputs.a.true == inputs.a.match and inputs.a._ == inputs.a.all",
		"hundred levels":              strings.Repeat("(", 100) + "inputs.a" + strings.Repeat(")", 100),
		"the longest source":          strings.Repeat(" ", 4092) + "true",
		"long chain of or":            "true" + strings.Repeat(" or true", 511),
		"long chain of comparisons":   "1" + strings.Repeat("<1", 2047),
		"long path":                   "inputs.a" + strings.Repeat(".b", 2044),
		"tuple and list behind in":    "1 in (1, (2, 3), [4]) or 1 not in ([]) or 1 in ()",
		"dunder in brackets":          `inputs.a["__class__"] == 1`,
		"aggregate beside aggregate":  "count(inputs.*.x) == 1 and all(inputs.*.y)",
		"aggregate in a list":         "2 in [count(inputs.*.x), 3]",
		"text that has inputs inside": `inputs.a.s == "inputs.*"`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program, faults := cond.Compile(source, parents)
			if len(faults) > 0 {
				t.Fatalf("refused: %v", faults)
			}
			program.Evaluate(nil)
		})
	}
}

func TestConditionsAreHeldAgainstTheParents(t *testing.T) {
	t.Parallel()
	parents := []string{"train", "train-a", "train-b", "a.b", "x[1]", "*"}
	tests := map[string]struct {
		source string
		want   []refusal
	}{
		"no parent of this name":       {"inputs.other.x == 1", []refusal{at(1, `"other" is not a parent`, "depends_on")}},
		"names are case sensitive":     {"inputs.Train.x == 1", []refusal{at(1, `"Train"`, "inputs.train.x")}},
		"a letter too much":            {`inputs["train-aa"].x == 1`, []refusal{at(1, `"train-aa"`, `inputs["train-a"].x`)}},
		"dotted name without brackets": {"inputs.a.b.x == 1", []refusal{at(1, `"a"`, `inputs["a.b"].x`)}},
		"empty name":                   {`inputs[""] == 1`, []refusal{at(1, `"" is not a parent`, "")}},
		"pattern outside an aggregate": {`inputs["train-*"].x == 1`, []refusal{at(1, "outside an aggregate", `all(inputs["train-*"].x)`)}},
		"star outside an aggregate":    {"inputs.*.x == 1", []refusal{at(1, "outside an aggregate", "all(inputs.*.x)")}},
		"pattern without a match":      {`any(inputs["eval-*"].x)`, []refusal{at(5, "matches no parent", "train, train-a")}},
		"aggregate without a pattern":  {"all(inputs.train.ok)", []refusal{at(1, "needs a pattern", "inputs.*")}},
		"aggregate over a constant":    {"count(true) == 1", []refusal{at(1, "needs a pattern", "")}},
		"aggregate with two patterns":  {`all(inputs["train-*"].x < inputs["?.b"].x)`, []refusal{at(27, "one pattern", "combine")}},
		"star is not the name *":       {`all(inputs.*.x == inputs["*"].x)`, nil},
		"name in the form of a pattern": {
			`inputs["x[1]"].x == 1 and inputs["*"].x == 1`, nil,
		},
		"such a name is no pattern": {`all(inputs["x[1]"].x)`, []refusal{at(1, "needs a pattern", "")}},
		"one pattern, two spellings": {
			`all(inputs["train-*"].x < inputs['train-*'].y)`, nil,
		},
		"all faults at once": {
			`inputs.other.x and any(inputs["nope-*"].x) and inputs["train-*"].x`,
			[]refusal{at(1, `"other"`, ""), at(24, "matches no parent", ""), at(48, "outside", "")},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expression, faults := cond.Parse(test.source)
			if len(faults) > 0 {
				t.Fatalf("refused by the parser: %v", faults)
			}
			expectFaults(t, expression.Check(parents), test.want...)
		})
	}
}

func TestReferencesAreTheParentsThatAreNeeded(t *testing.T) {
	t.Parallel()
	parents := []string{"z", "train-b", "prep", "train-a", "other", "eval"}
	for source, want := range map[string][]string{
		"true":                          nil,
		"inputs.prep.x and inputs.z.y":  {"z", "prep"},
		"inputs.z.x and inputs.z.y":     {"z"},
		`all(inputs["train-*"].x)`:      {"train-b", "train-a"},
		`all(inputs.*.x > inputs.z.x)`:  parents,
		"true or inputs.eval.x":         {"eval"},
		`any(inputs["[tp]*"].ok)`:       {"train-b", "prep", "train-a"},
		`inputs["train-a"].x in (1, 2)`: {"train-a"},
	} {
		program, faults := cond.Compile(source, parents)
		if len(faults) > 0 {
			t.Fatalf("%s: %v", source, faults)
		}
		if diff := cmp.Diff(want, program.References()); diff != "" {
			t.Errorf("%s needs (-want +got):\n%s", source, diff)
		}
	}
}

func TestFaultSaysPlaceMessageAndHint(t *testing.T) {
	t.Parallel()
	_, faults := cond.Parse("inputs.train-gnn.mae < 0.1")
	var err error = faults[0]
	want := `line 1, column 1: a name with "-" can't follow a dot: Python reads it as arithmetic; write inputs["train-gnn"].mae`
	if err.Error() != want {
		t.Errorf("got  %s\nwant %s", err, want)
	}
}
