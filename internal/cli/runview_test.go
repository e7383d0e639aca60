package cli

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"jobq/core/coord"
	"jobq/core/state"
	"jobq/internal/config"
	"jobq/internal/local"
)

// viewOf returns a view of n tasks t1 ... tn that writes to a buffer, and how to
// read what it wrote.
func viewOf(t *testing.T, n int) (*runView, func() []string) {
	t.Helper()
	values, err := config.Resolve("run", func(string) (string, bool) { return "", false }, nil)
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	a := &app{out: &stdout, err: &stderr, values: values}
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("t%d", i+1))
	}
	v := newRunView(a, local.Options{WorkflowID: "w1", Workers: 2}, newProgress(names, time.Now()))
	v.begin()
	return v, func() []string {
		v.close()
		return strings.Split(strings.TrimSuffix(stderr.String(), "\n"), "\n")[1:]
	}
}

func TestEachLineCountsOneFurther(t *testing.T) {
	t.Parallel()
	v, lines := viewOf(t, 4)
	exit := &state.Exit{Known: true}
	// One save may hold many moves.
	v.changed(coord.Notice{
		View: coord.Summary{WorkflowID: "w1", Total: 4, Counts: state.Counts{Completed: 1, Failed: 1, UpstreamFailed: 1, Ready: 1}},
		Moves: []coord.Move{
			{Task: "t1", To: "completed", Attempt: 1, Exit: exit},
			{Task: "t4", To: "ready", Cause: state.CauseRetrying, Attempt: 1, Reason: "exit code 3"},
			{Task: "t2", To: "failed", Attempt: 2, Exit: exit, Seconds: 1.5, Reason: "exit code 1: Traceback\n  line 5\nValueError: bad"},
			{Task: "t3", To: "upstream_failed"},
		},
	})
	want := []string{
		"[1/4] t1 completed after <1ms",
		"[1/4] t4 retrying: attempt 1 failed: exit code 3",
		"[2/4] t2 failed after 1.50s, attempt 2: exit code 1: Traceback … ValueError: bad",
		"[3/4] t3 upstream_failed",
	}
	if diff := cmp.Diff(want, lines()); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

func TestManySuccessesShareALine(t *testing.T) {
	t.Parallel()
	const n = 1000
	v, lines := viewOf(t, n)
	for i := range n {
		v.changed(coord.Notice{
			View:  coord.Summary{WorkflowID: "w1", Total: n, Counts: state.Counts{Completed: i, Failed: 1}},
			Moves: []coord.Move{{Task: fmt.Sprintf("t%d", i+1), To: "completed"}},
		})
	}
	v.changed(coord.Notice{View: coord.Summary{WorkflowID: "w1", Total: n}, Moves: []coord.Move{{Task: "t7", To: "failed"}}})
	got := lines()
	if len(got) > 50 {
		t.Errorf("%d successes wrote %d lines, want one a second", n, len(got))
	}
	if last := got[len(got)-1]; !strings.HasSuffix(last, "t7 failed") {
		t.Errorf("the last line is %q, want the failure, which has a line of its own", last)
	}
}

func TestTimesAndReasonsForPeople(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{0: "<1ms", 900 * time.Microsecond: "<1ms", time.Millisecond: "1ms", 2500 * time.Millisecond: "2.50s"} {
		if got := lasted(d); got != want {
			t.Errorf("lasted(%v) = %q, want %q", d, got, want)
		}
	}
	long := brief("exit code 1: " + strings.Repeat("y", 500))
	if n := len([]rune(long)); n > maxBrief {
		t.Errorf("brief of a long line has %d columns, want at most %d", n, maxBrief)
	}
}

// TestASecondInterruptWaitsForNoReader has a pager that stands still: the process
// ends all the same.
func TestASecondInterruptWaitsForNoReader(t *testing.T) {
	t.Parallel()
	v, stderr := viewUnread(t)
	v.killed()
	if got := stderr.String(); !strings.Contains(got, "jobq: killed;") {
		t.Errorf("standard error is %q, want it to say that the run was killed", got)
	}
}

// TestAStopIsToldPastAReaderThatStandsStill: a person who pressed Ctrl-C must not
// believe that nothing happens.
func TestAStopIsToldPastAReaderThatStandsStill(t *testing.T) {
	t.Parallel()
	v, stderr := viewUnread(t)
	v.p.command("t1", 1, true)
	go v.stopping() // it waits for the screen, as whatever else would write
	for deadline := time.Now().Add(time.Minute); !strings.Contains(stderr.String(), "jobq: SIGTERM was sent to t1;"); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("standard error is %q, want it to say that the run stops", stderr.String())
		}
	}
	if got := stderr.String(); strings.Count(got, "jobq: stopping;") != 1 {
		t.Errorf("standard error is %q, want the stop told once", got)
	}
}

// viewUnread returns a view whose screen waits for a reader of standard output, and
// what it writes on standard error.
func viewUnread(t *testing.T) (*runView, *lockedBuffer) {
	t.Helper()
	values, err := config.Resolve("run", func(string) (string, bool) { return "", false }, nil)
	if err != nil {
		t.Fatal(err)
	}
	unread, stdout := io.Pipe()
	t.Cleanup(func() { unread.Close() }) // frees what still writes
	var stderr lockedBuffer
	v := newRunView(&app{out: stdout, err: &stderr, values: values}, local.Options{WorkflowID: "w1"}, newProgress([]string{"t1"}, time.Now()))
	v.begin()
	v.begun.Store(true)
	go v.output(local.Line{Task: "t1", Stream: "stdout", Text: strings.Repeat("x", maxHeld)})
	for v.screen.mu.TryLock() { // until the line is being written
		v.screen.mu.Unlock()
		runtime.Gosched()
	}
	return v, &stderr
}

// lockedBuffer is a bytes.Buffer for several goroutines.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
