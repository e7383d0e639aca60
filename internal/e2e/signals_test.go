package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patient has a task that says when it begins and when it was asked to end, and then
// takes its time.
const patient = `name: patient
default_queue: cpu
tasks:
- {name: long, kwargs: {cmd: "trap 'touch asked; sleep ${GRACE:-0.5}; touch graced; exit 3' TERM; echo $PPID >parent; touch started; until test -e go; do sleep 0.05; done"}}
`

// serving prepares what the verb needs to run patient.yaml and returns its words.
func (h *home) serving(verb string) []string {
	h.t.Helper()
	file := h.write("patient.yaml", patient)
	if verb == "run" {
		return []string{"run", file, "--id", "w", "--quiet"}
	}
	h.mustRun(0, "submit", file, "--id", "w", "--quiet")
	coordinator := h.command(context.WithoutCancel(h.t.Context()), "coordinator", "--quiet")
	if err := coordinator.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { coordinator.Process.Kill(); coordinator.Wait() })
	return []string{"worker", "local/cpu", "--max-idle-backoff", "100ms", "--quiet"}
}

// wait waits until the file is there.
func (h *home) wait(name string) {
	h.t.Helper()
	for deadline := time.Now().Add(patience); ; {
		if h.has(name) {
			return
		}
		if time.Now().After(deadline) {
			h.t.Fatalf("the file %s did not come", name)
		}
		<-time.After(10 * time.Millisecond)
	}
}

func (h *home) has(name string) bool {
	_, err := os.Stat(filepath.Join(h.dir, name))
	return err == nil
}

// start starts cmd, which must not be left behind.
func (h *home) start(cmd *exec.Cmd) {
	h.t.Helper()
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
}

func signalOnce(t *testing.T, cmd *exec.Cmd, s os.Signal) {
	t.Helper()
	if err := cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// stopCodes are how the verbs end that were asked to stop.
var stopCodes = map[string]int{"run": 130, "worker": 0}

func TestTwoSignalsAtOnceLeaveTasksTheirTime(t *testing.T) {
	t.Parallel()
	for verb, code := range stopCodes {
		for name, s := range map[string]os.Signal{"HUP": syscall.SIGHUP, "INT": syscall.SIGINT, "TERM": syscall.SIGTERM} {
			t.Run(verb+" "+name, func(t *testing.T) {
				t.Parallel()
				h := newHome(t)
				cmd := h.command(t.Context(), h.serving(verb)...)
				h.start(cmd)
				h.wait("started")
				signalOnce(t, cmd, s)
				<-time.After(2 * time.Millisecond) // so that they are two
				signalOnce(t, cmd, s)
				cmd.Wait()
				if got := cmd.ProcessState.ExitCode(); got != code || !h.has("graced") {
					t.Errorf("jobq %s ended with %d, want %d; its task had its time: %t", verb, got, code, h.has("graced"))
				}
			})
		}
	}
}

// TestTimeoutLeavesTasksTheirTime has GNU timeout, which signals its child and then
// the group of both.
func TestTimeoutLeavesTasksTheirTime(t *testing.T) {
	t.Parallel()
	timeout, err := exec.LookPath("timeout")
	if err != nil {
		t.Skip("there is no timeout(1)")
	}
	for verb := range stopCodes {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			cmd := h.command(t.Context(), h.serving(verb)...)
			cmd.Path, cmd.Args = timeout, append([]string{"timeout", "10m"}, cmd.Args...)
			h.start(cmd)
			h.wait("started")
			signalOnce(t, cmd, syscall.SIGTERM) // as at the end of the time
			cmd.Wait()
			if !h.has("graced") {
				t.Errorf("timeout jobq %s killed a task", verb)
			}
		})
	}
}

func TestALaterSignalEndsEveryVerbAtOnce(t *testing.T) {
	t.Parallel()
	for verb := range stopCodes {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			h.env = append(h.env, "GRACE=60")
			cmd := h.command(t.Context(), h.serving(verb)...)
			h.start(cmd)
			h.wait("started")
			signalOnce(t, cmd, syscall.SIGTERM)
			h.wait("asked")
			<-time.After(210 * time.Millisecond) // it is not together with the first
			signalOnce(t, cmd, syscall.SIGHUP)
			cmd.Wait()
			if got := cmd.ProcessState.ExitCode(); got != 130 || h.has("graced") {
				t.Errorf("jobq %s ended with %d, want 130; its task had its time: %t", verb, got, h.has("graced"))
			}
		})
	}
}

func TestASignalThatIsIgnoredStopsNothing(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	cmd := h.command(t.Context(), h.serving("run")...)
	cmd.Path, cmd.Args = "/bin/sh", append([]string{"sh", "-c", `trap "" HUP; exec "$@"`, "sh"}, cmd.Args...)
	h.start(cmd)
	h.wait("started")
	signalOnce(t, cmd, syscall.SIGHUP)
	h.write("go", "")
	if err := cmd.Wait(); err != nil {
		t.Errorf("with SIGHUP ignored the run ended with %v after one, want it to go on", err)
	}
}

// TestAStopWaitsForAReaderNoLongerThanItSays has a pager that stands still, which holds
// up tasks that write, and the end of runs that wrote.
func TestAStopWaitsForAReaderNoLongerThanItSays(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		command string
		// until waits for the moment of the stop.
		until func(*home)
		says  []string
	}{
		"a task that writes": {"trap '' TERM; touch started; exec yes", func(h *home) { h.wait("started") }, []string{
			"jobq: stopping; Ctrl-C again kills;",
			"jobq: ended without what could not be written down (nobody reads what the run prints); those tasks run again",
		}},
		"a run that has ended": {"echo once", func(h *home) { h.awaitRun("w") }, []string{
			"jobq: nobody reads what the run prints; waiting for a reader up to 10s",
			"jobq: ended while nobody reads what it prints; how the run stands: jobq status w",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			file := h.write("writes.yaml", "name: writes\ndefault_queue: cpu\ntasks:\n- {name: a, kwargs: {cmd: "+strconv.Quote(tc.command)+"}}\n")
			unread, stdout, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer unread.Close()
			fill(t, stdout)
			var stderr lines
			cmd := h.command(t.Context(), "run", file, "--id", "w", "--kill-timeout", "2s", "--quiet")
			cmd.Stdout, cmd.Stderr = stdout, &stderr
			h.start(cmd)
			stdout.Close()
			tc.until(h)
			signalOnce(t, cmd, syscall.SIGTERM)
			stuck := time.AfterFunc(patience, func() { cmd.Process.Kill() })
			defer stuck.Stop()
			cmd.Wait()
			if got := cmd.ProcessState.ExitCode(); got != 130 {
				t.Errorf("the run ended with %d, want 130", got)
			}
			for _, want := range tc.says {
				if !strings.Contains(stderr.String(), want) {
					t.Errorf("standard error does not say %q:\n%s", want, stderr.String())
				}
			}
		})
	}
}

// fill writes to a pipe until it takes nothing any more.
func fill(t *testing.T, pipe *os.File) {
	t.Helper()
	raw, err := pipe.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	failed := raw.Write(func(fd uintptr) bool {
		for err == nil {
			_, err = syscall.Write(int(fd), make([]byte, 4096))
		}
		return true
	})
	if failed != nil || err != syscall.EAGAIN {
		t.Fatalf("the pipe is not full: %v, %v", failed, err)
	}
}

// awaitRun waits for the end of a run that another process has begun.
func (h *home) awaitRun(id string) {
	h.t.Helper()
	for deadline := time.Now().Add(patience); ; {
		if r := h.run("status", id); strings.Contains(r.stdout, "completed") {
			return
		}
		if time.Now().After(deadline) {
			h.t.Fatalf("run %s does not end", id)
		}
		<-time.After(20 * time.Millisecond)
	}
}
