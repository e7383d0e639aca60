//go:build unix

package guard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"jobq/core/fault"
	"jobq/worker/proc"
	"jobq/worker/proc/proctest"
)

// newKeeper starts a Keeper that is closed with the test.
func newKeeper(t *testing.T, o Options) *Keeper {
	t.Helper()
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	k, err := NewKeeper(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), proctest.Patience)
		defer cancel()
		if err := k.Close(ctx); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return k
}

// run starts command under the guard of k, in the background, and returns its
// result to come. It is never removed: what ends it is the guardian.
func run(t *testing.T, k *Keeper, runID, command string, ttl time.Duration) <-chan proc.Result {
	t.Helper()
	if err := k.Add(t.Context(), Group{RunID: runID, TTL: ttl, Sent: Now()}); err != nil {
		t.Fatal(err)
	}
	results := make(chan proc.Result, 1)
	started := make(chan int, 1)
	var owner sync.WaitGroup
	owner.Go(func() {
		results <- proc.Run(t.Context(), proc.Spec{
			Command: command, Env: environment(runID),
			Started: func(pgid int) {
				k.Started(runID, pgid)
				started <- pgid
			},
		})
	})
	t.Cleanup(owner.Wait)
	pgid := <-started
	t.Cleanup(func() { proc.KillGroup(pgid) })
	return results
}

// guardian returns the number of the present guardian, or 0.
func (k *Keeper) guardian() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.present == nil {
		return 0
	}
	return k.present.cmd.Process.Pid
}

func TestCloseEndsWhatWasNotRemoved(t *testing.T) {
	t.Parallel()
	f := proctest.NewFifo(t)
	k := newKeeper(t, Options{})
	results := run(t, k, proctest.RunID(t), f.Hold()+"echo ready >&9; exec sleep 600", 0)
	f.Await(t, "ready")
	if err := k.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.AwaitEnd(t)
	if res := <-results; res.Signal != syscall.SIGKILL {
		t.Errorf("Run = %+v, want ended by SIGKILL", res)
	}
	if err := k.Close(t.Context()); err != nil {
		t.Errorf("a second Close: %v", err)
	}
}

func TestARemovedRunIsLeftAlone(t *testing.T) {
	t.Parallel()
	f := proctest.NewFifo(t)
	k := newKeeper(t, Options{})
	runID := proctest.RunID(t)
	results := run(t, k, runID, f.Hold()+"echo ready >&9; read -r line; exec sleep 600", 0)
	f.Await(t, "ready")
	k.Remove(runID)
	if err := k.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case res := <-results:
		t.Errorf("Run = %+v, want it alive after the Close of a guardian that was told to forget it", res)
	default:
	}
}

func TestBeatsKeepACommandAlive(t *testing.T) {
	t.Parallel()
	const ttl = 5 * time.Second // in 0.8 of it any machine sends a beat
	f := proctest.NewFifo(t)
	k := newKeeper(t, Options{})
	runID := proctest.RunID(t)
	begun := Now()
	run(t, k, runID, f.Hold()+"echo ready >&9; exec sleep 600", ttl)
	f.Await(t, "ready")
	last := begun
	proctest.Eventually(t, "more than a ttl to pass", func() bool {
		last = Now()
		k.Beat(runID, last)
		return begun.Age() > ttl
	})
	if !f.Held(t) {
		t.Fatal("the command was killed in spite of its beats")
	}
	k.Beat(runID, begun) // an answer that comes late is about an old beat
	f.AwaitEnd(t)
	if age := last.Age(); age < ttl*killAt/10 {
		t.Errorf("the command was killed %v after its last beat, want at least 0.8 of %v", age, ttl)
	}
}

func TestADeadGuardianIsReplacedAndToldEverything(t *testing.T) {
	t.Parallel()
	f := proctest.NewFifo(t)
	begun := time.Now()
	k := newKeeper(t, Options{})
	// Where the start of a guardian takes long, so does that of another.
	limit := max(time.Second, 10*time.Since(begun))
	for i := range 3 {
		run(t, k, proctest.RunID(t), fmt.Sprintf("%secho ready%d >&9; exec sleep 600", f.Hold(), i), 0)
		f.Await(t, fmt.Sprintf("ready%d", i))
	}
	for range 2 { // the second death comes early in a life: it is replaced after a pause
		old, died := k.guardian(), time.Now()
		if err := syscall.Kill(old, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		proctest.Eventually(t, "another guardian", func() bool { now := k.guardian(); return now != 0 && now != old })
		if took := time.Since(died); took > limit {
			t.Errorf("another guardian came after %v, want within %v", took, limit)
		}
	}
	if !f.Held(t) {
		t.Error("the death of the guardian ended a command")
	}
	if err := k.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.AwaitEnd(t)
}

func TestAddWaitsForAGuardian(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "program")
	if err := os.Symlink(selfPath(t), program); err != nil {
		t.Fatal(err)
	}
	var log syncBuffer
	k := newKeeper(t, Options{Executable: program, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err := os.Remove(program); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(k.guardian(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	proctest.Eventually(t, "a start that fails", func() bool { return strings.Contains(log.String(), "no guardian") })

	hopeless, cancel := context.WithTimeoutCause(t.Context(), 10*time.Millisecond, errors.New("start bound"))
	defer cancel()
	if err := k.Add(hopeless, Group{RunID: "a"}); !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "start bound") {
		t.Errorf("Add without a guardian = %v, want unavailable with the cause of the context", err)
	}
	added := make(chan error, 1)
	go func() { added <- k.Add(t.Context(), Group{RunID: "b"}) }()
	if err := os.Symlink(selfPath(t), program); err != nil {
		t.Fatal(err)
	}
	if err := <-added; err != nil {
		t.Errorf("Add with a guardian to come = %v, want none", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, known := k.runs["a"]; known || len(k.runs) != 1 {
		t.Errorf("the list is %v, want b alone", k.runs)
	}
}

// syncBuffer is a buffer for several goroutines.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func TestAddGivesUpWithTheKeeper(t *testing.T) {
	t.Parallel()
	k := newKeeper(t, Options{})
	if err := k.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := k.Add(t.Context(), Group{RunID: "a"}); !fault.Is(err, fault.Unavailable) || !errors.Is(err, errClosed) {
		t.Errorf("Add after Close = %v, want unavailable because it is closed", err)
	}
	k.Started("a", 2) // nothing to tell, nobody to tell it to
	k.Beat("a", Now())
	k.Remove("a")
}

func TestAddRefusesWhatCannotBeGuarded(t *testing.T) {
	t.Parallel()
	k := newKeeper(t, Options{})
	for name, g := range map[string]Group{
		"no run id":       {},
		"a long run id":   {RunID: strings.Repeat("x", maxRunID+1)},
		"NUL in a run id": {RunID: "a\x00b"},
		"negative ttl":    {RunID: "a", TTL: -1},
		"init's group":    {RunID: "a", PGID: 1},
		"every process":   {RunID: "a", PGID: -1},
	} {
		if err := k.Add(t.Context(), g); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: Add(%+v) = %v, want invalid", name, g, err)
		}
	}
}

func TestAGuardianOutlivesWhatATerminalSends(t *testing.T) {
	t.Parallel()
	f := proctest.NewFifo(t)
	k := newKeeper(t, Options{})
	guardian := k.guardian()
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if err := syscall.Kill(guardian, sig); err != nil {
			t.Fatal(err)
		}
	}
	run(t, k, proctest.RunID(t), f.Hold()+"echo ready >&9; exec sleep 600", 0)
	f.Await(t, "ready")
	if err := k.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.AwaitEnd(t)
	if guardian != k.guardian() && k.guardian() != 0 {
		t.Errorf("guardian %d was replaced", guardian)
	}
}

func TestCommandsInheritNothingOfTheGuard(t *testing.T) {
	t.Parallel()
	lock, err := os.Create(filepath.Join(t.TempDir(), "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	k := newKeeper(t, Options{Inherit: []*os.File{lock}})
	k.mu.Lock()
	pipe, err := k.present.pipe.Stat()
	k.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	res := proc.Run(t.Context(), proc.Spec{
		Command: "for f in /dev/fd/*; do ls -Li $f; done 2>/dev/null; exit 0", Env: environment(proctest.RunID(t)), Stdout: &out,
	})
	if !res.Success() || out.Len() == 0 {
		t.Fatalf("Run = %+v with %q, want its open files", res, out.String())
	}
	file, err := lock.Stat()
	if err != nil {
		t.Fatal(err)
	}
	for what, info := range map[string]os.FileInfo{"pipe": pipe, "lock": file} {
		inode := fmt.Sprint(info.Sys().(*syscall.Stat_t).Ino)
		for line := range strings.Lines(out.String()) {
			if strings.Fields(line)[0] == inode {
				t.Errorf("the command has the %s open (inode %s)", what, inode)
			}
		}
	}
}

func TestAGuardianThatDoesNotListenIsReplaced(t *testing.T) {
	t.Parallel()
	k := newKeeper(t, Options{})
	old := k.guardian()
	if err := syscall.Kill(old, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), proctest.Patience)
	defer cancel()
	for k.guardian() == old { // until the pipe is full
		if err := k.Add(ctx, Group{RunID: strings.Repeat("x", maxRunID)}); err != nil {
			t.Fatal(err)
		}
	}
	if now := k.guardian(); now == 0 {
		t.Error("Add returned without a guardian")
	}
}

func TestManyRunsWhileGuardiansDie(t *testing.T) {
	t.Parallel()
	const noGroup = 1 << 30 // above every process number
	k := newKeeper(t, Options{})
	ctx, cancel := context.WithTimeout(t.Context(), proctest.Patience)
	defer cancel()
	var runs sync.WaitGroup
	for range 8 {
		runs.Go(func() {
			runID := proctest.RunID(t)
			for range 200 {
				if err := k.Add(ctx, Group{RunID: runID, TTL: time.Hour, Sent: Now()}); err != nil {
					t.Errorf("Add(%q) = %v", runID, err)
					return
				}
				k.Started(runID, noGroup)
				k.Beat(runID, Now())
				k.Remove(runID)
			}
		})
	}
	for range 3 {
		if guardian := k.guardian(); guardian != 0 {
			syscall.Kill(guardian, syscall.SIGKILL)
			proctest.Eventually(t, "its successor", func() bool { return k.guardian() != guardian && k.guardian() != 0 })
		}
	}
	runs.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.runs) > 0 {
		t.Errorf("the list is %v after every run was removed", k.runs)
	}
}

func TestAKeeperSaysWhyThereIsNoGuardian(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		options Options
		bound   time.Duration
		code    fault.Code
		says    string
	}{
		"no such program":          {Options{Executable: "/no/such/program"}, proctest.Patience, fault.Unavailable, "cannot be started"},
		"a program that ends":      {Options{Executable: "/bin/false"}, proctest.Patience, fault.Unavailable, "ended before it was ready: exit status 1"},
		"a program that is silent": {Options{Executable: "/bin/sleep", Args: []string{"600"}}, 20 * time.Millisecond, fault.Canceled, "given up: bound"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeoutCause(t.Context(), tc.bound, errors.New("bound"))
			defer cancel()
			_, err := NewKeeper(ctx, tc.options)
			if !fault.Is(err, tc.code) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("NewKeeper(%+v) = %v, want %v and %q", tc.options, err, tc.code, tc.says)
			}
		})
	}
}
