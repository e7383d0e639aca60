package coord_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"jobq/core/coord"
	"jobq/core/msg"
	"jobq/internal/testkit"
	"jobq/store/memory"
	"jobq/store/wrap/faults"
)

// history is what callers, workers and one coordinator at a time do to one
// workflow. A coordinator that stops in a step is followed by another one, and
// the step is made again, as a caller does who got no answer.
type history struct {
	name  string
	steps []step
	// want are the statuses that it may end with: a cancel may come before or
	// after what a crash held up.
	want []string
}

type step struct {
	name string
	do   func(ctx context.Context, r *replay, c *testkit.Node) error
}

type replay struct {
	w *testkit.World
	t *testing.T
	// fails are tasks that fail from now on.
	fails map[string]bool
}

func submit(ctx context.Context, _ *replay, c *testkit.Node) error {
	_, err := c.Submit(ctx, coord.Submission{ID: "w", Definition: diamond()})
	return err
}

func cancel(ctx context.Context, _ *replay, c *testkit.Node) error {
	_, err := c.Cancel(ctx, "w", coord.Command{ID: "cancel-1"})
	return err
}

func retry(ctx context.Context, _ *replay, c *testkit.Node) error {
	_, err := c.Retry(ctx, "w", coord.Command{ID: "retry-1"})
	return err
}

func purge(ctx context.Context, _ *replay, c *testkit.Node) error {
	_, err := c.Purge(ctx, "w", coord.Command{ID: "purge-1"})
	return err
}

func rerun(ctx context.Context, _ *replay, c *testkit.Node) error {
	_, err := c.Rerun(ctx, "w", []string{"B"}, true, coord.Command{ID: "rerun-1"})
	return err
}

// work has workers take and end what was sent.
func work(ctx context.Context, r *replay, _ *testkit.Node) error {
	r.w.Take(ctx)
	r.w.Finish(ctx)
	return nil
}

// take has workers take what was sent and go on with it.
func take(ctx context.Context, r *replay, _ *testkit.Node) error {
	r.w.Take(ctx)
	return nil
}

func drain(ctx context.Context, _ *replay, c *testkit.Node) error {
	_, err := c.Drain(ctx, time.Minute, nil)
	return err
}

// toEnd goes on until the workflow has ended and nothing is left, at most for
// twenty minutes, with a sweep a minute.
func toEnd(ctx context.Context, r *replay, c *testkit.Node) error {
	var left error
	for i := range 20 * 60 {
		if err := drain(ctx, r, c); err != nil {
			return err
		}
		if n := r.w.Take(ctx); n > 0 {
			r.w.Finish(ctx)
			continue
		}
		if s, err := r.w.View().Status(ctx, "w"); err == nil && ended(s) {
			if left = r.w.Leftovers(ctx, "w"); left == nil {
				return nil
			}
		}
		time.Sleep(time.Second)
		if i%60 == 59 {
			if _, err := c.Sweep(ctx); err != nil {
				return err
			}
		}
	}
	return fmt.Errorf("the workflow came to no rest: %s\n%w", r.w.Status(ctx, "w"), left)
}

func ended(s coord.Summary) bool {
	return s.Status == "completed" || s.Status == "failed" || s.Status == "cancelled"
}

func failing(names ...string) step {
	return step{"B fails", func(_ context.Context, r *replay, _ *testkit.Node) error {
		r.fails = map[string]bool{}
		for _, name := range names {
			r.fails[name] = true
		}
		return nil
	}}
}

const allDone = "w completed   A:completed B:completed C:completed D:completed"

func histories() []history {
	return []history{
		{name: "diamond", want: []string{allDone}, steps: []step{
			{"submit", submit}, {"to the end", toEnd},
		}},
		{name: "cancel", want: []string{
			"w cancelled (cancel requested)   A:completed B:cancelled C:cancelled D:cancelled",
			"w cancelled (cancel requested)   A:cancelled B:cancelled C:cancelled D:cancelled",
		}, steps: []step{
			{"submit", submit}, {"work", work}, {"drain", drain}, {"cancel", cancel}, {"to the end", toEnd},
		}},
		{name: "retry", want: []string{allDone}, steps: []step{
			failing("B"), {"submit", submit}, {"to the end", toEnd}, failing(), {"retry", retry}, {"to the end", toEnd},
		}},
		{name: "retry after cancel", want: []string{allDone}, steps: []step{
			{"submit", submit}, {"work", work}, {"drain", drain}, {"cancel", cancel}, {"to the end", toEnd},
			{"retry", retry}, {"to the end", toEnd},
		}},
		{name: "rerun", want: []string{allDone}, steps: []step{
			{"submit", submit}, {"to the end", toEnd}, {"rerun", rerun}, {"to the end", toEnd},
		}},
		{name: "second life", want: []string{allDone}, steps: []step{
			{"submit", submit}, {"to the end", toEnd}, {"purge", purge}, {"submit", submit}, {"to the end", toEnd},
		}},
	}
}

// play plays h with the faults of plan and returns the calls of the first
// process.
func play(t *testing.T, h history, plans ...faults.Decide) (calls []faults.Call, w *testkit.World) {
	ctx := t.Context()
	w = onMemory(t, memory.Options{})
	w.Know(diamond())
	r := &replay{w: w, t: t}
	w.Outcome = func(m msg.Task) msg.Completion {
		if r.fails[m.Name] {
			return msg.Completion{Reason: msg.Exited, Error: "exit code 1"}
		}
		return msg.Completion{Success: true}
	}
	first := w.Start("first", plans...)
	c := first
	for _, s := range h.steps {
		for try := 0; ; try++ {
			err := s.do(ctx, r, c)
			if err == nil {
				break
			}
			if try > 8 {
				t.Fatalf("%s: %v", s.name, err)
			}
			if c.Process.Stopped() {
				c = w.Start("second")
				time.Sleep(61 * time.Second) // what the first had in its hands is free
			}
		}
	}
	if got := w.Status(ctx, "w"); !slices.Contains(h.want, got) {
		t.Errorf("status = %s\nwant one of %q", got, h.want)
	}
	if err := w.Leftovers(ctx, "w"); err != nil {
		t.Errorf("at rest: %v", err)
	}
	return first.Process.Calls(), w
}

// TestStopAtEveryStoreCall stops the coordinator at every one of its calls, before
// and after its effect, and goes on with another one; and it loses the answer of
// every call. The workflow ends right, and nothing is sent twice but what may have
// been on its way when the process stopped.
func TestStopAtEveryStoreCall(t *testing.T) {
	t.Parallel()
	for _, h := range histories() {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			var calls []faults.Call
			synctest.Test(t, func(t *testing.T) {
				var w *testkit.World
				calls, w = play(t, h)
				for attempt, n := range w.Taken {
					if n > 1 {
						t.Errorf("%s was sent %d times, nothing went wrong", attempt, n)
					}
				}
			})
			for kind, plan := range map[string]func(int) faults.Decide{
				"stop before": faults.StopBefore, "stop after": faults.StopAfter, "answer lost": faults.LoseAnswer,
			} {
				for _, call := range calls {
					t.Run(fmt.Sprintf("%s call %d %s %s", kind, call.N, call.Op, call.Key), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							_, w := play(t, h, plan(call.N))
							for attempt, n := range w.Taken {
								if n > 2 {
									t.Errorf("%s was sent %d times", attempt, n)
								}
							}
						})
					})
				}
			}
		})
	}
}
