package coord_test

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
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"jobq/core/cond"
	"jobq/core/coord"
	"jobq/core/dag"
	"jobq/core/msg"
	"jobq/core/spec"
	"jobq/store/memory"
)

// cases is the folder of public workflows and conditions, which is not part of
// the repository.
const cases = "../../../shared/cases"

func readCase(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(cases, name))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("NOT RUN: %s is not there", filepath.Join(cases, name))
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
	if b, err = io.ReadAll(r); err != nil {
		t.Fatal(err)
	}
	return b
}

// dagCase is an entry of manifest.json or a line of scenarios.jsonl.
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

// readDag returns nil for a file that is refused.
func readDag(t *testing.T, name string) *dag.Definition {
	t.Helper()
	d, faults := spec.Parse(strings.TrimSuffix(name, ".gz"), readCase(t, filepath.Join("dags", name)), &spec.Options{
		CheckCondition: func(string, []string) []spec.ConditionFault { return nil },
	})
	if d == nil {
		t.Logf("refused: %v", faults.Err())
	}
	return d
}

// TestPublicWorkflows runs every public workflow in lock step: all that was sent
// is held until nothing more comes, then ends.
func TestPublicWorkflows(t *testing.T) {
	t.Parallel()
	var files []dagCase
	if err := json.Unmarshal(readCase(t, "dags/manifest.json"), &files); err != nil {
		t.Fatal(err)
	}
	for _, c := range files {
		t.Run(c.File, func(t *testing.T) {
			t.Parallel()
			d := readDag(t, c.File)
			if refused := strings.HasPrefix(c.ExpectWorkflow, "rejected"); d == nil || refused {
				if (d == nil) != refused {
					t.Errorf("refused: %t, want %q", d == nil, c.ExpectWorkflow)
				}
				return
			}
			synctest.Test(t, func(t *testing.T) { lockStep(t, d, c) })
		})
	}
}

// TestPublicScenarios injects failures and policies as scenarios.jsonl says.
func TestPublicScenarios(t *testing.T) {
	t.Parallel()
	byFile := map[string][]dagCase{}
	for line := range bytes.Lines(readCase(t, "dags/scenarios.jsonl")) {
		var c dagCase
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		byFile[c.File] = append(byFile[c.File], c)
	}
	for file, cases := range byFile {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			d := readDag(t, file)
			if len(d.Tasks) > 5000 && os.Getenv("JOBQ_SLOW_TESTS") == "" {
				t.Logf("the shortest of %d scenarios, the others with JOBQ_SLOW_TESTS=1; package engine runs them all", len(cases))
				cases = []dagCase{slices.MinFunc(cases, func(a, b dagCase) int { return a.ExpectCounts["completed"] - b.ExpectCounts["completed"] })}
			}
			for _, c := range cases {
				t.Run(c.Why, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { lockStep(t, withPolicies(t, d, c.SetPolicy), c) })
				})
			}
		})
	}
}

func withPolicies(t *testing.T, d *dag.Definition, policies map[string]string) *dag.Definition {
	t.Helper()
	changed := *d
	changed.Tasks = slices.Clone(d.Tasks)
	for i := range changed.Tasks {
		switch policy := policies[changed.Tasks[i].Name]; policy {
		case "":
		case "any":
			changed.Tasks[i].DepPolicy = dag.DepPolicy{Kind: dag.Any}
		case "all_settled":
			changed.Tasks[i].DepPolicy = dag.DepPolicy{Kind: dag.AllSettled}
		default:
			t.Fatalf("no policy %q", policy)
		}
	}
	return &changed
}

// lockStep runs d to its end and compares waves, counts and result with c.
func lockStep(t *testing.T, d *dag.Definition, c dagCase) {
	t.Helper()
	ctx := t.Context()
	w := onMemory(t, memory.Options{})
	w.Know(d)
	w.Outcome = outcomes(d, c)
	n := w.Start("coordinator")
	if _, err := n.Submit(ctx, coord.Submission{ID: "w", Definition: d}); err != nil {
		t.Fatalf("Submit = %v", err)
	}
	var waves []int
	for size := w.Take(ctx); size > 0; size = w.Take(ctx) {
		waves = append(waves, size)
		w.Finish(ctx)
		if _, err := n.Drain(ctx, time.Minute, nil); err != nil {
			t.Fatalf("Drain = %v", err)
		}
	}
	s, err := n.Status(ctx, "w")
	if err != nil {
		t.Fatalf("Status = %v", err)
	}
	if s.Status != c.ExpectWorkflow {
		t.Errorf("the workflow is %s, want %s", s.Status, c.ExpectWorkflow)
	}
	if diff := cmp.Diff(c.ExpectCounts, countsOf(s)); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	if len(c.LevelWidths) > 0 && len(c.NotCompleted) == 0 && !slices.Equal(waves, c.LevelWidths) {
		t.Errorf("the waves are %v, want %v", waves, c.LevelWidths)
	}
	for attempt, times := range w.Taken {
		if times > 1 || !strings.HasSuffix(attempt, "#1") {
			t.Errorf("%s was sent %d times", attempt, times)
		}
	}
	if err := w.Leftovers(ctx, "w"); err != nil {
		t.Errorf("at rest: %v", err)
	}
}

// outcomes fails what c says. A command that prints a JSON object has that output.
func outcomes(d *dag.Definition, c dagCase) func(msg.Task) msg.Completion {
	failing := map[string]bool{}
	for _, name := range c.Fail {
		failing[name] = true
	}
	for name, how := range c.NotCompleted {
		failing[name] = failing[name] || how == "failed"
	}
	conditional := slices.ContainsFunc(d.Tasks, func(t dag.Task) bool { return t.Condition != "" })
	return func(m msg.Task) msg.Completion {
		done := msg.Completion{Success: !failing[m.Name]}
		if !done.Success {
			done.Reason = msg.Exited
		}
		var cmd string
		if raw, ok := m.Kwarg("cmd"); ok && conditional && json.Unmarshal(raw, &cmd) == nil {
			if from, to := strings.Index(cmd, "{"), strings.LastIndex(cmd, "}"); 0 <= from && from < to {
				done.OutputRef = cmd[from : to+1]
			}
		}
		return done
	}
}

// countsOf returns the statuses that some task has.
func countsOf(s coord.Summary) map[string]int {
	counts := map[string]int{
		"pending": s.Counts.Pending, "ready": s.Counts.Ready, "running": s.Counts.Running, "completed": s.Counts.Completed,
		"failed": s.Counts.Failed, "upstream_failed": s.Counts.UpstreamFailed, "skipped": s.Counts.Skipped, "cancelled": s.Counts.Cancelled,
	}
	maps.DeleteFunc(counts, func(_ string, n int) bool { return n == 0 })
	return counts
}

// conditionCase is a line of conditions.jsonl: what Python answers.
type conditionCase struct {
	ID          string
	Expr        string
	Inputs      map[string]json.RawMessage
	Expect, Alt any
}

// TestPublicConditions has every condition decided by the coordinator, over
// outputs that travelled as completions.
func TestPublicConditions(t *testing.T) {
	t.Parallel()
	lines := bufio.NewScanner(bytes.NewReader(readCase(t, "conditions.jsonl")))
	lines.Buffer(nil, 1<<20)
	n := 0
	for lines.Scan() {
		var c conditionCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		n++
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				got := decide(t, c)
				if !answers(got, c.Expect) && !answers(got, c.Alt) && !(got == "reject" && matchesNothing(c)) {
					t.Errorf("%s over %s is %s, want %v or %v", c.Expr, c.Inputs, got, c.Expect, c.Alt)
				}
			})
		})
	}
	if n < 140 {
		t.Errorf("%d conditions were read, want 140", n)
	}
}

func answers(got string, want any) bool {
	switch want {
	case true, false:
		return got == map[bool]string{true: "completed", false: "skipped"}[want.(bool)]
	case "error-or-false":
		return got != "completed"
	default:
		return got == want
	}
}

// matchesNothing reports whether c is refused by our ruling alone: its pattern
// matches no parent.
func matchesNothing(c conditionCase) bool {
	_, faults := cond.CompileTolerant(c.Expr, slices.Sorted(maps.Keys(c.Inputs)))
	return len(faults) == 0
}

// decide runs the parents of a condition and returns what becomes of its task.
func decide(t *testing.T, c conditionCase) string {
	t.Helper()
	ctx := t.Context()
	d := &dag.Definition{Name: c.ID, DefaultQueue: "cpu"}
	gate := dag.Task{Name: "the gate", Queue: "cpu", Condition: c.Expr, DependsOn: slices.Sorted(maps.Keys(c.Inputs))}
	for _, name := range gate.DependsOn {
		d.Tasks = append(d.Tasks, dag.Task{Name: name, Queue: "cpu"})
	}
	d.Tasks = append(d.Tasks, gate)
	w := onMemory(t, memory.Options{})
	w.Know(d)
	w.Outcome = func(m msg.Task) msg.Completion {
		return msg.Completion{Success: true, OutputRef: string(c.Inputs[m.Name])}
	}
	n := w.Start("coordinator")
	if _, err := n.Submit(ctx, coord.Submission{ID: "w", Definition: d}); err != nil || c.Expr == "" {
		return "reject" // that an empty text is no condition is for package spec to say
	}
	for w.Take(ctx) > 0 {
		w.Finish(ctx)
		if _, err := n.Drain(ctx, time.Minute, nil); err != nil {
			t.Fatalf("Drain = %v", err)
		}
	}
	s, err := n.Tasks(ctx, "w", coord.TaskFilter{Names: []string{gate.Name}})
	if err != nil {
		t.Fatalf("Tasks = %v", err)
	}
	if s.Tasks[0].Reason == "" {
		t.Errorf("%s has no reason", s.Tasks[0].Status)
	}
	return s.Tasks[0].Status
}
