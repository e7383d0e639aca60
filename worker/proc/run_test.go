//go:build unix

package proc_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"jobq/core/fault"
	"jobq/worker/proc"
	"jobq/worker/proc/proctest"
)

func TestRunReportsHowTheCommandEnded(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	type ending struct {
		Reason         proc.Reason
		ExitCode       int
		Signal         syscall.Signal
		Stdout, Stderr string
		Success        bool
	}
	for name, tc := range map[string]struct {
		spec proc.Spec
		want ending
		code fault.Code // of Result.Err, where the command does not start
		says string
	}{
		"success": {
			spec: proc.Spec{Command: "echo out; echo err >&2"},
			want: ending{Reason: proc.Exited, Stdout: "out\n", Stderr: "err\n", Success: true},
		},
		"exit code": {
			spec: proc.Spec{Command: "exit 3"},
			want: ending{Reason: proc.Exited, ExitCode: 3},
		},
		"a signal of somebody else": {
			spec: proc.Spec{Command: "kill -SEGV $$"},
			want: ending{Reason: proc.Exited, ExitCode: -1, Signal: syscall.SIGSEGV},
		},
		"a program that does not exist is the shell's own verdict": {
			spec: proc.Spec{Command: "exec /no/such/program 2>/dev/null"},
			want: ending{Reason: proc.Exited, ExitCode: 127},
		},
		"quotes, dollars, semicolons and newlines reach the shell and the environment as they are": {
			spec: proc.Spec{
				Command: "printf %s \"$A\"\necho ';' ; echo '$HOME'",
				Env:     environment("A=it's $HOME \"x\"\n2nd\xff"),
			},
			want: ending{Reason: proc.Exited, Stdout: "it's $HOME \"x\"\n2nd\xff;\n$HOME\n", Success: true},
		},
		"the environment is complete": {
			spec: proc.Spec{Command: `echo "[$HOME]"`, Env: nil},
			want: ending{Reason: proc.Exited, Stdout: "[]\n", Success: true},
		},
		"standard input is empty": {
			spec: proc.Spec{Command: "read -r line || echo none"},
			want: ending{Reason: proc.Exited, Stdout: "none\n", Success: true},
		},
		"a command that looks like an option": {
			spec: proc.Spec{Command: "-x 2>/dev/null; echo after"},
			want: ending{Reason: proc.Exited, Stdout: "after\n", Success: true},
		},
		"working directory": {
			spec: proc.Spec{Command: "pwd", Dir: "/"},
			want: ending{Reason: proc.Exited, Stdout: "/\n", Success: true},
		},
		"missing working directory": {
			spec: proc.Spec{Command: "true", Dir: "/no/such/directory"},
			want: ending{Reason: proc.Refused, ExitCode: -1},
			code: fault.Invalid, says: `the working directory "/no/such/directory" does not exist`,
		},
		"working directory that is a file": {
			spec: proc.Spec{Command: "true", Dir: file},
			want: ending{Reason: proc.Refused, ExitCode: -1},
			code: fault.Invalid, says: "is not a directory",
		},
		"an environment over the system's limit": {
			spec: proc.Spec{Command: "true", Env: []string{"A=" + strings.Repeat("x", 256<<10)}},
			want: ending{Reason: proc.Refused, ExitCode: -1},
			code: fault.Invalid, says: "too long",
		},
		"NUL in the command": {
			spec: proc.Spec{Command: "echo a\x00b"},
			want: ending{Reason: proc.Refused, ExitCode: -1},
			code: fault.Invalid, says: "NUL",
		},
		"NUL in the environment": {
			spec: proc.Spec{Command: "true", Env: []string{"A=\x00"}},
			want: ending{Reason: proc.Refused, ExitCode: -1},
			code: fault.Invalid, says: `"A"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			tc.spec.Stdout, tc.spec.Stderr = &stdout, &stderr
			res := proc.Run(t.Context(), tc.spec)
			got := ending{res.Reason, res.ExitCode, res.Signal, stdout.String(), stderr.String(), res.Success()}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Run(%q) (-want +got):\n%s", tc.spec.Command, diff)
			}
			if res.LeakedPipe || res.StillAlive || res.OutputErr != nil {
				t.Errorf("Run(%q) = %+v, want no leak, nothing alive, no output error", tc.spec.Command, res)
			}
			if tc.says == "" {
				if res.Err != nil {
					t.Errorf("Run(%q).Err = %v, want none", tc.spec.Command, res.Err)
				}
				return
			}
			if !fault.Is(res.Err, tc.code) || !strings.Contains(res.Err.Error(), tc.says) {
				t.Errorf("Run(%q).Err = %v, want code %v and %q", tc.spec.Command, res.Err, tc.code, tc.says)
			}
		})
	}
}

func TestRunDeliversEveryByte(t *testing.T) {
	t.Parallel()
	want := make([]byte, 3<<20)
	for i := range want {
		want[i] = byte(i * i >> 3)
	}
	file := filepath.Join(t.TempDir(), "binary")
	if err := os.WriteFile(file, want, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, writer := range map[string]func(io.Writer) io.Writer{
		"to a quick writer": func(w io.Writer) io.Writer { return w },
		"to a slow writer":  func(w io.Writer) io.Writer { return slowWriter{w} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got bytes.Buffer
			// The drain is shorter than the slow writer needs: the bound is on
			// waiting for data, never on data that is there.
			res := proc.Run(t.Context(), proc.Spec{
				Command: "cat " + proctest.Quote(file), Env: environment(), Stdout: writer(&got), Drain: time.Millisecond,
			})
			if !res.Success() || res.LeakedPipe || !bytes.Equal(got.Bytes(), want) {
				t.Errorf("Run = %+v with %d bytes, want success, no leak and the %d bytes of the file", res, got.Len(), len(want))
			}
		})
	}
}

// slowWriter takes a millisecond for each write.
type slowWriter struct{ io.Writer }

func (w slowWriter) Write(b []byte) (int, error) {
	<-time.After(time.Millisecond)
	return w.Writer.Write(b)
}

func TestRunKeepsTheOrderOfAnOutputShared(t *testing.T) {
	t.Parallel()
	var both bytes.Buffer
	res := proc.Run(t.Context(), proc.Spec{Command: "echo 1; echo 2 >&2; echo 3", Stdout: &both, Stderr: &both})
	if got, want := both.String(), "1\n2\n3\n"; got != want || !res.Success() {
		t.Errorf("Run = %+v with %q, want success with %q", res, got, want)
	}
}

func TestRunGoesOnWhenAnOutputCannotBeKept(t *testing.T) {
	t.Parallel()
	full := errors.New("disk full")
	res := proc.Run(t.Context(), proc.Spec{
		Command: "head -c 1000000 /dev/zero && echo done >&2", Env: environment(), Stdout: failingWriter{full},
	})
	if !res.Success() || !errors.Is(res.OutputErr, full) {
		t.Errorf("Run = %+v, want success with the writer's error", res)
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

func TestRunEndsWhatTheCommandLeftBehind(t *testing.T) {
	t.Parallel()
	h := proctest.NewFifo(t)
	var out bytes.Buffer
	res := proc.Run(t.Context(), proc.Spec{
		Command: "(exec 9>" + proctest.Quote(h.Path) + "; echo ready >&9; exec sleep 600) & echo done",
		Env:     environment(), Stdout: &out, Drain: proctest.Patience,
	})
	if !res.Success() || res.LeakedPipe || out.String() != "done\n" {
		t.Errorf("Run = %+v with %q, want success, no leak and %q", res, out.String(), "done\n")
	}
	h.AwaitEnd(t)
	if proc.GroupAlive(res.PGID) {
		t.Errorf("GroupAlive(%d) after Run, want false", res.PGID)
	}
}

// startedRun is a Run in the background.
type startedRun struct {
	pgid   int
	result <-chan proc.Result
}

// start runs spec and returns when its group exists.
func start(ctx context.Context, t *testing.T, spec proc.Spec) startedRun {
	t.Helper()
	pgids, results := make(chan int, 1), make(chan proc.Result, 1)
	spec.Started = func(pgid int) { pgids <- pgid }
	var owner sync.WaitGroup
	owner.Go(func() { results <- proc.Run(ctx, spec) })
	t.Cleanup(owner.Wait)
	select {
	case pgid := <-pgids:
		t.Cleanup(func() { proc.KillGroup(pgid) })
		return startedRun{pgid, results}
	case res := <-results:
		t.Fatalf("Run(%q) ended at once: %+v", spec.Command, res)
		panic("unreachable")
	}
}

func (r startedRun) await(t *testing.T) proc.Result {
	t.Helper()
	select {
	case res := <-r.result:
		return res
	case <-time.After(proctest.Patience):
		t.Fatalf("Run of group %d did not return in %v", r.pgid, proctest.Patience)
		panic("unreachable")
	}
}

var errTimeLimit = errors.New("time limit")

func TestRunStopsTheWholeGroup(t *testing.T) {
	t.Parallel()
	const untilTold = 30 * time.Second // a grace that no test waits for
	for name, tc := range map[string]struct {
		command string // $FIFO is held by every process that must be gone
		env     []string
		grace   time.Duration
		kill    bool // through Spec.Kill, not the context
		code    int
		signal  syscall.Signal
		cause   error
		out     string
	}{
		"children of the shell get the signal too": {
			command: "sleep 600 & sleep 600 & echo ready >&9; wait",
			grace:   untilTold, code: -1, signal: syscall.SIGTERM, cause: errTimeLimit,
		},
		"the exit code decides": {
			command: "trap 'exit 7' TERM; echo ready >&9; while :; do :; done",
			grace:   untilTold, code: 7, cause: errTimeLimit,
		},
		"a command that ends well all the same": {
			command: "trap 'exit 0' TERM; echo ready >&9; while :; do :; done",
			grace:   untilTold, code: 0, cause: errTimeLimit,
		},
		"a child that saves its work has its grace after the shell is gone": {
			command: `"$SELF"; echo never`, env: asRole("slow-term"),
			grace: untilTold, code: -1, signal: syscall.SIGTERM, cause: errTimeLimit,
			out: "ready\nsaving\nsaved\n",
		},
		"SIGKILL after the grace": {
			command: "trap '' TERM; echo ready >&9; while :; do sleep 600; done",
			grace:   30 * time.Millisecond, code: -1, signal: syscall.SIGKILL, cause: errTimeLimit,
		},
		"SIGKILL for children that outlive the shell past the grace": {
			command: "(trap '' TERM; echo ready >&9; while :; do sleep 600; done) & wait",
			grace:   30 * time.Millisecond, code: -1, signal: syscall.SIGTERM, cause: errTimeLimit,
		},
		"a stopped command": {
			command: "trap 'exit 8' TERM; echo ready >&9; kill -STOP $$; while :; do :; done",
			grace:   untilTold, code: 8, cause: errTimeLimit,
		},
		"killed at once": {
			command: "trap '' TERM; echo ready >&9; while :; do sleep 600; done",
			grace:   untilTold, kill: true, code: -1, signal: syscall.SIGKILL, cause: proc.ErrKilled,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := proctest.NewFifo(t)
			kill := make(chan struct{})
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			exe, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			var out safeBuffer
			run := start(ctx, t, proc.Spec{
				Command: h.Hold() + tc.command,
				Env:     append(environment("SELF="+exe), tc.env...),
				Stdout:  &out, Grace: tc.grace, Kill: kill,
			})
			if tc.out == "" {
				h.Await(t, "ready")
			} else {
				proctest.Eventually(t, "the program to be ready", func() bool { return strings.HasPrefix(out.String(), "ready\n") })
			}
			if tc.kill {
				close(kill)
			} else {
				cancel(errTimeLimit)
			}
			res := run.await(t)
			if res.Reason != proc.Cancelled || !errors.Is(res.Cause, tc.cause) || res.ExitCode != tc.code || res.Signal != tc.signal {
				t.Errorf("Run = %+v, want cancelled by %v, exit code %d, signal %v", res, tc.cause, tc.code, tc.signal)
			}
			if got := out.String(); got != tc.out {
				t.Errorf("output %q, want %q", got, tc.out)
			}
			if res.StillAlive || proc.GroupAlive(run.pgid) {
				t.Errorf("group %d is alive after Run", run.pgid)
			}
			h.AwaitEnd(t)
		})
	}
}

// safeBuffer is a buffer that is read while a command writes to it.
type safeBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func TestRunKillsDuringTheGrace(t *testing.T) {
	t.Parallel()
	h := proctest.NewFifo(t)
	kill := make(chan struct{})
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	run := start(ctx, t, proc.Spec{
		Command: h.Hold() + "trap 'echo told >&9' TERM; echo ready >&9; while :; do sleep 600 & wait; done",
		Env:     environment(), Kill: kill, // no grace: SIGTERM alone never ends it
	})
	h.Await(t, "ready")
	cancel(errTimeLimit)
	h.Await(t, "told")
	close(kill)
	res := run.await(t)
	if res.Reason != proc.Cancelled || !errors.Is(res.Cause, errTimeLimit) || res.Signal != syscall.SIGKILL {
		t.Errorf("Run = %+v, want cancelled by the time limit, ended by SIGKILL", res)
	}
	h.AwaitEnd(t)
}

func TestRunDoesNotStartUnderAnEndedContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errTimeLimit)
	file := filepath.Join(t.TempDir(), "started")
	res := proc.Run(ctx, proc.Spec{Command: ": >" + proctest.Quote(file)})
	if res.Reason != proc.Cancelled || !errors.Is(res.Cause, errTimeLimit) || !res.Started.IsZero() || res.Success() {
		t.Errorf("Run = %+v, want cancelled by the time limit and not started", res)
	}
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the command ran: Stat = %v", err)
	}
}

func TestRunHandsDownNoOtherFile(t *testing.T) {
	t.Parallel()
	lock, err := os.Create(filepath.Join(t.TempDir(), "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	for _, command := range []string{"[ /dev/fd/0 -ef /dev/null ]", "for f in /dev/fd/*; do [ $f -ef " + proctest.Quote(lock.Name()) + " ] && exit 1; done; exit 0"} {
		if res := proc.Run(t.Context(), proc.Spec{Command: command, Env: environment()}); !res.Success() {
			t.Errorf("Run(%q) = %+v, want success", command, res)
		}
	}
}

func BenchmarkRun(b *testing.B) {
	env := environment()
	var out bytes.Buffer
	for b.Loop() {
		out.Reset()
		if res := proc.Run(b.Context(), proc.Spec{Command: ":", Env: env, Stdout: &out, Stderr: &out}); !res.Success() {
			b.Fatal(res)
		}
	}
}

// BenchmarkBareStart is what the system alone takes, for comparison.
func BenchmarkBareStart(b *testing.B) {
	env := environment()
	for b.Loop() {
		p, err := os.StartProcess("/bin/sh", []string{"sh", "-c", ":"}, &os.ProcAttr{Env: env})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := p.Wait(); err != nil {
			b.Fatal(err)
		}
	}
}
