package proc_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"jobq/core/fault"
	"jobq/worker/proc"
	"jobq/worker/proc/proctest"
)

// untilInOwnSession is shell text that waits until the last background process
// leads a session.
const untilInOwnSession = `until [ "$(cut -d' ' -f6 /proc/$!/stat 2>/dev/null)" = $! ]; do :; done`

func TestRunDoesNotWaitForAPipeThatLeftTheGroup(t *testing.T) {
	t.Parallel()
	h := proctest.NewFifo(t)
	runID := proctest.RunID(t)
	var out bytes.Buffer
	res := proc.Run(t.Context(), proc.Spec{
		Command: "setsid sh -c 'exec 9>" + proctest.Quote(h.Path) + "; echo ready >&9; while :; do echo more; done' & " +
			"echo done; " + untilInOwnSession,
		Env: environment(proc.RunIDVariable + "=" + runID), Stdout: &out, Drain: 20 * time.Millisecond,
	})
	if !res.Success() || !res.LeakedPipe || !strings.HasPrefix(out.String(), "done\n") && !strings.Contains(out.String(), "\ndone\n") {
		t.Errorf("Run = %+v with %.20q, want success, a leaked pipe and %q", res, out.String(), "done\n")
	}
	if err := proc.KillByRunID(t.Context(), runID); err != nil {
		t.Error(err)
	}
	h.AwaitEnd(t)
}

func TestSurvivorsAreFoundByTheirRunID(t *testing.T) {
	t.Parallel()
	runID := proctest.RunID(t) + "/1.1"
	h := proctest.NewFifo(t)
	run := start(t.Context(), t, proc.Spec{
		// Both stop themselves: a process in the middle of exec shows no environment.
		Command: "setsid sh -c 'exec 9>" + proctest.Quote(h.Path) + "; echo $$ >&9; echo ready >&9; kill -STOP $$' & kill -STOP $$",
		Env:     environment("X_"+proc.RunIDVariable+"=other", proc.RunIDVariable+"="+runID),
	})
	h.Await(t, "ready")
	line, _, _ := strings.Cut(h.Text(), "\n")
	escaped, err := strconv.Atoi(line)
	if err != nil {
		t.Fatalf("the escaped process wrote %q, want its number", h.Text())
	}
	found := proc.FindByRunID("other", runID)
	if !slices.Contains(found, run.pgid) || !slices.Contains(found, escaped) || len(found) != 2 {
		t.Errorf("FindByRunID = %v, want %d and %d", found, run.pgid, escaped)
	}
	for _, other := range []string{"", "other", runID + "0", strings.TrimSuffix(runID, "1")} {
		if found := proc.FindByRunID(other); len(found) > 0 {
			t.Errorf("FindByRunID(%q) = %v, want none", other, found)
		}
	}
	if err := proc.KillByRunID(t.Context(), runID); err != nil {
		t.Fatal(err)
	}
	h.AwaitEnd(t)
	if found := proc.FindByRunID(runID); len(found) > 0 {
		t.Errorf("FindByRunID after KillByRunID = %v, want none", found)
	}
	if res := run.await(t); res.Signal != syscall.SIGKILL || res.Reason != proc.Exited {
		t.Errorf("Run = %+v, want exited by SIGKILL", res)
	}
}

func TestARunIDBehindALargeEnvironmentIsFound(t *testing.T) {
	t.Parallel()
	runID := proctest.RunID(t)
	run := start(t.Context(), t, proc.Spec{
		Command: "exec sleep 600",
		Env:     append(environment("BIG="+strings.Repeat("JOBQ_RUN_ID=", 8000)), proc.RunIDVariable+"="+runID),
	})
	proctest.Eventually(t, "the environment to show", func() bool { return slices.Equal(proc.FindByRunID(runID), []int{run.pgid}) })
}

func TestAProcessThatStartsProgramsWithoutEndIsKilled(t *testing.T) {
	t.Parallel()
	// While one program takes the place of another the process shows no
	// environment. This one is in that state a good part of its time.
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nexec \"$0\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	h, runID := proctest.NewFifo(t), proctest.RunID(t)
	for range 30 {
		res := proc.Run(t.Context(), proc.Spec{
			Command: h.Hold() + "setsid " + proctest.Quote(script) + " & " + untilInOwnSession,
			Env:     environment(proc.RunIDVariable + "=" + runID),
		})
		if held := h.Held(t); !res.Success() || !held {
			t.Fatalf("Run = %+v with the script alive: %v, want success and a script that lives on", res, held)
		}
		if err := proc.KillByRunID(t.Context(), runID); err != nil {
			t.Fatal(err)
		}
		if h.Held(t) {
			t.Fatal("the script is alive after KillByRunID")
		}
	}
}

func TestWaitGoneIgnoresZombies(t *testing.T) {
	t.Parallel()
	// A leader of ours that nobody reaps yet is a zombie after its end.
	cmd := exec.Command("/bin/sh", "-c", "exit 0")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), proctest.Patience)
	defer cancel()
	if err := proc.WaitGone(ctx, cmd.Process.Pid); err != nil {
		t.Error(err)
	}
	if err := syscall.Kill(cmd.Process.Pid, 0); err != nil {
		t.Errorf("the zombie is gone too: %v", err)
	}
}

func TestWaitGoneIsBoundByItsContext(t *testing.T) {
	t.Parallel()
	run := start(t.Context(), t, proc.Spec{Command: "exec sleep 600", Env: environment()})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := proc.WaitGone(ctx, run.pgid); !fault.Is(err, fault.Canceled) {
		t.Errorf("WaitGone of a live group = %v, want code canceled", err)
	}
}

func TestTheLeaderDiesWithItsWorker(t *testing.T) {
	t.Parallel()
	h := proctest.NewFifo(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	worker := exec.Command(exe)
	worker.Env = asRole("dying-worker", "FIFO="+h.Path)
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	h.Await(t, "ready")
	worker.Process.Kill()
	worker.Wait()
	h.AwaitEnd(t)
}

func BenchmarkFindByRunID(b *testing.B) {
	const crowd = 300
	for range crowd {
		cmd := exec.Command("/bin/sleep", "600")
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() {
			cmd.Process.Kill()
			cmd.Wait()
		})
	}
	for b.Loop() {
		if found := proc.FindByRunID("nobody"); len(found) > 0 {
			b.Fatal(found)
		}
	}
}
