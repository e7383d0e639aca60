package cli

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"jobq/core/coord"
	"jobq/core/dag"
	"jobq/core/fault"
	"jobq/core/msg"
	"jobq/core/port"
	"jobq/core/sched"
	"jobq/store/memory"
)

// reader is a writer that calls f after its first write.
type reader struct {
	bytes.Buffer
	f func()
}

func (r *reader) Write(p []byte) (int, error) {
	n, err := r.Buffer.Write(p)
	if f := r.f; f != nil {
		r.f = nil
		f()
	}
	return n, err
}

// TestFollowPrintsTheEndOfEachAttempt: what an attempt wrote last is printed though
// the next one has begun by then.
func TestFollowPrintsTheEndOfEachAttempt(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	store := memory.New(memory.Options{}).Port()
	c := coord.New(store, sched.Real{}, coord.Options{})
	d := &dag.Definition{Name: "one", Tasks: []dag.Task{{Name: "a", NumRetries: 2, Kwargs: []dag.Kwarg{{Key: "cmd", Value: []byte(`"true"`)}}}}}
	if _, err := c.Submit(ctx, coord.Submission{ID: "w1", Definition: d}); err != nil {
		t.Fatal(err)
	}
	write := func(attempt uint32, text string) {
		t.Helper()
		if err := store.TaskLogs.Append(ctx, msg.LogName("w1", "a", attempt, 1), []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	end := func(attempt uint32, success bool) {
		t.Helper()
		body, err := msg.EncodeCompletion(msg.Completion{Workflow: "w1", Task: "a", Attempt: attempt, Success: success})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Drain(ctx, time.Minute, []port.Delivery{{ID: "x", Body: body, Count: 1}}); err != nil {
			t.Fatal(err)
		}
	}
	write(1, "one")
	out := &reader{f: func() {
		write(1, " and its end\n")
		end(1, false)
		write(2, "two\n")
		end(2, false)
		write(3, "three\n")
		end(3, true)
	}}
	l := logReader{session: &session{Coordinator: c, store: store}, out: out, note: func(string, ...any) {}, wf: "w1", pause: time.Millisecond}
	if err := l.follow(ctx, "a", 0); err != nil {
		t.Fatal(err)
	}
	const want = "one and its end\ntwo\nthree\n"
	if got := out.String(); got != want {
		t.Errorf("follow printed %q, want %q", got, want)
	}
}

// TestFollowSaysWhatItWaitsFor: whoever follows a task that has not begun is told why
// there is nothing to see.
func TestFollowSaysWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	store := memory.New(memory.Options{}).Port()
	c := coord.New(store, sched.Real{}, coord.Options{})
	d := &dag.Definition{Name: "one", Tasks: []dag.Task{{Name: "a", Queue: "cpu", Kwargs: []dag.Kwarg{{Key: "cmd", Value: []byte(`"true"`)}}}}}
	if _, err := c.Submit(ctx, coord.Submission{ID: "w1", Definition: d}); err != nil {
		t.Fatal(err)
	}
	var told string
	note := func(format string, args ...any) {
		told = fmt.Sprintf(format, args...)
		stop()
	}
	l := logReader{session: &session{Coordinator: c, store: store}, out: new(bytes.Buffer), note: note, wf: "w1", pause: time.Hour}
	if err := l.follow(ctx, "a", 0); !fault.Is(err, fault.Canceled) {
		t.Errorf("follow = %v, want it to wait until it is stopped", err)
	}
	if want := "a: waits for a worker of queue cpu"; told != want {
		t.Errorf("follow said %q, want %q", told, want)
	}
}
