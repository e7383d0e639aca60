package e2e

import (
	"context"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"jobq/core/spec"
)

// member is a program that runs until it is stopped, and is started again
// whenever it was killed.
type member struct {
	name string
	args []string
}

// TestSeparateProcessesSurviveKills runs two coordinators, two workers and
// commands at random on one store, and kills each of them again and again.
func TestSeparateProcessesSurviveKills(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	file := cases(t, "wf-rnaseq197.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	d, _ := spec.Parse(file, text, nil)
	if d == nil {
		t.Fatalf("%s does not parse", file)
	}
	queues := map[string]bool{}
	for i := range d.Tasks {
		queues["local/"+d.Tasks[i].Queue] = true
	}
	worker := []string{"worker", "-n", "2", "--quiet"}
	for q := range queues {
		worker = append(worker, q)
	}
	h.mustRun(0, "submit", file, "--id", "rna", "--quiet")

	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	defer stop()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	var killed sync.Map
	var wg sync.WaitGroup
	for i, m := range []member{
		{"coordinator 1", []string{"coordinator", "--quiet"}}, {"coordinator 2", []string{"coordinator", "--quiet"}},
		{"worker 1", worker}, {"worker 2", worker},
	} {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		wg.Go(func() { killed.Store(m.name, h.killAgainAndAgain(ctx, random, m)) })
	}
	wg.Go(func() { h.commandsAtRandom(ctx, rand.New(rand.NewPCG(seed, 9)), file) })

	deadline := time.Now().Add(8 * time.Minute)
	for h.status("rna").Status != "completed" && time.Now().Before(deadline) {
		<-time.After(200 * time.Millisecond)
	}
	stop()
	wg.Wait()
	s := h.status("rna")
	if s.Status != "completed" || s.Counts["completed"] != len(d.Tasks) {
		t.Errorf("workflow is %s with %v, want %d completed", s.Status, s.Counts, len(d.Tasks))
	}
	killed.Range(func(name, n any) bool { t.Logf("%s: killed %d times", name, n); return true })
}

// killAgainAndAgain keeps a program running until ctx ends, killing it at
// random moments, and returns how often it did.
func (h *home) killAgainAndAgain(ctx context.Context, random *rand.Rand, m member) int {
	n := 0
	for ctx.Err() == nil {
		cmd := h.command(ctx, m.args...)
		if err := cmd.Start(); err != nil {
			h.t.Errorf("%s: %v", m.name, err)
			return n
		}
		timer := time.AfterFunc(time.Duration(100+random.IntN(900))*time.Millisecond, func() { cmd.Process.Kill() })
		err := cmd.Wait()
		if !timer.Stop() {
			n++
		} else if ctx.Err() == nil {
			h.t.Errorf("%s ended by itself: %v", m.name, err)
		}
	}
	return n
}

// commandsAtRandom looks, submits again and retries while everything runs; none
// of it may change how the workflow ends.
func (h *home) commandsAtRandom(ctx context.Context, random *rand.Rand, file string) {
	commands := []struct {
		args []string
		code int
	}{
		{[]string{"status", "rna", "--json"}, 0},
		{[]string{"tasks", "rna", "--status", "running", "--json"}, 0},
		{[]string{"list", "--json"}, 0},
		{[]string{"submit", file, "--id", "rna", "--quiet"}, 0},
		{[]string{"retry", "rna", "--json"}, 4},
		{[]string{"doctor"}, -1},
	}
	for ctx.Err() == nil {
		c := commands[random.IntN(len(commands))]
		cmd := h.command(ctx, c.args...)
		out, err := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); ctx.Err() == nil && c.code >= 0 && code != c.code {
			h.t.Errorf("jobq %v: exit %d, want %d (%v)\n%s", c.args, code, c.code, err, out)
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(50+random.IntN(200)) * time.Millisecond):
		}
	}
}

// TestSubmitTwiceAtOnce holds C49 with two processes.
func TestSubmitTwiceAtOnce(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	file := h.write("one.yaml", "name: one\ntasks:\n- {name: a, kwargs: {cmd: \"true\"}}\n")
	other := h.write("other.yaml", "name: other\ntasks:\n- {name: b, kwargs: {cmd: \"true\"}}\n")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if r := h.run("submit", file, "--id", "X"); r.code != 0 || r.stdout != "X\n" {
				t.Errorf("submit = exit %d, stdout %q, stderr %q", r.code, r.stdout, r.stderr)
			}
		})
	}
	wg.Wait()
	h.mustRun(4, "submit", other, "--id", "X")
	if s := h.status("X"); s.Total != 1 {
		t.Errorf("total = %d, want 1", s.Total)
	}
}
