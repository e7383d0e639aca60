package engine_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jobq/core/cond"
	"jobq/core/dag"
	"jobq/core/engine"
	"jobq/core/spec"
	"jobq/core/state"
)

// dagCases is the folder of public workflows, which is not part of the
// repository.
const dagCases = "../../../shared/cases/dags"

// dagCase is one line of manifest.json or of scenarios.jsonl.
type dagCase struct {
	File           string            `json:"file"`
	Why            string            `json:"why"`
	LevelWidths    []int             `json:"level_widths"`
	ExpectWorkflow string            `json:"expect_workflow"`
	ExpectCounts   map[string]int    `json:"expect_counts"`
	NotCompleted   map[string]string `json:"not_completed"`
	Fail           []string          `json:"fail"`
	SetPolicy      map[string]string `json:"set_policy"`
}

func readDagCase(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dagCases, name))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("NOT RUN: the public workflows are not there (%s)", dagCases)
	}
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(name, ".gz") {
		return b
	}
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	b, err = io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// readDefinition returns nil for a file that is refused.
func readDefinition(t *testing.T, name string) *dag.Definition {
	t.Helper()
	text := readDagCase(t, name)
	d, faults := spec.Parse(strings.TrimSuffix(name, ".gz"), text, &spec.Options{
		CheckCondition: func(string, []string) []spec.ConditionFault { return nil },
	})
	if d == nil {
		t.Logf("%s is refused: %v", name, faults.Err())
	}
	return d
}

// TestPublicWorkflowsInLockStep completes all that was sent, wave by wave, and
// compares waves, counts and result with what is known of every file.
func TestPublicWorkflowsInLockStep(t *testing.T) {
	t.Parallel()
	var files []dagCase
	if err := json.Unmarshal(readDagCase(t, "manifest.json"), &files); err != nil {
		t.Fatal(err)
	}
	for _, c := range files {
		t.Run(c.File, func(t *testing.T) {
			t.Parallel()
			d := readDefinition(t, c.File)
			if d == nil || strings.HasPrefix(c.ExpectWorkflow, "rejected") {
				if (d == nil) != strings.HasPrefix(c.ExpectWorkflow, "rejected") {
					t.Errorf("refused: %t, want %q", d == nil, c.ExpectWorkflow)
				}
				return
			}
			waves := lockStep(t, d, c)
			skips := slices.Contains(slices.Collect(maps.Values(c.NotCompleted)), "skipped")
			if !skips && c.ExpectWorkflow == "completed" && !slices.Equal(waves, c.LevelWidths) {
				t.Errorf("the waves are %v, want %v", waves, c.LevelWidths)
			}
		})
	}
}

// TestScenariosOfPublicWorkflows fails tasks and sets policies as each line of
// scenarios.jsonl says.
func TestScenariosOfPublicWorkflows(t *testing.T) {
	t.Parallel()
	byFile := map[string][]dagCase{}
	lines := bufio.NewScanner(bytes.NewReader(readDagCase(t, "scenarios.jsonl")))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var c dagCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		byFile[c.File] = append(byFile[c.File], c)
	}
	if len(byFile) == 0 {
		t.Fatal("scenarios.jsonl is empty")
	}
	for file, cases := range byFile {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			d := readDefinition(t, file)
			for _, c := range cases {
				changed := *d
				changed.Tasks = slices.Clone(d.Tasks)
				for i := range changed.Tasks {
					if policy, ok := c.SetPolicy[changed.Tasks[i].Name]; ok {
						changed.Tasks[i].DepPolicy = dag.DepPolicy{Kind: policyNamed(t, policy)}
					}
				}
				t.Run(c.Why, func(t *testing.T) { lockStep(t, &changed, c) })
			}
		})
	}
}

func policyNamed(t *testing.T, s string) dag.PolicyKind {
	t.Helper()
	for _, k := range []dag.PolicyKind{dag.All, dag.Any, dag.AllSettled} {
		if (dag.DepPolicy{Kind: k}).String() == s {
			return k
		}
	}
	t.Fatalf("no policy %q", s)
	return 0
}

// lockStep runs d to its end and returns how many tasks every wave had.
func lockStep(t *testing.T, d *dag.Definition, c dagCase) (waves []int) {
	t.Helper()
	failing := map[string]bool{}
	for _, name := range c.Fail {
		failing[name] = true
	}
	for name, how := range c.NotCompleted {
		failing[name] = failing[name] || how == "failed"
	}
	p, err := engine.NewPlan(d, func(i int) []string {
		program, faults := cond.Compile(d.Tasks[i].Condition, d.Tasks[i].DependsOn)
		if len(faults) > 0 {
			t.Fatalf("condition of %q: %v", d.Tasks[i].Name, faults)
		}
		return program.References()
	})
	if err != nil {
		t.Fatal(err)
	}
	r := newRun(t, p, engine.Begin(p, "w1", "hash", nil, epoch))
	wave := settleConditions(t, r, engine.Activated{}, c)
	for len(wave) > 0 {
		waves = append(waves, len(wave))
		var next []engine.Attempt
		for _, a := range wave {
			name := p.Name(a.Task)
			next = append(next, settleConditions(t, r, engine.Completion{Task: name, Attempt: a.Attempt, Success: !failing[name]}, c)...)
		}
		wave = next
	}
	if err := engine.Check(r); err != nil {
		t.Error(err)
	}
	if got := r.State().Status.String(); got != c.ExpectWorkflow {
		t.Errorf("the workflow is %s, want %s", got, c.ExpectWorkflow)
	}
	counts := map[string]int{}
	for _, status := range r.State().TaskStatus {
		counts[status.String()]++
	}
	if diff := cmp.Diff(c.ExpectCounts, counts); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	return waves
}

// settleConditions steps ev and answers conditions until none is asked for.
func settleConditions(t *testing.T, r *engine.Run, ev engine.Event, c dagCase) (sent []engine.Attempt) {
	t.Helper()
	events := []engine.Event{ev}
	for len(events) > 0 {
		out, err := r.Step(events[0], epoch)
		if err != nil {
			t.Fatalf("Step(%+v): %v", events[0], err)
		}
		events = events[1:]
		sent = append(sent, out.Send...)
		for _, i := range out.Need {
			verdict := engine.Verdict{Task: i, Outcome: engine.ConditionTrue}
			if c.NotCompleted[r.Plan().Name(i)] == state.Skipped.String() {
				verdict.Outcome = engine.ConditionFalse
			}
			events = append(events, verdict)
		}
	}
	return sent
}
