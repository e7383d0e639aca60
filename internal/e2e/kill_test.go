package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"jobq/core/spec"
)

// kills is how often the run is killed.
const kills = 20

// TestRunSurvivesKill9 kills `jobq run` at random moments and resumes it at
// once. Each command holds a lock while it runs, so that an overlap, be it with
// an orphan of the killed run, shows itself.
func TestRunSurvivesKill9(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	file, names := lockingWorkflow(t, h)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))

	args := []string{"run", file, "--id", "epi", "--workers", "2", "--quiet"}
	killed := 0
	for range kills {
		if h.killAfter(time.Duration(20+random.IntN(450))*time.Millisecond, args...) {
			killed++
		}
		if _, err := os.Stat(filepath.Join(h.path, "store.db")); err == nil && h.run("status", "epi").code == 0 {
			args = []string{"run", "--resume", "epi", "--workers", "2", "--quiet"}
		}
		if random.IntN(2) == 0 {
			h.noOrphan("epi")
		}
	}
	h.mustRun(0, args...)

	s := h.status("epi")
	if s.Status != "completed" || s.Counts["completed"] != len(names) {
		t.Errorf("after %d kills: %s, %d of %d tasks completed", killed, s.Status, s.Counts["completed"], len(names))
	}
	if overlaps := h.lines("overlap"); len(overlaps) > 0 {
		t.Errorf("commands of one task ran at the same time: %v", overlaps)
	}
	runs := map[string]int{}
	for _, name := range h.lines("runs") {
		runs[name]++
	}
	again := 0
	for _, name := range names {
		if runs[name] == 0 {
			t.Errorf("task %s never ran", name)
		}
		again += max(runs[name]-1, 0)
	}
	if killed != kills {
		t.Errorf("the run was killed %d times, want %d: it ended too early", killed, kills)
	}
	t.Logf("%d kills, %d tasks, %d further starts", killed, len(names), again)
}

// lockingWorkflow writes wf-epigenomics41 with commands that take a lock.
func lockingWorkflow(t *testing.T, h *home) (file string, names []string) {
	t.Helper()
	text, err := os.ReadFile(cases(t, "wf-epigenomics41.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	d, diagnostics := spec.Parse("wf-epigenomics41.yaml", text, nil)
	if d == nil {
		t.Fatalf("Parse = %v", diagnostics)
	}
	if _, err := exec.LookPath("flock"); err != nil {
		t.Fatal("the command flock (util-linux) is needed")
	}
	var b strings.Builder
	fmt.Fprintln(&b, "name: epigenomics\ntasks:")
	for i := range d.Tasks {
		task := &d.Tasks[i]
		names = append(names, task.Name)
		fmt.Fprintf(&b, "- name: %s\n  kwargs:\n    cmd: %s\n", strconv.Quote(task.Name), strconv.Quote(lockingCommand(task.Name)))
		if len(task.DependsOn) > 0 {
			fmt.Fprintf(&b, "  depends_on: [%s]\n", quoted(task.DependsOn))
		}
	}
	return h.write("epigenomics.yaml", b.String()), names
}

// lockingCommand takes a lock that lives as long as any process of the command.
func lockingCommand(name string) string {
	return `exec 9>>"lock.` + name + `"; flock -n 9 || { echo ` + name + ` >>overlap; exit 1; }; ` +
		`echo ` + name + ` >>runs; sleep 0.25; echo ` + name + ` >>done`
}

func quoted(names []string) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = strconv.Quote(n)
	}
	return strings.Join(out, ", ")
}

// killAfter starts the program and kills it with SIGKILL after d. It reports
// false when the program had ended by itself.
func (h *home) killAfter(d time.Duration, args ...string) bool {
	h.t.Helper()
	cmd := h.command(context.WithoutCancel(h.t.Context()), args...)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return false
	case <-timer.C:
	}
	if err := cmd.Process.Kill(); err != nil {
		h.t.Logf("kill: %v", err)
	}
	<-done
	return true
}

// noOrphan fails unless every process of a task of workflow id is gone within
// two seconds of the kill: the guardian has one, the machine is busy.
func (h *home) noOrphan(id string) {
	h.t.Helper()
	deadline := time.Now().Add(2 * time.Second)
	for {
		left := processesOf(h.path, id)
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			h.t.Errorf("processes of the killed run are alive: %v", left)
			return
		}
		<-time.After(20 * time.Millisecond)
	}
}

// processesOf finds processes whose environment names the home and workflow.
func processesOf(home, id string) []string {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	var found []string
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		env := "\x00" + string(b)
		if strings.Contains(env, "\x00JOBQ_WORKFLOW_ID="+id+"\x00") && strings.Contains(env, "\x00JOBQ_HOME="+home+"\x00") {
			found = append(found, filepath.Base(filepath.Dir(f)))
		}
	}
	return found
}
