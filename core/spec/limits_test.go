package spec

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jobq/core/fault"
)

// hostile are texts that ask for much more than they are worth, and the part of
// the message that each is refused with; empty for those that are accepted.
var hostile = map[string]struct {
	file string
	text func() string
	want string
}{
	"alias bomb of nine levels":          {"f.yaml", aliasBomb, "the aliases of the file expand to more than they may"},
	"alias bomb of merge keys":           {"f.yaml", mergeBomb, "the aliases of the file expand to more than they may"},
	"20,000 brackets in YAML":            {"f.yaml", func() string { return inKwargs(nested(20_000)) }, "nested too deep"},
	"9,000 brackets in YAML":             {"f.yaml", func() string { return inKwargs(nested(9_000)) }, "nested deeper than 100 levels"},
	"20,000 open brackets in YAML":       {"f.yaml", func() string { return strings.Repeat("[", 20_000) }, "nested too deep"},
	"9,000 dashes":                       {"f.yaml", func() string { return inKwargs("\n      " + strings.Repeat("- ", 9_000)) }, "nested deeper than 100 levels"},
	"20,000 brackets in JSON":            {"f.json", func() string { return jsonKwargs(nested(20_000)) }, "nested too deep"},
	"9,000 brackets in JSON":             {"f.json", func() string { return jsonKwargs(nested(9_000)) }, "nested deeper than 100 levels"},
	"1 MiB of brackets":                  {"f.yaml", func() string { return fill("[") }, "at most 100000 are read at once"},
	"1 MiB of list entries":              {"f.yaml", func() string { return inKwargs("[" + fill("a,") + "]") }, "at most 100000 are read at once"},
	"1 MiB of map entries":               {"f.yaml", func() string { return "{" + fill("a,") + "}" }, "at most 100000 are read at once"},
	"1 MiB of list entries in JSON":      {"f.json", func() string { return jsonKwargs("[" + fill("1,") + "1]") }, "more than 100000 values stand in one task or key"},
	"1 MiB of keys in JSON":              {"f.json", func() string { return `{"name":"w"` + fill(`,"a":1`) + `}` }, "more than 100000 values"},
	"1 MiB of empty tasks":               {"f.yaml", func() string { return "name: w\ntasks:\n" + fill("- {}\n") }, "more than 25000 tasks"},
	"1 MiB of empty tasks in JSON":       {"f.json", func() string { return `{"name":"w","tasks":[` + fill("{},") + `{}]}` }, "more than 25000 tasks"},
	"1 MiB of faults in one line":        {"f.json", func() string { return `{"name":"w","tasks":[` + fill("1,") + `1]}` }, "a task is a number, not a map"},
	"1 MiB of comments":                  {"f.yaml", func() string { return fill("#\n") }, "the file is empty"},
	"1 MiB of empty lines in a text":     {"f.yaml", func() string { return inKwargs(`"` + fill("\n") + `"`) }, ""},
	"one line of 1 MiB":                  {"f.yaml", func() string { return inKwargs(fill("x")) }, ""},
	"50,000 dependencies on nothing":     {"f.yaml", unknownDependencies, "there is no task"},
	"a cycle of 20,000 tasks":            {"f.yaml", func() string { return string(chainText(20_000, true)) }, "20000 tasks wait for each other"},
	"a number with an exponent of 10^18": {"f.yaml", func() string { return task("  num_retries: 1.0e999999999999999999\n") }, "num_retries is"},
}

func aliasBomb() string {
	var b strings.Builder
	b.WriteString(task("    a0: &a0 [x,x,x,x,x,x,x,x,x]\n"))
	for i := 1; i <= 9; i++ {
		fmt.Fprintf(&b, "    a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 9), ","))
	}
	return b.String()
}

func mergeBomb() string {
	var b strings.Builder
	b.WriteString("name: w\ntasks:\n- name: a\n  kwargs: &m\n    cmd: ls\n")
	for i := range 10_000 {
		fmt.Fprintf(&b, "    k%d: 1\n", i)
	}
	return b.String() + "- name: b\n  kwargs:\n    <<: [" + strings.Repeat("*m,", 10_000) + "]\n"
}

func unknownDependencies() string {
	var b strings.Builder
	b.WriteString(task("  depends_on:\n"))
	for i := range 50_000 {
		fmt.Fprintf(&b, "  - d%d\n", i)
	}
	return b.String()
}

// task is a workflow of one task, whose text extra goes on.
func task(extra string) string {
	return "name: w\ndefault_queue: cpu\ntasks:\n- name: a\n  kwargs:\n    cmd: ls\n" + extra
}

func inKwargs(value string) string { return task("    x: " + value + "\n") }

func jsonKwargs(value string) string {
	return `{"name":"w","tasks":[{"name":"a","kwargs":{"cmd":"ls","x":` + value + `}}]}`
}

func nested(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
func fill(part string) string {
	return strings.Repeat(part, (1<<20)/len(part))
}

// chainText is a workflow of n tasks in a row, or in a ring.
func chainText(n int, ring bool) []byte {
	var b bytes.Buffer
	b.WriteString("name: chain\ndefault_queue: cpu\ntasks:\n- name: t0\n  kwargs: {cmd: \"true\"}\n")
	if ring {
		fmt.Fprintf(&b, "  depends_on: [t%d]\n", n-1)
	}
	for i := 1; i < n; i++ {
		fmt.Fprintf(&b, "- name: t%d\n  kwargs: {cmd: \"true\"}\n  depends_on: [t%d]\n", i, i-1)
	}
	return b.Bytes()
}

func chainJSON(n int) []byte {
	var b bytes.Buffer
	b.WriteString(`{"name": "chain", "default_queue": "cpu", "tasks": [{"name": "t0", "kwargs": {"cmd": "true"}}`)
	for i := 1; i < n; i++ {
		fmt.Fprintf(&b, `, {"name": "t%d", "kwargs": {"cmd": "true"}, "depends_on": ["t%d"]}`, i, i-1)
	}
	b.WriteString("]}")
	return b.Bytes()
}

func TestHostileTexts(t *testing.T) {
	t.Parallel()
	for name, tc := range hostile {
		t.Run(name, func(t *testing.T) {
			// Limits and texts are a tenth of what they are outside of tests.
			d, ds := Parse(tc.file, []byte(tc.text()), &Options{Limits: Limits{MaxValues: 100_000, MaxTasks: 25_000}})
			if tc.want == "" {
				if d == nil {
					t.Fatalf("refused: %v", ds)
				}
				return
			}
			if d != nil || len(ds) == 0 || len(ds) > maxDiagnostics+1 || !strings.Contains(ds[0].Message+ds[len(ds)-1].Message, tc.want) {
				t.Fatalf("%d diagnostics, want %q; first: %.300v", len(ds), tc.want, ds[:min(len(ds), 1)])
			}
		})
	}
}

func TestReadText(t *testing.T) {
	t.Parallel()
	small := Limits{MaxBytes: 10}
	if text, err := ReadText("f", strings.NewReader("0123456789"), small); err != nil || len(text) != 10 {
		t.Errorf("a text of the limit: %q, %v", text, err)
	}
	if _, err := ReadText("f", strings.NewReader("0123456789a"), small); !fault.Is(err, fault.TooLarge) {
		t.Errorf("a text above the limit: %v, want too_large", err)
	}
	path := filepath.Join(t.TempDir(), "big.yaml")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 200<<20); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	_, err = ReadText("big.yaml", f, Limits{})
	if !fault.Is(err, fault.TooLarge) || !strings.Contains(err.Error(), "is 209715200 bytes long; at most 67108864") {
		t.Errorf("a file of 200 MiB: %v", err)
	}
	if at, _ := f.Seek(0, 1); at != 0 {
		t.Errorf("%d bytes of the large file were read", at)
	}
}

func TestParseRefusesTextAboveTheLimit(t *testing.T) {
	t.Parallel()
	d, ds := Parse("f.yaml", []byte(task("")), &Options{Limits: Limits{MaxBytes: 20}})
	if d != nil || len(ds) != 1 || !strings.Contains(ds[0].Message, "at most 20 are allowed") {
		t.Errorf("Parse: %v", ds)
	}
}

func TestLimitOfDependencies(t *testing.T) {
	t.Parallel()
	d, ds := Parse("f.yaml", chainText(100, false), &Options{Limits: Limits{MaxDependencies: 50}})
	if d != nil || !strings.Contains(ds[0].Message, "more than 50 dependencies") {
		t.Errorf("Parse: %v", ds)
	}
}

func BenchmarkParseChain(b *testing.B) {
	for file, text := range map[string][]byte{"chain.yaml": chainText(100_000, false), "chain.json": chainJSON(100_000)} {
		b.Run(file, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if d, ds := Parse(file, text, nil); d == nil {
					b.Fatal(ds)
				}
			}
		})
	}
}
