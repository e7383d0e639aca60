package spec

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"

	"jobq/core/dag"
)

// casesDir has workflows of other people; see its CASES.md.
const casesDir = "../../../shared/cases/dags"

type caseFile struct {
	File        string
	Tasks       int
	Edges       int
	LevelWidths []int `json:"level_widths"`
	OnCycle     int   `json:"on_or_behind_cycle"`
}

func caseFiles(t *testing.T) []caseFile {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(casesDir, "manifest.json"))
	if os.IsNotExist(err) {
		t.Skipf("the shared cases are not at %s", casesDir)
	}
	if err != nil {
		t.Fatal(err)
	}
	var files []caseFile
	if err := json.Unmarshal(b, &files); err != nil {
		t.Fatal(err)
	}
	return files
}

// tooBig reports whether c would take too long here: the race detector has
// nothing to find in code without goroutines, and makes it ten times slower.
func tooBig(c caseFile) bool { return (raceEnabled || testing.Short()) && c.Tasks > 5000 }

func caseText(t *testing.T, file string) []byte {
	t.Helper()
	path := filepath.Join(casesDir, file)
	if strings.HasSuffix(file, ".gz") {
		return mustUnpack(path)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// mustUnpack is used outside of tests too, so it panics.
func mustUnpack(path string) []byte {
	f, err := os.Open(path)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		panic(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		panic(err)
	}
	return b
}

// acceptConditions is for tests that are not about conditions.
func acceptConditions(string, []string) []ConditionFault { return nil }

func TestSharedCases(t *testing.T) {
	t.Parallel()
	for _, c := range caseFiles(t) {
		if tooBig(c) {
			continue
		}
		t.Run(c.File, func(t *testing.T) {
			t.Parallel()
			text := caseText(t, c.File)
			d, ds := Parse(strings.TrimSuffix(c.File, ".gz"), text, &Options{CheckCondition: acceptConditions})
			if c.OnCycle > 0 {
				if d != nil || len(ds) != 1 || !strings.Contains(ds[0].Message, "tasks wait for each other: ") {
					t.Fatalf("want one diagnostic that names a cycle, got %v", ds)
				}
				return
			}
			if d == nil || len(ds) != 0 {
				t.Fatalf("Parse: %v", ds)
			}
			g, problems := dag.NewGraph(d)
			if problems != nil {
				t.Fatal(problems)
			}
			if diff := cmp.Diff(c.LevelWidths, g.LevelWidths()); diff != "" || g.Len() != c.Tasks || g.Edges() != c.Edges {
				t.Errorf("%d tasks, %d edges, level widths (-want +got):\n%s", g.Len(), g.Edges(), diff)
			}
			var want struct{ Tasks []struct{ Name string } }
			if err := yaml.Unmarshal(text, &want); err != nil {
				t.Fatal(err)
			}
			if !slices.EqualFunc(d.Tasks, want.Tasks, func(a dag.Task, b struct{ Name string }) bool { return a.Name == b.Name }) {
				t.Error("names differ from those of the file")
			}
		})
	}
}

// The two ways of reading YAML must mean the same.
func TestByTaskEqualsWhole(t *testing.T) {
	t.Parallel()
	for _, c := range caseFiles(t) {
		// Size brings nothing new here: the large ones only with JOBQ_TEST_LONG.
		large := c.Tasks > 2000 && os.Getenv("JOBQ_TEST_LONG") == ""
		if strings.HasSuffix(c.File, ".json") || c.OnCycle > 0 || large || tooBig(c) {
			continue
		}
		t.Run(c.File, func(t *testing.T) {
			t.Parallel()
			text := caseText(t, c.File)
			byTask, whole := newReader(c.File, text, nil), newReader(c.File, text, nil)
			byTask.partSize = 1 // every task alone
			if !byTask.readByTask() {
				t.Fatal("the file was not read task by task")
			}
			whole.readWhole()
			// DeepEqual first: a diff of 200,000 equal strings takes seconds.
			if !reflect.DeepEqual(whole.definition, byTask.definition) {
				t.Errorf("definitions (-whole +by task):\n%s", cmp.Diff(whole.definition, byTask.definition))
			}
			if !slices.EqualFunc(whole.tasks, byTask.tasks, func(a, b taskSource) bool {
				return a.item == b.item && a.name == b.name && slices.Equal(a.dependencies, b.dependencies) && slices.Equal(a.kwargs, b.kwargs)
			}) {
				t.Error("places differ")
			}
		})
	}
}
