package coord_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"jobq/core/port"
	"jobq/internal/testkit"
	"jobq/store/local"
	"jobq/store/wrap/faults"
)

// onDisk returns a world on a fresh embedded store, and what ends a process.
func onDisk(t *testing.T) (w *testkit.World, end func(name string)) {
	t.Helper()
	home := t.TempDir()
	open := map[string]*local.Store{}
	end = func(name string) {
		if s := open[name]; s != nil {
			if err := s.Close(); err != nil {
				t.Errorf("Close(%s) = %v", name, err)
			}
			delete(open, name)
		}
	}
	t.Cleanup(func() {
		for _, name := range []string{"observer", "first", "second"} {
			end(name)
		}
	})
	return testkit.NewWorld(t, func(name string) *port.Store {
		s, err := local.Open(t.Context(), local.Options{Home: home, Prefix: "test", Kind: name})
		if err != nil {
			t.Fatal(err)
		}
		open[name] = s
		return s.Port()
	}), end
}

// playOnDisk runs the diamond with a coordinator that meets plans, then with
// another one that looks at once, as a resumed run does, and sweeps with a clock
// that is ten minutes on.
func playOnDisk(t *testing.T, plans ...faults.Decide) []faults.Call {
	t.Helper()
	ctx := t.Context()
	w, end := onDisk(t)
	w.Options.CommandPatience = 200 * time.Millisecond // a stopped process still tries for so long
	w.Know(diamond())
	r := &replay{w: w, t: t}
	first := w.Start("first", plans...)
	c := first
	takeOver := func() {
		end("first")
		w.Scheduler = testkit.Serial{Shift: 10 * time.Minute}
		c = w.Start("second")
		if err := submit(ctx, r, c); err != nil {
			t.Fatalf("the submission made again: %v", err)
		}
		if err := c.Wake(ctx, "w"); err != nil {
			t.Fatalf("Wake = %v", err)
		}
		if _, err := c.Sweep(ctx); err != nil {
			t.Fatalf("Sweep = %v", err)
		}
	}
	if err := submit(ctx, r, c); err != nil && !c.Process.Stopped() {
		t.Fatal(err)
	}
	for range 20 {
		if c == first && c.Process.Stopped() {
			takeOver()
		}
		if err := drain(ctx, r, c); err != nil && !c.Process.Stopped() {
			t.Fatal(err)
		}
		if w.Take(ctx) == 0 && w.Status(ctx, "w") == allDone {
			break
		}
		w.Finish(ctx)
	}
	expect(t, w, "at the end", allDone)
	for attempt, n := range w.Taken {
		if n > 2 {
			t.Errorf("%s was sent %d times", attempt, n)
		}
	}
	return first.Process.Calls()
}

// TestStopAtEveryStoreCallOnDisk is TestStopAtEveryStoreCall on the embedded
// store, where the end of a process is known at once and no time has to pass. What
// a stop before a call or after a read leaves is what a stop after the write
// before it does, so each write is stopped after, and nothing else.
func TestStopAtEveryStoreCallOnDisk(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("every run waits for the disk")
	}
	for _, call := range playOnDisk(t) {
		if !writes(call) {
			continue
		}
		t.Run(fmt.Sprintf("call %d %s %s", call.N, call.Op, call.Key), func(t *testing.T) {
			t.Parallel()
			playOnDisk(t, faults.StopAfter(call.N))
		})
	}
}

func writes(c faults.Call) bool {
	return !slices.Contains([]string{
		"States.Load", "States.Definition", "Index.Get", "Index.DueBefore", "Index.CancelRequests", "Queue.Receive", "Records.Read",
	}, c.Op)
}
