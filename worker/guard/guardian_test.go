//go:build unix

package guard

import (
	"bytes"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"jobq/worker/proc/proctest"
)

// commands that a guardian has to end; each writes ready when it is complete.
func commands(f *proctest.Fifo) map[string]string {
	all := map[string]string{
		"one process":                       f.Hold() + "echo ready >&9; exec sleep 600",
		"children behind a pipe":            f.Hold() + "sleep 600 | (echo ready >&9; exec sleep 600)",
		"children that ignore every signal": f.Hold() + "trap '' TERM INT HUP; (sleep 600; sleep 600) & echo ready >&9; wait",
	}
	if runtime.GOOS == "linux" { // elsewhere what leaves the group is not found
		all["a child in a session of its own"] = f.Hold() + "setsid sh -c 'echo ready >&9; exec sleep 600' & exec sleep 600"
		all["a child that outlives its parent in a session of its own"] = f.Hold() +
			"setsid sh -c 'sh -c \"echo ready >&9; exec sleep 600\" &'; exec sleep 600"
	}
	return all
}

func TestTheCommandsOfAKilledWorkerEnd(t *testing.T) {
	t.Parallel()
	for name := range commands(&proctest.Fifo{}) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := proctest.NewFifo(t)
			begun := time.Now()
			w := startWorker(t, proctest.RunID(t), commands(f)[name], 0)
			f.Await(t, "ready")
			killed := time.Now()
			w.cmd.Process.Kill()
			f.AwaitEnd(t)
			// Some milliseconds on a machine that is free; the promise is a
			// second, and the rest is for a machine that runs other tests. One on
			// which all takes long shows that at the start.
			limit := max(5*time.Second, 10*killed.Sub(begun))
			if took := time.Since(killed); took > limit {
				t.Errorf("the command lived on for %v after its worker, want %v at most", took, limit)
			}
			w.awaitUnlocked(t)
		})
	}
}

func TestTheCommandsOfAStoppedWorkerEndBeforeTheTTL(t *testing.T) {
	t.Parallel()
	const ttl = 6 * time.Second // within 0.8 of it any machine starts the command
	for name := range commands(&proctest.Fifo{}) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := proctest.NewFifo(t)
			begun := time.Now()
			w := startWorker(t, proctest.RunID(t), commands(f)[name], ttl)
			f.Await(t, "ready")
			if err := w.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			f.AwaitEnd(t)
			if took := time.Since(begun); took < ttl*8/10 {
				t.Errorf("the command was killed %v after its only beat, want at least 0.8 of %v", took, ttl)
			}
			if !w.locked(t) {
				t.Error("the lock of a worker that is only stopped is free")
			}
		})
	}
}

func TestTheLockIsHeldUntilTheLastGroupIsGone(t *testing.T) {
	t.Parallel()
	f := proctest.NewFifo(t)
	w := startWorker(t, proctest.RunID(t), f.Hold()+"sh -c 'echo ready >&9; exec sleep 600' & wait", 0)
	f.Await(t, "ready")
	// With the guardian stopped, the parent-death signal ends the leader and
	// nothing ends its child.
	if err := syscall.Kill(w.guardian, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	w.cmd.Process.Kill()
	w.cmd.Wait()
	if !w.locked(t) || !f.Held(t) {
		t.Errorf("worker dead, guardian stopped: lock held %v, child alive %v, want both", w.locked(t), f.Held(t))
	}
	if err := syscall.Kill(w.guardian, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	w.awaitUnlocked(t)
	if f.Held(t) {
		t.Error("the lock is free while a process of the task is alive")
	}
}

func TestAGuardianIsForKeepersOnly(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ input, says string }{
		"nothing":        {"", "before its preamble"},
		"a person":       {"hello guardian\n", `"hello gu"`},
		"another format": {"jobqgrd2xxxxxxx", `"jobqgrd2"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(selfPath(t), Verb)
			cmd.Stdin = strings.NewReader(tc.input)
			out, _ := cmd.Output()
			if code := cmd.ProcessState.ExitCode(); code != exitUsage || !bytes.Contains(out, []byte(tc.says)) {
				t.Errorf("the guardian given %q: exit code %d, %q, want %d and %q", tc.input, code, out, exitUsage, tc.says)
			}
		})
	}
}

func TestAGuardianThatCannotReadItsPipeKills(t *testing.T) {
	t.Parallel()
	f := proctest.NewFifo(t)
	k := newKeeper(t, Options{})
	run(t, k, proctest.RunID(t), f.Hold()+"echo ready >&9; exec sleep 600", 0)
	f.Await(t, "ready")
	k.mu.Lock()
	k.present.write(bytes.Repeat([]byte{0xff}, headerBytes))
	k.mu.Unlock()
	f.AwaitEnd(t)
}

func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		k, err := NewKeeper(b.Context(), Options{Executable: selfPath(b)})
		if err != nil {
			b.Fatal(err)
		}
		if err := k.Close(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkGuardedRun is what the guardian costs one command.
func BenchmarkGuardedRun(b *testing.B) {
	k, err := NewKeeper(b.Context(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer k.Close(b.Context())
	for b.Loop() {
		if err := k.Add(b.Context(), Group{RunID: "run"}); err != nil {
			b.Fatal(err)
		}
		k.Started("run", os.Getpid()) // never killed: it is removed before the pipe ends
		k.Remove("run")
	}
}
