package e2e

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
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
	h.start(coordinator)
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

// start starts cmd, which must not be left behind and has patience to end: to wait for
// it has a bound.
func (h *home) start(cmd *exec.Cmd) {
	h.t.Helper()
	cmd.WaitDelay = 10 * time.Second // for what others still hold of its output
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	stuck := time.AfterFunc(patience, func() {
		if cmd.Process.Kill() == nil {
			syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // if it leads a group, as timeout(1) does
		}
	})
	h.t.Cleanup(func() { stuck.Stop(); cmd.Process.Kill(); cmd.Wait() })
}

func signalOnce(t *testing.T, cmd *exec.Cmd, s os.Signal) {
	t.Helper()
	if err := cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// stopCodes are how the verbs end that were asked to stop.
var stopCodes = map[string]int{"run": 130, "worker": 0}

// oneStop is within what time two signals are one wish to stop.
const oneStop = 200 * time.Millisecond

// signalTwice sends two signals and reports whether they may be apart for jobq.
func signalTwice(t *testing.T, cmd *exec.Cmd, s os.Signal) (apart bool) {
	t.Helper()
	begun := time.Now()
	signalOnce(t, cmd, s)
	<-time.After(2 * time.Millisecond) // so that they are two
	signalOnce(t, cmd, s)
	return time.Since(begun) > oneStop/2
}

// stopped is how a process ended that got two signals at once.
type stopped struct {
	code, want int
	// graced says that its task had its time.
	graced bool
	// apart says that the signals were not together.
	apart bool
}

const (
	mostKilled = 3
	mostApart  = 5
)

// leavesTime wants that a stop leaves tasks their time. On a busy machine the signals
// may come apart, or jobq take them so, and then they kill: that happens to some tries,
// a broken rule to all.
func leavesTime(t *testing.T, stop func() stopped) {
	t.Helper()
	for killed, apart := 0, 0; ; {
		got := stop()
		switch {
		case got.code == got.want && got.graced:
			return
		case got.code != stopCodes["run"]:
			t.Fatalf("it ended with %d, want %d; its task had its time: %t", got.code, got.want, got.graced)
		case got.apart:
			apart++
		default:
			killed++
		}
		if killed == mostKilled {
			t.Fatalf("two signals at once killed %d times", killed)
		}
		if apart == mostApart {
			t.Skipf("the machine was too busy %d times to send two signals at once", apart)
		}
	}
}

func TestTwoSignalsAtOnceLeaveTasksTheirTime(t *testing.T) {
	t.Parallel()
	for verb, code := range stopCodes {
		for name, s := range map[string]os.Signal{"HUP": syscall.SIGHUP, "INT": syscall.SIGINT, "TERM": syscall.SIGTERM} {
			t.Run(verb+" "+name, func(t *testing.T) {
				t.Parallel()
				leavesTime(t, func() stopped {
					h := newHome(t)
					cmd := h.command(t.Context(), h.serving(verb)...)
					h.start(cmd)
					h.wait("started")
					apart := signalTwice(t, cmd, s)
					cmd.Wait()
					return stopped{code: cmd.ProcessState.ExitCode(), want: code, graced: h.has("graced"), apart: apart}
				})
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
	for verb, code := range stopCodes {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			leavesTime(t, func() stopped {
				h := newHome(t)
				cmd := h.command(t.Context(), h.serving(verb)...)
				cmd.Path, cmd.Args = timeout, append([]string{"timeout", "10m"}, cmd.Args...)
				h.start(cmd)
				h.wait("started")
				signalOnce(t, cmd, syscall.SIGTERM) // as at the end of the time
				cmd.Wait()
				return stopped{code: cmd.ProcessState.ExitCode(), want: code, graced: h.has("graced")}
			})
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
		flags   []string
		// until waits for the moment of the stop.
		until func(*home)
		says  []string
	}{
		"a task that writes": {"trap '' TERM; touch started; exec yes", nil, func(h *home) { h.wait("started") }, []string{
			"jobq: stopping; Ctrl-C again kills;",
			"jobq: ended without what could not be written down (nobody reads what the run prints); those tasks run again",
		}},
		"a run that has ended": {"echo once", nil, func(h *home) { h.awaitRun("w") }, []string{
			"jobq: nobody reads what the run prints; waiting for a reader up to 10s",
			"jobq: ended while nobody reads what it prints; how the run stands: jobq status w",
		}},
		"the result of a stopped run": {"touch started; exec sleep 600", []string{"--json"}, func(h *home) { h.wait("started") }, []string{
			"jobq: stopped; 0 of 1 task ended, nothing is lost",
			"jobq: interrupted",
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
			cmd := h.command(t.Context(), append([]string{"run", file, "--id", "w", "--kill-timeout", "2s", "--quiet"}, tc.flags...)...)
			cmd.Stdout, cmd.Stderr = stdout, &stderr
			h.start(cmd)
			stdout.Close()
			tc.until(h)
			signalOnce(t, cmd, syscall.SIGTERM)
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

// TestAStopGivesCommandsTheirTime has commands that need longer than whoever reads what
// a stopped verb prints is waited for.
func TestAStopGivesCommandsTheirTime(t *testing.T) {
	t.Parallel()
	for verb, code := range map[string]int{"run": 130, "worker": 0} {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			h.env = append(h.env, "GRACE=11", "JOBQ_KILL_TIMEOUT=60s")
			cmd := h.command(t.Context(), h.serving(verb)...)
			h.start(cmd)
			h.wait("started")
			signalOnce(t, cmd, syscall.SIGTERM)
			cmd.Wait()
			if got := cmd.ProcessState.ExitCode(); got != code || !h.has("graced") {
				t.Errorf("the %s ended with %d, want %d; its task had its time: %t", verb, got, code, h.has("graced"))
			}
		})
	}
}

// TestAServiceStopsThoughNobodyReadsItsLog has what reads the log stand still.
func TestAServiceStopsThoughNobodyReadsItsLog(t *testing.T) {
	t.Parallel()
	for verb, tc := range map[string]struct {
		command string
		// last is the last line that is read.
		last string
	}{
		"worker":      {"worker local/cpu --max-idle-backoff 100ms", "task started"},
		"coordinator": {"coordinator", "coordinator runs"},
	} {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			if verb == "worker" {
				h.serving(verb)
			}
			cmd := h.command(t.Context(), strings.Fields(tc.command)...)
			log := h.fifo("log")
			cmd.Stderr = h.fifo("log")
			h.start(cmd)
			h.read(log, tc.last)
			if verb == "worker" {
				h.wait("started")
			}
			fill(t, log)
			signalOnce(t, cmd, syscall.SIGTERM)
			cmd.Wait()
			if got := cmd.ProcessState.ExitCode(); got != 0 || verb == "worker" && !h.has("graced") {
				t.Errorf("the %s ended with %d, want 0; its task had its time: %t", verb, got, h.has("graced"))
			}
		})
	}
}

// fifo opens both ends of a pipe that has a name.
func (h *home) fifo(name string) *os.File {
	h.t.Helper()
	path := filepath.Join(h.dir, name)
	if err := syscall.Mkfifo(path, 0o600); err != nil && !errors.Is(err, fs.ErrExist) {
		h.t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK, 0)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { f.Close() })
	return f
}

// read reads from a pipe until it has seen text.
func (h *home) read(pipe *os.File, text string) {
	h.t.Helper()
	if err := pipe.SetReadDeadline(time.Now().Add(patience)); err != nil {
		h.t.Fatal(err)
	}
	var got []byte
	for part := make([]byte, 4096); !bytes.Contains(got, []byte(text)); {
		n, err := pipe.Read(part)
		if err != nil {
			h.t.Fatalf("%q did not come: %v\n%s", text, err, got)
		}
		got = append(got, part[:n]...)
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
