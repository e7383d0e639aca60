package e2e

import (
	"strings"
	"testing"
)

// TestRunEndsPublicWorkflows runs workflows of the shared data for real.
func TestRunEndsPublicWorkflows(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]map[string]int{
		"wf-montage103.yaml":          {"completed": 103},
		"gha-uv-release13.yaml":       {"completed": 13},
		"gha-uv-ci22-code-pr.yaml":    {"completed": 19, "skipped": 3},
		"git-rnaseq-subjects300.yaml": nil,
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			h.mustRun(0, "run", cases(t, file), "--id", "w", "--quiet")
			s := h.status("w", "--tasks")
			if s.Status != "completed" {
				t.Errorf("workflow is %s", s.Status)
			}
			for status, n := range want {
				if s.Counts[status] != n {
					t.Errorf("%d %s, want %d", s.Counts[status], status, n)
				}
			}
			for _, task := range s.Tasks {
				if task.Status == "skipped" && !strings.Contains(task.Reason, `= "false"`) {
					t.Errorf("task %s is skipped without the values that decided: %q", task.Name, task.Reason)
				}
			}
		})
	}
}
