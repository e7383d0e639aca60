package e2e

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// limits of what a look at a store may cost on a machine that does nothing else.
// Time is taken as CPU time: the machine of the tests is shared.
const (
	lookTime   = time.Second
	lookMemory = 200 << 20
)

// TestLooksAreQuick holds the cost of status, tasks and list on large workflows
// and on many.
func TestLooksAreQuick(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.mustRun(0, "submit", h.write("chain.yaml", chainOf(100_000)), "--id", "chain", "--quiet")
	if std := goTestStd(t, h); std != "" {
		h.mustRun(0, "submit", std, "--id", "std", "--quiet")
		for _, args := range [][]string{{"status", "std"}, {"status", "std", "--tasks", "--json"}, {"tasks", "std", "--status", "ready"}} {
			h.quick(args...)
		}
	}
	for _, args := range [][]string{{"status", "chain"}, {"status", "chain", "--json"}, {"tasks", "chain", "--status", "ready"}, {"tasks", "chain", "--limit", "50", "--json"}, {"list"}} {
		h.quick(args...)
	}
}

// TestListOfTenThousandWorkflows holds the cost of a listing.
func TestListOfTenThousandWorkflows(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	var files strings.Builder
	for i := range 10_000 {
		name := fmt.Sprintf("wf-%05d.yaml", i)
		h.write(name, "name: "+name+"\ntasks:\n- {name: a, kwargs: {cmd: \"true\"}}\n")
		fmt.Fprintln(&files, name)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	submit := h.command(ctx, "submit", "--concurrency", "64", "--quiet")
	submit.Stdin = strings.NewReader(files.String())
	begin := time.Now()
	out, err := submit.Output()
	if err != nil || strings.Count(string(out), "\n") != 10_000 {
		t.Fatalf("submit = %v, %d ids", err, strings.Count(string(out), "\n"))
	}
	t.Logf("10,000 workflows submitted in %v", time.Since(begin))
	for _, args := range [][]string{{"list"}, {"list", "--recent", "20", "--json"}, {"list", "--status", "completed"}, {"summary"}} {
		h.quick(args...)
	}
}

// quick runs the program and fails when it takes too long or too much.
func (h *home) quick(args ...string) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), time.Minute)
	defer cancel()
	cmd := h.command(ctx, append(args, "--quiet")...)
	out, err := cmd.Output()
	if args[0] == "doctor" && cmd.ProcessState.ExitCode() == 1 {
		err = nil // it has found something, and says what
	}
	if err != nil {
		detail := ""
		if e, ok := errors.AsType[*exec.ExitError](err); ok {
			detail = string(e.Stderr)
		}
		h.t.Errorf("jobq %v: %v\n%s", args, err, detail)
		return
	}
	cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	memory := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10
	h.t.Logf("jobq %s: %d ms of CPU, %d MB, %d bytes printed", strings.Join(args, " "), cpu.Milliseconds(), memory>>20, len(out))
	if cpu > lookTime || memory > lookMemory {
		h.t.Errorf("jobq %v: %v of CPU and %d MB, want at most %v and %d MB", args, cpu, memory>>20, lookTime, lookMemory>>20)
	}
}

func chainOf(n int) string {
	var b strings.Builder
	b.WriteString("name: chain\ntasks:\n- {name: t0, kwargs: {cmd: \"true\"}}\n")
	for i := 1; i < n; i++ {
		fmt.Fprintf(&b, "- {name: t%d, kwargs: {cmd: \"true\"}, depends_on: [t%d]}\n", i, i-1)
	}
	return b.String()
}

// goTestStd unpacks the largest of the shared workflows, or returns "".
func goTestStd(t *testing.T, h *home) string {
	t.Helper()
	f, err := os.Open("../../../shared/cases/dags/go-test-std.yaml.gz")
	if err != nil {
		t.Logf("go-test-std is not beside this checkout: %v", err)
		return ""
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return h.write("std.yaml", string(text))
}
