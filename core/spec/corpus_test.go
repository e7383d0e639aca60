package spec

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jobq/core/dag"
)

// markConditions is a checker that finds fault with the word BAD.
func markConditions(source string, _ []string) []ConditionFault {
	before, _, found := strings.Cut(source, "BAD")
	if !found {
		return nil
	}
	line := strings.Count(before, "\n")
	column := len(before) - strings.LastIndex(before, "\n")
	return []ConditionFault{{Line: line + 1, Column: column, Message: "BAD is bad", Hint: "do not write BAD"}}
}

func corpusFiles(t testing.TB, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", dir, "*.[yj]*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files in %s: %v", dir, err)
	}
	var inputs []string
	for _, f := range files {
		if !strings.HasSuffix(f, ".want") {
			inputs = append(inputs, f)
		}
	}
	return inputs
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// Every wrong file is refused with the diagnostics beside it.
func TestWrongFiles(t *testing.T) {
	t.Parallel()
	files := corpusFiles(t, "bad")
	if len(files) < 60 {
		t.Errorf("%d wrong files, want at least 60", len(files))
	}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			d, ds := Parse(filepath.Base(path), text, &Options{CheckCondition: markConditions})
			if d != nil || !ds.HasErrors() {
				t.Fatalf("the file was accepted: %v", ds)
			}
			var b bytes.Buffer
			if err := ds.Render(&b); err != nil {
				t.Fatal(err)
			}
			for _, word := range []string{"yaml:", "json:", "dag.", "spec.", "struct", "interface", "goroutine", "unmarshal"} {
				if slices.ContainsFunc(ds, func(d Diagnostic) bool { return strings.Contains(d.Message+d.Remedy, word) }) {
					t.Errorf("a message has the word %q", word)
				}
			}
			golden(t, path+".want", b.String())
		})
	}
}

// Every right file gives the definition beside it.
func TestRightFiles(t *testing.T) {
	t.Parallel()
	for _, path := range corpusFiles(t, "ok") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			d, ds := Parse(filepath.Base(path), text, &Options{CheckCondition: markConditions})
			if d == nil {
				t.Fatalf("the file was refused: %v", ds)
			}
			var b bytes.Buffer
			if err := ds.Render(&b); err != nil {
				t.Fatal(err)
			}
			writeDefinition(&b, d)
			golden(t, path+".want", b.String())
		})
	}
}

// writeDefinition writes d so that a reviewer sees every value, letter by letter.
func writeDefinition(b *bytes.Buffer, d *dag.Definition) {
	fmt.Fprintf(b, "name %q default_queue %q default_timeout %v max_parallelism %d result_policy %v\n",
		d.Name, d.DefaultQueue, d.DefaultTimeout, d.MaxParallelism, d.ResultPolicy)
	for i := range d.Tasks {
		t := &d.Tasks[i]
		fmt.Fprintf(b, "task %q depends_on %q queue %q dep_policy %v num_retries %d condition %q timeout %v\n",
			t.Name, t.DependsOn, t.Queue, t.DepPolicy, t.NumRetries, t.Condition, t.Timeout)
		for _, k := range t.Kwargs {
			fmt.Fprintf(b, "  %q = %s\n", k.Key, k.Value)
		}
	}
}
