package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// TestWatchFitsATerminal shows a workflow of 1,101 tasks in a real terminal of
// 80 by 24 while it runs, and reads the screen.
func TestWatchFitsATerminal(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("tmux"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("tmux is not installed: %v", err)
		}
		t.Skip("tmux is not installed; `make setup` does")
	}
	h := newHome(t)
	var b strings.Builder
	b.WriteString("name: wide\ntasks:\n- {name: prepare, kwargs: {cmd: \"true\"}}\n")
	for i := range 1100 {
		fmt.Fprintf(&b, "- {name: measure-%04d, kwargs: {cmd: \"sleep 0.05\"}, depends_on: [prepare]}\n", i)
	}
	h.mustRun(0, "submit", h.write("wide.yaml", b.String()), "--id", "wide", "--quiet")
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	defer stop()
	run := h.command(ctx, "run", "--resume", "wide", "--quiet", "--workers", "2")
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { run.Process.Kill(); run.Wait() }()

	socket := fmt.Sprintf("jobq-e2e-%d", os.Getpid())
	tmux := func(args ...string) string {
		out, err := exec.CommandContext(ctx, "tmux", append([]string{"-f", "/dev/null", "-L", socket}, args...)...).CombinedOutput()
		if err != nil {
			t.Logf("tmux %v: %v %s", args, err, out)
		}
		return string(out)
	}
	defer tmux("kill-server")
	tmux("new-session", "-d", "-x", "80", "-y", "24", "-e", "JOBQ_HOME="+h.path, h.bin+" watch wide")
	deadline := time.Now().Add(patience)
	for {
		screen := tmux("capture-pane", "-p")
		if strings.Contains(screen, "/1101") && strings.Contains(screen, "measure-") {
			checkScreen(t, screen)
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the live view did not come; the screen is\n%s", screen)
		}
		<-time.After(100 * time.Millisecond)
	}
}

func checkScreen(t *testing.T, screen string) {
	t.Helper()
	t.Logf("the screen:\n%s", screen)
	lines := strings.Split(strings.TrimRight(screen, "\n"), "\n")
	if len(lines) > 24 {
		t.Errorf("%d lines on a screen of 24", len(lines))
	}
	for _, l := range lines {
		if n := utf8.RuneCountInString(l); n > 80 {
			t.Errorf("a line of %d columns on a screen of 80: %q", n, l)
		}
	}
	if n := strings.Count(screen, "measure-"); n > 8 {
		t.Errorf("%d lines about tasks of one group, want them folded", n)
	}
}
