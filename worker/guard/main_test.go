//go:build unix

package guard

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"jobq/worker/proc"
	"jobq/worker/proc/proctest"
)

// workerVariable makes this test binary play a worker that runs one command;
// its value is the command.
const workerVariable = "JOBQ_GUARD_TEST_COMMAND"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == Verb {
		os.Exit(Main(os.Stdin, os.Stdout))
	}
	if command := os.Getenv(workerVariable); command != "" {
		if err := playWorker(command); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(99)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// playWorker guards and runs one command and prints the guardian's number. The
// lock is the one that says that the worker is alive.
func playWorker(command string) error {
	ctx := context.Background()
	ttl, err := time.ParseDuration(os.Getenv("TTL"))
	if err != nil {
		return err
	}
	lock, err := os.OpenFile(os.Getenv("LOCK"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	k, err := NewKeeper(ctx, Options{Inherit: []*os.File{lock}})
	if err != nil {
		return err
	}
	runID := os.Getenv("RUN")
	if err := k.Add(ctx, Group{RunID: runID, TTL: ttl, Sent: Now()}); err != nil {
		return err
	}
	fmt.Println(k.present.cmd.Process.Pid)
	proc.Run(ctx, proc.Spec{
		Command: command, Env: environment(runID),
		Started: func(pgid int) { k.Started(runID, pgid) },
	})
	k.Remove(runID)
	return k.Close(ctx)
}

func environment(runID string) []string {
	return []string{"PATH=" + os.Getenv("PATH"), proc.RunIDVariable + "=" + runID}
}

// worker is this test binary in the role of a worker.
type worker struct {
	cmd      *exec.Cmd
	guardian int
	lock     string
}

// startWorker starts a worker that runs command and returns when its guardian knows of it.
func startWorker(t *testing.T, runID, command string, ttl time.Duration) *worker {
	t.Helper()
	w := &worker{cmd: exec.Command(selfPath(t)), lock: filepath.Join(t.TempDir(), "lock")}
	w.cmd.Env = []string{
		workerVariable + "=" + command, "PATH=" + os.Getenv("PATH"),
		"RUN=" + runID, "LOCK=" + w.lock, "TTL=" + ttl.String(),
	}
	var stderr strings.Builder
	w.cmd.Stderr = &stderr
	stdout, err := w.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.cmd.Process.Kill()
		w.cmd.Wait()
	})
	if _, err := fmt.Fscan(stdout, &w.guardian); err != nil {
		w.cmd.Wait()
		t.Fatalf("the worker does not run: %v %s", err, stderr.String())
	}
	return w
}

// locked reports whether a process holds the worker's lock.
func (w *worker) locked(t *testing.T) bool {
	t.Helper()
	f, err := os.Open(w.lock)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) != nil
}

// awaitUnlocked returns when the worker's lock is free.
func (w *worker) awaitUnlocked(t *testing.T) {
	t.Helper()
	proctest.Eventually(t, "the lock to be free", func() bool { return !w.locked(t) })
}

func selfPath(t testing.TB) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}
