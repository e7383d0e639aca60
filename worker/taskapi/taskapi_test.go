package taskapi_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"jobq/core/fault"
	"jobq/worker/taskapi"
)

// setup returns a task whose parents are the keys of files: nil content is a
// parent without output.
func setup(t *testing.T, index string, files map[string]string) (task *taskapi.Task, output string) {
	t.Helper()
	dir := t.TempDir()
	write := func(name, content string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(taskapi.IndexFile, index)
	for name, content := range files {
		write(name, content)
	}
	output = filepath.Join(t.TempDir(), "output.json")
	task, err := taskapi.FromEnvironment(func(name string) string {
		return map[string]string{"JOBQ_OUTPUT_FILE": output, "JOBQ_UPSTREAM_DIR": dir}[name]
	})
	if err != nil {
		t.Fatal(err)
	}
	return task, output
}

func TestOutsideOfATask(t *testing.T) {
	t.Parallel()
	if _, err := taskapi.FromEnvironment(func(string) string { return "" }); !fault.Is(err, fault.Invalid) {
		t.Errorf("FromEnvironment of nothing = %v, want invalid", err)
	}
}

func TestSetOutputReplacesTheWhole(t *testing.T) {
	t.Parallel()
	task, output := setup(t, "{}", nil)
	for _, text := range []string{`{"a": 1}`, " [1]\n", `"é"`} {
		if err := task.SetOutput(strings.NewReader(text)); err != nil {
			t.Fatalf("SetOutput(%q) = %v", text, err)
		}
		got, err := os.ReadFile(output)
		if err != nil || string(got) != text {
			t.Errorf("after SetOutput(%q) the file holds %q, %v", text, got, err)
		}
	}
	left, err := os.ReadDir(filepath.Dir(output))
	if err != nil || len(left) != 1 {
		t.Errorf("the directory holds %v, %v; want the output alone", left, err)
	}
}

func TestSetOutputRefusesWhatIsNotOneDocument(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ text, says string }{
		"nothing":           {" \n", "empty"},
		"text":              {"hello", `not JSON at byte 1: "hello"`},
		"a stray comma":     {`{"a": 1,}`, `not JSON at byte 9: "}"`},
		"cut off":           {`{"a": `, "not JSON: it is cut off"},
		"NaN":               {"NaN", "NaN"},
		"two documents":     {"{}\n[]", "at byte 2"},
		"a byte order mark": {"\ufeff{}", "byte order mark"},
		"too many levels":   {strings.Repeat(`[{"a\"[":`, 6000), "nested more than 10000 levels"},
		"many levels cut":   {strings.Repeat("[", 10_000), "cut off"},
		"not UTF-8":         {"\"\x80\"", "UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			task, output := setup(t, "{}", nil)
			err := task.SetOutput(strings.NewReader(tc.text))
			if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("SetOutput(%q) = %v, want invalid with %q", tc.text, err, tc.says)
			}
			if _, err := os.Stat(output); !os.IsNotExist(err) {
				t.Errorf("the output file exists after a refusal: %v", err)
			}
		})
	}
	task, _ := setup(t, "{}", nil)
	if err := task.SetOutput(iotest.ErrReader(errors.New("broken"))); !fault.Is(err, fault.Unavailable) {
		t.Errorf("SetOutput of a broken reader = %v, want unavailable", err)
	}
}

func TestUpstream(t *testing.T) {
	t.Parallel()
	task, _ := setup(t, `{"prep": "prep.json", "skipped": null, "train/a": "train~2Fa.json"}`, map[string]string{
		"prep.json":      `{"metrics": {"mae": 0.030, "n": 12345678901234567890}, "items": ["x y", [true]], "": 1}` + "\n",
		"train~2Fa.json": `"plain"`,
	})
	for name, tc := range map[string]struct {
		parent, path, want string
	}{
		"a member":            {"prep", "metrics.mae", "0.030"},
		"a large number":      {"prep", "metrics.n", "12345678901234567890"},
		"an item":             {"prep", "items.0", "x y"},
		"an item of an item":  {"prep", "items.1.0", "true"},
		"a list":              {"prep", "items.1", "[true]"},
		"a text":              {"train/a", "", "plain"},
		"a parent without it": {"skipped", "", "null"},
		"a path into nothing": {"skipped", "a.b", "null"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			value, err := task.Upstream(tc.parent, tc.path)
			if got := taskapi.Text(value); err != nil || got != tc.want {
				t.Errorf("Upstream(%q, %q) = %q, %v, want %q", tc.parent, tc.path, got, err, tc.want)
			}
		})
	}
	for name, tc := range map[string]struct{ parent, path, says string }{
		"a stranger":            {"nobody", "", "prep, skipped, train/a"},
		"no such member":        {"prep", "metrics.mse", "metrics.mse; there is mae, n"},
		"an item past the end":  {"prep", "items.2", "2 items"},
		"a negative item":       {"prep", "items.-1", "2 items"},
		"a name in a list":      {"prep", "items.first", "the first is 0"},
		"something in a number": {"prep", "metrics.mae.x", "no object"},
		"something in a text":   {"train/a", "x", "no object"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			value, err := task.Upstream(tc.parent, tc.path)
			if !fault.Is(err, fault.NotFound) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("Upstream(%q, %q) = %q, %v, want not found with %q", tc.parent, tc.path, value, err, tc.says)
			}
		})
	}
	parents, err := task.Parents()
	if want := []string{"prep", "skipped", "train/a"}; err != nil || !slices.Equal(parents, want) {
		t.Errorf("Parents() = %q, %v, want %q", parents, err, want)
	}
}

func TestUpstreamOfATaskWithoutParents(t *testing.T) {
	t.Parallel()
	task, _ := setup(t, "{}", nil)
	if _, err := task.Upstream("a", ""); !fault.Is(err, fault.NotFound) || !strings.Contains(err.Error(), "has none") {
		t.Errorf("Upstream = %v, want not found", err)
	}
	damaged, _ := setup(t, "x", nil)
	if _, err := damaged.Parents(); !fault.Is(err, fault.Corrupt) {
		t.Errorf("Parents of a damaged index = %v, want corrupt", err)
	}
}

func TestStatusOfParents(t *testing.T) {
	t.Parallel()
	task, _ := setup(t, `{"prep": "prep.json", "silent": null}`, map[string]string{
		"prep.json":        "5",
		taskapi.StatusFile: `{"prep": "completed", "silent": "skipped", "train": "failed"}`,
	})
	for parent, want := range map[string]string{"prep": "completed", "silent": "skipped", "train": "failed"} {
		if got, err := task.Status(parent); got != want || err != nil {
			t.Errorf("Status(%q) = %q, %v, want %q", parent, got, err, want)
		}
	}
	if value, err := task.Upstream("train", "metrics.mae"); string(value) != "null" || err != nil {
		t.Errorf("Upstream of a parent that failed = %s, %v, want null", value, err)
	}
	if parents, err := task.Parents(); err != nil || !slices.Equal(parents, []string{"prep", "silent", "train"}) {
		t.Errorf("Parents = %q, %v, want the failed one too", parents, err)
	}
	for _, err := range []error{second(task.Status("nobody")), second(task.Upstream("nobody", ""))} {
		if !fault.Is(err, fault.NotFound) || !strings.Contains(err.Error(), "prep, silent, train") || !strings.Contains(fault.RemedyOf(err), "depends_on") {
			t.Errorf("a stranger = %v (%s), want not found with the parents", err, fault.RemedyOf(err))
		}
	}
	// A worker of ai4s-jobq writes no statuses: who is in the index completed.
	old, _ := setup(t, `{"prep": null}`, nil)
	if got, err := old.Status("prep"); got != "completed" || err != nil {
		t.Errorf("Status without the file = %q, %v, want completed", got, err)
	}
}

func second[T any](_ T, err error) error { return err }
