package spec

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jobq/core/fault"
)

func TestFormat(t *testing.T) {
	t.Parallel()
	const asJSON = `{"name": "w", "default_queue": "cpu", "tasks": [{"name": "a\/b", "kwargs": {"cmd": "ls"}}]}`
	const onlyYAML = `{name: w, default_queue: cpu, tasks: [{name: a/b, kwargs: {cmd: ls}}]}`
	for name, tc := range map[string]struct {
		file, text string
		format     Format
		accepted   bool
	}{
		"the ending says JSON":                   {"f.json", asJSON, FormatAuto, true},
		"the ending says JSON in capitals":       {"F.JSON", asJSON, FormatAuto, true},
		"the ending says JSON and it is not":     {"f.json", onlyYAML, FormatAuto, false},
		"the ending says YAML, of which JSON is": {"f.yml", asJSON, FormatAuto, true},
		"no ending, JSON":                        {"-", "\n" + asJSON, FormatAuto, true},
		"no ending, YAML in braces":              {"-", onlyYAML, FormatAuto, true},
		"the caller says JSON":                   {"f.yaml", onlyYAML, FormatJSON, false},
		"the caller says YAML":                   {"f.json", onlyYAML, FormatYAML, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, ds := Parse(tc.file, []byte(tc.text), &Options{Format: tc.format})
			if (d != nil) != tc.accepted || d != nil && d.Tasks[0].Name != "a/b" {
				t.Errorf("accepted = %v, want %v: %v", d != nil, tc.accepted, ds)
			}
		})
	}
}

func TestMissingCommand(t *testing.T) {
	t.Parallel()
	const text = "name: w\ndefault_queue: cpu\ntasks:\n- {name: a, kwargs: {metric: mae}}\n- {name: b}\n"
	d, ds := Parse("f.yaml", []byte(text), nil)
	if d != nil || ds.Count(Error) != 2 || ds[0].Task != "a" || ds[1].Task != "b" || !strings.Contains(ds[0].Remedy, "kwargs: {cmd:") {
		t.Errorf("with the default: %v", ds)
	}
	if d, ds := Parse("f.yaml", []byte(text), &Options{AllowMissingCommand: true}); d == nil || len(ds) != 0 {
		t.Errorf("with AllowMissingCommand: %v", ds)
	}
}

func TestConditionNeedsAChecker(t *testing.T) {
	t.Parallel()
	text := []byte(task("  condition: \"True\"\n"))
	if d, ds := Parse("f.yaml", text, nil); d != nil || !strings.Contains(ds[0].Message, "conditions are not supported here") {
		t.Errorf("without a checker: %v", ds)
	}
	var source string
	var parents []string
	d, ds := Parse("f.yaml", []byte(task("  condition: \"True\"\n  depends_on: [b]\n- {name: b, kwargs: {cmd: ls}}\n")), &Options{
		CheckCondition: func(s string, p []string) []ConditionFault {
			source, parents = s, p
			return nil
		},
	})
	if d == nil || source != "True" || !cmp.Equal(parents, []string{"b"}) {
		t.Errorf("the checker got %q, %q: %v", source, parents, ds)
	}
}

func TestDiagnosticsAsJSON(t *testing.T) {
	t.Parallel()
	_, ds := Parse("f.yaml", []byte("name: w\ntasks:\n- {name: a, kwargs: {cmd: ls}, queue: A-b}\n"), nil)
	b, err := json.MarshalIndent(ds, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	want := `[
 {
  "severity": "error",
  "file": "f.yaml",
  "line": 3,
  "column": 39,
  "task": "a",
  "path": "tasks[0].queue",
  "message": "the queue name \"A-b\" contains \"A\", which is not allowed",
  "remedy": "use 3 to 56 lower-case letters, digits and single hyphens, starting and ending with a letter or digit",
  "source": "- {name: a, kwargs: {cmd: ls}, queue: A-b}"
 }
]`
	if diff := cmp.Diff(want, string(b)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestErr(t *testing.T) {
	t.Parallel()
	_, ds := Parse("f.yaml", []byte("name: w\ntasks:\n- {name: a, queue: A-b}\n"), nil)
	err := ds.Err()
	if !fault.Is(err, fault.Invalid) || err.Error() != `f.yaml:3:3: task "a": the task has no command (and 1 more)` || !strings.HasPrefix(fault.RemedyOf(err), "add cmd") {
		t.Errorf("Err = %v; %s", err, fault.RemedyOf(err))
	}
	if _, ds := Parse("f.yaml", []byte("name: w\ntasks:\n- {name: a, kwargs: {cmd: ls}}\n"), nil); ds.Err() != nil || len(ds) != 1 || ds[0].Severity != Note {
		t.Errorf("a note counts as an error: %v", ds)
	}
}

// What is shown of a file can do nothing to a terminal.
func TestRenderIsHarmless(t *testing.T) {
	t.Parallel()
	_, ds := Parse("f.json", []byte("{\"name\": \"w\", \"\u009b31m\": 1, \"\\u001b[2J\": 2, \"tasks\": []}"), nil)
	var b bytes.Buffer
	if err := ds.Render(&b); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(b.String(), "\x1b\u009b") || !strings.Contains(b.String(), `"\x1b[2J"`) {
		t.Errorf("Render = %q", b.String())
	}
}
