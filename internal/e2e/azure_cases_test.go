package e2e

import (
	"strings"
	"sync"
	"testing"

	"jobq/internal/azurite"
)

// onAzurite returns a home whose prefix is on the emulator of this package.
func onAzurite(t *testing.T, prefix string) *home {
	t.Helper()
	h := newHome(t)
	h.env = append(emulator.Server(t).Env(), "JOBQ_WORKFLOW_PREFIX=devstoreaccount1/"+prefix)
	return h
}

// TestSubmitTwiceOnAzureStorage holds C49 with processes on the emulator: the
// same file is the same workflow, another file is a conflict, and nothing is
// sent twice.
func TestSubmitTwiceOnAzureStorage(t *testing.T) {
	t.Parallel()
	h := onAzurite(t, "Twice")
	file := h.write("one.yaml", "name: one\ntasks:\n- {name: a, queue: twice, kwargs: {cmd: \"echo a >>ran\"}}\n")
	other := h.write("other.yaml", "name: other\ntasks:\n- {name: b, queue: twice, kwargs: {cmd: \"true\"}}\n")
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if r := h.run("submit", file, "--id", "X", "--quiet"); r.code != 0 || r.stdout != "X\n" {
				t.Errorf("submit = exit %d, stdout %q, stderr %q", r.code, r.stdout, r.stderr)
			}
		})
	}
	wg.Wait()
	before := h.mustRun(0, "status", "X", "--json", "--tasks").stdout
	h.conflict(other, "X")
	if after := h.mustRun(0, "status", "X", "--json", "--tasks").stdout; after != before {
		t.Errorf("a refused submit changed X\nfrom %s\nto %s", before, after)
	}
	h.serve("devstoreaccount1/twice")
	if s := h.await("X", patience); s.Status != "completed" || s.Total != 1 {
		t.Errorf("X is %s with %d tasks, want 1 completed", s.Status, s.Total)
	}
	before = h.mustRun(0, "status", "X", "--json", "--tasks").stdout
	if r := h.mustRun(0, "submit", file, "--id", "X"); !strings.Contains(r.stderr, "already submitted") {
		t.Errorf("submit of what has ended says\n%s", r.stderr)
	}
	h.conflict(other, "X")
	if after := h.mustRun(0, "status", "X", "--json", "--tasks").stdout; after != before {
		t.Errorf("submits after its end changed X\nfrom %s\nto %s", before, after)
	}
	if ran := h.lines("ran"); len(ran) != 1 {
		t.Errorf("the task ran %d times, want once", len(ran))
	}
}

// conflict submits another file under an id that is taken.
func (h *home) conflict(file, id string) {
	h.t.Helper()
	if r := h.mustRun(4, "submit", file, "--id", id, "--quiet"); !strings.Contains(r.stderr, id) {
		h.t.Errorf("the conflict does not name %s:\n%s", id, r.stderr)
	}
}

// TestLargeWorkflowOnAzureStorage holds C46 on the emulator: go-test-std is
// accepted whole, and looked at in bounded time and memory.
func TestLargeWorkflowOnAzureStorage(t *testing.T) {
	t.Parallel()
	std := goTestStd(t, newHome(t))
	if std == "" {
		t.Skip("go-test-std is not beside this checkout")
	}
	var own azurite.Shared
	t.Cleanup(own.Close)
	h := newHome(t)
	h.env = append(own.Server(t).Env(), "JOBQ_WORKFLOW_PREFIX=devstoreaccount1/Large")
	h.mustRun(0, "submit", std, "--id", "std", "--quiet")
	if s := h.status("std"); s.Total != 12612 {
		t.Errorf("total = %d, want 12612", s.Total)
	}
	for _, args := range [][]string{{"status", "std"}, {"tasks", "std", "--limit", "50", "--json"}, {"list"}, {"doctor"}} {
		h.quick(args...)
	}
}
