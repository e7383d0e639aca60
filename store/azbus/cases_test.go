package azbus_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"jobq/core/coord"
	"jobq/core/dag"
	"jobq/core/fault"
	"jobq/core/msg"
	"jobq/core/port"
	"jobq/core/sched"
	"jobq/internal/busstand"
	"jobq/internal/testkit"
	"jobq/store/azbus"
	"jobq/store/memory"
	"jobq/store/wrap/faults"
	"jobq/worker/protocol"
)

// site is a store whose queues are in Service Bus, on virtual time.
type site struct {
	*busstand.Server
	t    *testing.T
	open func(process string) *port.Store
}

// onSite runs f with the queues cpu and inbox.
func onSite(t *testing.T, o azbus.Options, f func(t *testing.T, s site)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := busstand.New(busstand.Options{})
		t.Cleanup(server.Close)
		rest := memory.New(memory.Options{NoFinisher: true})
		s := site{Server: server, t: t, open: func(process string) *port.Store {
			store := *rest.Process(process).Port()
			store.Queues = openVirtual(t, server, o)
			return &store
		}}
		queues := s.open("setup").Queues
		for _, name := range []string{"cpu", testkit.Inbox} {
			if err := queues.Ensure(t.Context(), name); err != nil {
				t.Fatalf("Ensure(%s) = error %v", name, err)
			}
		}
		f(t, s)
	})
}

// wide has n tasks without parents.
func wide(n int) *dag.Definition {
	d := &dag.Definition{Name: "wide", DefaultQueue: "cpu"}
	for i := range n {
		d.Tasks = append(d.Tasks, dag.Task{Name: fmt.Sprintf("t%d", i), Queue: "cpu", Kwargs: []dag.Kwarg{{Key: "cmd", Value: json.RawMessage(`"true"`)}}})
	}
	return d
}

// submitted is a world in which a wide workflow waits for its completions.
func (s site) submitted(tasks int, o coord.Options) (*testkit.World, *testkit.Node) {
	s.t.Helper()
	w := testkit.NewWorld(s.t, s.open)
	o.Prefix = w.Options.Prefix
	w.Options = o
	d := wide(tasks)
	w.Know(d)
	n := w.Start("coordinator")
	if _, err := n.Submit(s.t.Context(), coord.Submission{ID: "w", Definition: d}); err != nil {
		s.t.Fatalf("Submit = error %v", err)
	}
	if got := w.Take(s.t.Context()); got != tasks {
		s.t.Fatalf("workers took %d messages, want %d", got, tasks)
	}
	return w, n
}

func (s site) drain(n *testkit.Node) {
	s.t.Helper()
	if _, err := n.Drain(s.t.Context(), 10*time.Minute, nil); err != nil {
		s.t.Fatalf("Drain = error %v", err)
	}
}

func (s site) status(w *testkit.World, want string) {
	s.t.Helper()
	got, err := w.View().Status(s.t.Context(), "w")
	if err != nil || got.Status != want {
		s.t.Errorf("Status = %v (%+v), error %v; want %s", got.Status, got.Counts, err, want)
	}
}

// TestBadMessagesArePoisonedOnce is C05.
func TestBadMessagesArePoisonedOnce(t *testing.T) {
	t.Parallel()
	onSite(t, azbus.Options{}, func(t *testing.T, s site) {
		w, n := s.submitted(8, coord.Options{})
		w.FinishSome(t.Context(), 4)
		w.Post(t.Context(), []byte("%%%"))
		w.Post(t.Context(), []byte(`{"v":99}`))
		w.Finish(t.Context())
		s.drain(n)
		s.status(w, "completed")
		inbox := w.Store.Queues.Queue(testkit.Inbox)
		if got := w.Queue(t.Context(), inbox); got != "-" {
			t.Errorf("the inbox holds %s, want nothing", got)
		}
		letters, err := inbox.PoisonQueue().Peek(t.Context(), 10)
		if err != nil || len(letters) != 2 {
			t.Fatalf("Peek of the dead letters = %d, error %v; want 2", len(letters), err)
		}
		for i, want := range []string{"%%%", `{"v":99}`} {
			if string(letters[i].Body) != want || letters[i].Reason == "" {
				t.Errorf("dead letter %d is %q for the reason %q, want %q and a reason", i, letters[i].Body, letters[i].Reason, want)
			}
		}
	})
}

// TestACompletionThatComesThreeTimesCountsOnce is C16: at once, after the next
// tasks ran, and after the workflow has ended.
func TestACompletionThatComesThreeTimesCountsOnce(t *testing.T) {
	t.Parallel()
	onSite(t, azbus.Options{}, func(t *testing.T, s site) {
		w := testkit.NewWorld(t, s.open)
		d := wide(4)
		d.Tasks[1].DependsOn, d.Tasks[2].DependsOn, d.Tasks[3].DependsOn = []string{"t0"}, []string{"t0"}, []string{"t1", "t2"}
		w.Know(d)
		n := w.Start("coordinator")
		if _, err := n.Submit(t.Context(), coord.Submission{ID: "w", Definition: d}); err != nil {
			t.Fatalf("Submit = error %v", err)
		}
		again := func() { w.Report(t.Context(), msg.Completion{Workflow: "w", Task: "t0", Attempt: 1, Success: true}) }
		step := func(finish, completed, running int) {
			t.Helper()
			w.Take(t.Context())
			w.FinishSome(t.Context(), finish)
			if completed == 1 {
				again()
			}
			s.drain(n)
			again()
			s.drain(n)
			got, err := w.View().Status(t.Context(), "w")
			if err != nil || got.Counts.Completed != completed || got.Counts.Running != running {
				t.Errorf("Status = %+v, error %v, want %d completed and %d running", got.Counts, err, completed, running)
			}
		}
		step(1, 1, 2)
		step(1, 2, 1)
		step(1, 3, 1)
		step(1, 4, 0)
		s.drain(w.Start("another, with a cold cache"))
		s.status(w, "completed")
		w.Take(t.Context())
		for attempt, sent := range w.Taken {
			if sent != 1 {
				t.Errorf("%s was sent %d times, want once", attempt, sent)
			}
		}
		if err := w.Leftovers(t.Context(), "w"); err != nil {
			t.Error(err)
		}
	})
}

// TestConflictsAreReadAgain is C19: a message survives every lost save.
func TestConflictsAreReadAgain(t *testing.T) {
	t.Parallel()
	for _, conflicts := range []int{1, 2, 5} {
		t.Run(fmt.Sprint(conflicts), func(t *testing.T) {
			t.Parallel()
			onSite(t, azbus.Options{}, func(t *testing.T, s site) {
				w, n := s.submitted(3, coord.Options{FlushRetryLimit: 2})
				w.Finish(t.Context())
				n.Plan(faults.Fail("States.Save", fault.Conflict, conflicts))
				for range 5 {
					s.drain(n)
					time.Sleep(time.Minute)
				}
				s.status(w, "completed")
				if err := w.Leftovers(t.Context(), "w"); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// command is a Runner whose commands last for a time on the virtual clock.
type command struct {
	lasts time.Duration
	// during is called when a command has begun.
	during func(start int)
	starts int
	causes []error
}

func (c *command) Moment() protocol.Moment      { return protocol.Moment(time.Now().UnixNano()) }
func (c *command) Beat(string, protocol.Moment) {}

func (c *command) Run(ctx context.Context, s protocol.Start) protocol.Outcome {
	c.starts++
	out := protocol.Outcome{Kind: protocol.Exited, StartedAt: time.Now()}
	if c.during != nil {
		c.during(c.starts)
	}
	select {
	case <-time.After(c.lasts):
	case <-s.Kill:
		out.Kind, out.ExitCode = protocol.Stopped, -1
	case <-ctx.Done():
		c.causes = append(c.causes, context.Cause(ctx))
		out.Kind, out.ExitCode = protocol.Stopped, -1
	}
	out.EndedAt = time.Now()
	return out
}

// worker is one worker process with one slot.
type worker struct {
	s       site
	store   *port.Store
	handler *protocol.Handler
}

func (s site) worker(name string, r protocol.Runner, lock time.Duration) worker {
	s.t.Helper()
	store := s.open(name)
	m, err := store.Presence.Join(s.t.Context(), port.Member{Kind: "worker"})
	if err != nil {
		s.t.Fatalf("Join = error %v", err)
	}
	return worker{s, store, protocol.New(protocol.Config{
		Store: store, Scheduler: sched.Real{}, Runner: r, Owner: m.ID(), Worker: name,
		Prefix: "local/test", Inbox: testkit.Inbox, Lock: lock, CrashLimit: 3,
	})}
}

// next receives one message and deals with it.
func (w worker) next(ctx context.Context) (port.Delivery, protocol.Result) {
	w.s.t.Helper()
	q := w.store.Queues.Queue("cpu")
	ds, err := q.Receive(ctx, port.ReceiveOptions{Max: 1, Lock: 10 * time.Minute, Wait: time.Hour})
	if err != nil || len(ds) != 1 {
		w.s.t.Fatalf("Receive = %d messages, error %v; want 1", len(ds), err)
	}
	return ds[0], w.handler.Handle(ctx, q, ds[0], 0)
}

func (s site) push(names ...string) {
	s.t.Helper()
	for _, name := range names {
		body, err := msg.EncodeTask(msg.Task{
			ID: msg.FirstSendID("w", name, 1), Workflow: "w", Name: name, Attempt: 1, Prefix: "local/test",
			Kwargs: []msg.Kwarg{{Key: "cmd", Value: json.RawMessage(`"true"`)}},
		})
		if err != nil {
			s.t.Fatalf("EncodeTask = error %v", err)
		}
		q := s.open("sender").Queues.Queue("cpu")
		if errs := q.Send(s.t.Context(), []port.Message{{ID: msg.FirstSendID("w", name, 1), Body: body}}); errs != nil {
			s.t.Fatalf("Send = error %v", errs[0])
		}
	}
}

// reports takes the completions out of the inbox.
func (s site) reports() []msg.Completion {
	s.t.Helper()
	q := s.open("reader").Queues.Queue(testkit.Inbox)
	ds, err := q.Receive(s.t.Context(), port.ReceiveOptions{Max: 32, Lock: time.Minute})
	if err != nil {
		s.t.Fatalf("Receive = error %v", err)
	}
	var all []msg.Completion
	for _, d := range ds {
		in, err := msg.DecodeInbox(d.Body)
		if err != nil {
			s.t.Fatalf("DecodeInbox = error %v", err)
		}
		all = append(all, *in.Completion)
	}
	return all
}

func (s site) count(q port.Queue, want int) {
	s.t.Helper()
	if n, err := q.Count(s.t.Context()); err != nil || n != want {
		s.t.Errorf("Count(%s) = %d, error %v; want %d", q.Name(), n, err, want)
	}
}

// TestTheNewestLockSettles is C06: a task of three times its lock is renewed on
// the way, and what settles it is good then.
func TestTheNewestLockSettles(t *testing.T) {
	t.Parallel()
	onSite(t, azbus.Options{Lock: time.Minute}, func(t *testing.T, s site) {
		s.push("a")
		r := &command{lasts: 3 * time.Minute}
		w := s.worker("worker", r, time.Minute)
		if _, got := w.next(t.Context()); got != protocol.Done {
			t.Errorf("Handle = %v, want Done", got)
		}
		s.count(w.store.Queues.Queue("cpu"), 0)
		all := s.reports()
		if len(all) != 1 || !all[0].Success || all[0].Attempt != 1 || all[0].Start != 1 || r.starts != 1 {
			t.Errorf("the command was started %d times and reported %+v, want one start of attempt 1 and one success", r.starts, all)
		}
		if n := s.Calls(busstand.OpRenew); n < 6 {
			t.Errorf("the lock was renewed %d times in three lock times", n)
		}
	})
}

// TestALostLockDoesNotDouble is C11: the lock of a task of three lock times is
// lost in the middle. Another worker meets the record of the first and starts
// nothing; the report of the first counts.
func TestALostLockDoesNotDouble(t *testing.T) {
	t.Parallel()
	onSite(t, azbus.Options{Lock: 30 * time.Second}, func(t *testing.T, s site) {
		s.push("a")
		second := &command{}
		other := s.worker("second", second, 30*time.Second)
		first := &command{lasts: 90 * time.Second}
		first.during = func(int) {
			time.AfterFunc(40*time.Second, func() {
				s.Inject(busstand.Rule{Op: busstand.OpRenew, Queue: "cpu", Condition: busstand.ServerBusy})
				s.LoseLocks("cpu")
			})
			time.AfterFunc(45*time.Second, func() { s.Heal() })
		}
		done := make(chan protocol.Result)
		go func() {
			_, got := s.worker("first", first, 30*time.Second).next(t.Context())
			done <- got
		}()
		time.Sleep(time.Second)
		d, got := other.next(t.Context())
		if got == protocol.Done || d.Count != 2 || second.starts != 0 {
			t.Errorf("the second worker had delivery %d and dealt with it as %v, with %d starts; want delivery 2, put off, no start", d.Count, got, second.starts)
		}
		<-done
		all := s.reports()
		if first.starts != 1 || len(all) != 1 || !all[0].Success {
			t.Errorf("%d starts reported %+v, want one start and one success", first.starts, all)
		}
		if _, got := other.next(t.Context()); got != protocol.Done || second.starts != 0 {
			t.Errorf("the copy that was put off was dealt with as %v with %d starts, want Done and none", got, second.starts)
		}
		s.count(other.store.Queues.Queue("cpu"), 0)
	})
}

// TestNothingIsFetchedAhead is C13: one slot, 20 messages that each run for a
// third of the lock.
func TestNothingIsFetchedAhead(t *testing.T) {
	t.Parallel()
	onSite(t, azbus.Options{Lock: 30 * time.Second}, func(t *testing.T, s site) {
		var names []string
		for i := range 20 {
			names = append(names, fmt.Sprintf("t%02d", i))
		}
		s.push(names...)
		r := &command{lasts: 10 * time.Second}
		w := s.worker("worker", r, 30*time.Second)
		for range names {
			if d, got := w.next(t.Context()); d.Count != 1 || got != protocol.Done {
				t.Errorf("delivery %d of %s was dealt with as %v, want a first one that is done", d.Count, d.ID, got)
			}
		}
		if r.starts != len(names) {
			t.Errorf("there were %d starts, want %d", r.starts, len(names))
		}
	})
}

// TestDyingWorkersAreCounted is C14: a command that takes its worker with it
// each time ends each of its two attempts as lost, long before the delivery
// limit. The workflow fails, its dependents do not wait, and nothing is left.
func TestDyingWorkersAreCounted(t *testing.T) {
	t.Parallel()
	onSite(t, azbus.Options{Lock: time.Minute}, func(t *testing.T, s site) {
		w := testkit.NewWorld(t, s.open)
		d := wide(3)
		d.Tasks[0].NumRetries = 1
		d.Tasks[1].DependsOn, d.Tasks[2].DependsOn = []string{"t0"}, []string{"t1"}
		w.Know(d)
		n := w.Start("coordinator")
		if _, err := n.Submit(t.Context(), coord.Submission{ID: "w", Definition: d}); err != nil {
			t.Fatalf("Submit = error %v", err)
		}
		last := &command{}
		for attempt := uint32(1); attempt <= 2; attempt++ {
			for i := range 3 {
				s.die(fmt.Sprint("worker ", attempt, ".", i))
			}
			worker := s.worker("last", last, time.Minute)
			for {
				if _, got := worker.next(t.Context()); got == protocol.Done {
					break
				}
			}
			s.drain(n)
			time.Sleep(10 * time.Minute) // a retry may have a back-off
			s.drain(n)
		}
		if last.starts != 0 {
			t.Errorf("after three deaths there were %d starts, want none", last.starts)
		}
		if got, want := w.Status(t.Context(), "w"), "w failed   t0:failed t1:upstream_failed t2:upstream_failed"; got != want {
			t.Errorf("Status = %s, want %s", got, want)
		}
		tasks, err := w.View().Tasks(t.Context(), "w", coord.TaskFilter{Names: []string{"t0"}})
		if err != nil || tasks.Tasks[0].Attempt != 2 || !strings.Contains(tasks.Tasks[0].Reason, "lost") {
			t.Errorf("t0 is %+v, error %v, want it lost at attempt 2", tasks.Tasks, err)
		}
		if err := w.Leftovers(t.Context(), "w"); err != nil {
			t.Error(err)
		}
	})
}

// die is a worker that takes messages until it has started a command, and dies in
// the middle: its calls have no effect from then on.
func (s site) die(name string) {
	s.t.Helper()
	r := &command{lasts: time.Hour}
	ctx, die := context.WithCancel(s.t.Context())
	defer die()
	store := s.open(name)
	process := faults.New(store, sched.Real{}, func(faults.Call) faults.Fate { return faults.Fate{Stop: ctx.Err() != nil} })
	r.during = func(int) { die() }
	m, err := store.Presence.Join(s.t.Context(), port.Member{Kind: "worker"})
	if err != nil {
		s.t.Fatalf("Join = error %v", err)
	}
	h := protocol.New(protocol.Config{
		Store: process.Port(), Scheduler: sched.Real{}, Runner: r, Owner: m.ID(), Worker: "w",
		Prefix: "local/test", Inbox: testkit.Inbox, Lock: time.Minute, CrashLimit: 3, Patience: time.Second,
	})
	takeUntilStarted(s.t, store, process.Port().Queues.Queue("cpu"), h, ctx, r)
}

// takeUntilStarted lets a worker take messages until its command has begun.
func takeUntilStarted(t *testing.T, store *port.Store, q port.Queue, h *protocol.Handler, ctx context.Context, r *command) {
	t.Helper()
	for r.starts == 0 {
		ds, err := store.Queues.Queue("cpu").Receive(t.Context(), port.ReceiveOptions{Max: 1, Lock: time.Minute, Wait: time.Hour})
		if err != nil || len(ds) != 1 {
			t.Fatalf("Receive = %d messages, error %v; want 1", len(ds), err)
		}
		h.Handle(ctx, q, ds[0], 0)
	}
}

// TestCoordinatorsShareTheInbox lets two coordinators drain one inbox at once.
func TestCoordinatorsShareTheInbox(t *testing.T) {
	t.Parallel()
	onSite(t, azbus.Options{}, func(t *testing.T, s site) {
		w, first := s.submitted(60, coord.Options{BatchSize: 5})
		second := w.Start("second")
		w.Finish(t.Context())
		var done []chan error
		for _, n := range []*testkit.Node{first, second} {
			ended := make(chan error, 1)
			done = append(done, ended)
			go func() {
				_, err := n.Drain(t.Context(), 10*time.Minute, nil)
				ended <- err
			}()
		}
		for _, ended := range done {
			if err := <-ended; err != nil {
				t.Errorf("Drain = error %v", err)
			}
		}
		s.status(w, "completed")
		// Whoever wrote its row last may have known less; the sweep puts that right.
		time.Sleep(time.Hour)
		if _, err := first.Sweep(t.Context()); err != nil {
			t.Errorf("Sweep = error %v", err)
		}
		s.drain(first)
		if err := w.Leftovers(t.Context(), "w"); err != nil {
			t.Error(err)
		}
	})
}
