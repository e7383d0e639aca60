package coord_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"jobq/core/port"
	"jobq/core/sched"
	"jobq/internal/testkit"
	"jobq/store/memory"
	"jobq/store/wrap/faults"
	"jobq/worker/protocol"
)

// command counts the starts of every attempt; each succeeds at once.
type command struct{ starts map[string]int }

func (command) Moment() protocol.Moment      { return protocol.Moment(time.Now().UnixNano()) }
func (command) Beat(string, protocol.Moment) {}

func (c command) Run(_ context.Context, s protocol.Start) protocol.Outcome {
	c.starts[fmt.Sprintf("%s#%d", s.Task.Name, s.Attempt)]++
	return protocol.Outcome{Kind: protocol.Exited, StartedAt: time.Now(), EndedAt: time.Now()}
}

// mortal is a scheduler on which nobody waits once its process has stopped: the
// worker insists on writing how a command ended for as long as it lives.
type mortal struct {
	sched.Real
	alive context.Context
}

func (m mortal) Sleep(ctx context.Context, d time.Duration) error {
	if err := m.alive.Err(); err != nil {
		return err
	}
	return m.Real.Sleep(ctx, d)
}

// workerProcess is one worker with a store that may fail.
type workerProcess struct {
	process *faults.Process
	handler *protocol.Handler
	port    *port.Store
	// alive ends with the process.
	alive context.Context
}

func startWorker(t *testing.T, s *memory.Store, run command, plans ...faults.Decide) workerProcess {
	t.Helper()
	store := s.Process("worker").Port()
	me, err := store.Presence.Join(t.Context(), port.Member{Kind: "worker"})
	if err != nil {
		t.Fatal(err)
	}
	alive, end := context.WithCancel(t.Context())
	p := faults.New(store, testkit.Serial{}, func(c faults.Call) faults.Fate {
		fate := faults.First(plans...)(c)
		if fate.Stop {
			end()
		}
		return fate
	})
	return workerProcess{alive: alive, process: p, port: p.Port(), handler: protocol.New(protocol.Config{
		Store: p.Port(), Scheduler: mortal{alive: alive}, Runner: run, Owner: me.ID(), Worker: "w", Prefix: "local/test",
		Inbox: testkit.Inbox, Patience: time.Second,
	})}
}

// handle deals with one message of queue cpu, if there is one.
func (w workerProcess) handle(ctx context.Context) int {
	q := w.port.Queues.Queue("cpu")
	ds, err := q.Receive(ctx, port.ReceiveOptions{Max: 1, Lock: 10 * time.Minute})
	if err != nil || len(ds) == 0 {
		return 0
	}
	w.handler.Handle(w.alive, q, ds[0], 0)
	return 1
}

// playWorker runs the diamond with a worker that meets plans, then with another.
func playWorker(t *testing.T, o memory.Options, plans ...faults.Decide) (calls []faults.Call, starts map[string]int) {
	ctx := t.Context()
	s := memory.New(o)
	w := testkit.NewWorld(t, func(name string) *port.Store { return s.Process(name).Port() })
	w.Know(diamond())
	c := w.Start("coordinator")
	mustSubmit(t, c, "w", diamond())
	run := command{starts: map[string]int{}}
	first := startWorker(t, s, run, plans...)
	worker := first
	for range 40 * 60 {
		n := worker.handle(ctx)
		if worker.process.Stopped() && worker.process == first.process {
			worker = startWorker(t, s, run)
		}
		m, err := c.Drain(ctx, time.Minute, nil)
		if err != nil {
			t.Fatal(err)
		}
		if n+m > 0 {
			continue
		}
		if sum, err := c.Status(ctx, "w"); err == nil && ended(sum) && w.Leftovers(ctx, "w") == nil {
			break
		}
		time.Sleep(time.Second)
	}
	expect(t, w, "at the end", allDone)
	if err := w.Leftovers(ctx, "w"); err != nil {
		t.Errorf("at rest: %v", err)
	}
	return first.process.Calls(), run.starts
}

// TestWorkerStopsAtEveryStoreCall stops a worker at each of its calls, before and
// after the effect, and loses the answer of each: every attempt is run, and twice
// only if its first start was lost.
func TestWorkerStopsAtEveryStoreCall(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]memory.Options{
		"one transaction": {}, "three writes": {NoFinisher: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls []faults.Call
			synctest.Test(t, func(t *testing.T) { calls, _ = playWorker(t, o) })
			for kind, plan := range map[string]func(int) faults.Decide{
				"stop before": faults.StopBefore, "stop after": faults.StopAfter, "answer lost": faults.LoseAnswer,
			} {
				most := 2
				if kind == "answer lost" {
					most = 1
				}
				for _, call := range calls {
					t.Run(fmt.Sprintf("%s call %d %s %s", kind, call.N, call.Op, call.Key), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							_, starts := playWorker(t, o, plan(call.N))
							for attempt, n := range starts {
								if n > most {
									t.Errorf("%s was started %d times", attempt, n)
								}
							}
							if len(starts) != 4 {
								t.Errorf("started: %v, want four attempts", starts)
							}
						})
					})
				}
			}
		})
	}
}
