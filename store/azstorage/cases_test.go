package azstorage_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"jobq/core/coord"
	"jobq/core/dag"
	"jobq/core/msg"
	"jobq/core/port"
	"jobq/internal/testkit"
)

// site is a world whose store is an account of the emulator.
type site struct {
	*testkit.World
	t     *testing.T
	way   *network
	inbox port.Queue
	// log is what coordinators said.
	log lines
}

func newSite(t *testing.T) *site {
	t.Helper()
	a := newAccount(t)
	s := &site{t: t, way: newNetwork()}
	first := a.open(a.options())
	s.World = testkit.NewWorld(t, func(process string) *port.Store {
		if process == "observer" {
			return first
		}
		o := a.options()
		o.Create, o.Transport = false, &http.Client{Transport: s.way}
		return a.open(o)
	})
	s.Logger = slog.New(slog.NewTextHandler(&s.log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	for _, name := range []string{"cpu", testkit.Inbox} {
		if err := first.Queues.Ensure(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	s.inbox = first.Queues.Queue(testkit.Inbox)
	return s
}

// lines collects what is written. Safe for concurrent use.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}

// task is one of queue cpu.
func task(name, cmd string, parents ...string) dag.Task {
	text, err := json.Marshal(cmd)
	if err != nil {
		panic(err)
	}
	return dag.Task{Name: name, Queue: "cpu", DependsOn: parents, Kwargs: []dag.Kwarg{{Key: "cmd", Value: text}}}
}

func (s *site) submit(n *testkit.Node, id string, tasks ...dag.Task) {
	s.t.Helper()
	d := &dag.Definition{Name: "case", DefaultQueue: "cpu", Tasks: tasks}
	s.Know(d)
	if _, err := n.Submit(s.t.Context(), coord.Submission{ID: id, Definition: d}); err != nil {
		s.t.Fatalf("Submit = error %v", err)
	}
}

func (s *site) drain(n *testkit.Node) {
	s.t.Helper()
	if _, err := n.Drain(s.t.Context(), time.Minute, nil); err != nil {
		s.t.Fatalf("Drain = error %v", err)
	}
}

func (s *site) looksLike(when, want string) {
	s.t.Helper()
	if got := s.Status(s.t.Context(), "w"); got != want {
		s.t.Errorf("%s: %s, want %s", when, got, want)
	}
}

func (s *site) empty(q port.Queue) {
	s.t.Helper()
	if n, err := q.Count(s.t.Context()); err != nil || n != 0 {
		s.t.Errorf("queue %s holds %d messages, error %v, want none", q.Name(), n, err)
	}
}

// TestACompletionThatComesThreeTimesCountsOnce is C16: at once, after the next
// tasks ran, and after the workflow has ended.
func TestACompletionThatComesThreeTimesCountsOnce(t *testing.T) {
	t.Parallel()
	s, ctx := newSite(t), t.Context()
	n := s.Start("coordinator")
	s.submit(n, "w", task("A", "true"), task("B", "true", "A"), task("C", "true", "A"), task("D", "true", "B", "C"))
	again := func() { s.Report(ctx, msg.Completion{Workflow: "w", Task: "A", Attempt: 1, Success: true}) }
	s.Take(ctx)
	s.Finish(ctx)
	again()
	s.drain(n)
	s.looksLike("twice at once", "w running   A:completed B:running C:running D:pending")
	s.Take(ctx)
	s.FinishSome(ctx, 1)
	s.drain(n)
	again()
	s.drain(n)
	if got, err := s.View().Status(ctx, "w"); err != nil || got.Counts.Completed != 2 || got.Counts.Running != 1 {
		t.Errorf("after B or C ran: %+v, error %v, want 2 completed and 1 running", got.Counts, err)
	}
	s.Finish(ctx)
	s.drain(n)
	s.Take(ctx)
	s.Finish(ctx)
	s.drain(n)
	before, err := s.View().Status(ctx, "w")
	if err != nil || before.Counts.Completed != 4 {
		t.Fatalf("Status = %+v, error %v, want 4 completed", before, err)
	}
	again()
	s.drain(n)
	s.drain(s.Start("another, with a cold cache"))
	s.looksLike("after the end", "w completed   A:completed B:completed C:completed D:completed")
	if after, err := s.View().Status(ctx, "w"); err != nil || !cmp.Equal(after, before) {
		t.Errorf("Status after the end = error %v, difference %s", err, cmp.Diff(before, after))
	}
	s.Take(ctx)
	for attempt, sent := range s.Taken {
		if sent != 1 {
			t.Errorf("%s was sent %d times, want once", attempt, sent)
		}
	}
	if err := s.Leftovers(ctx, "w"); err != nil {
		t.Error(err)
	}
}

// TestTwoBadOfTenArePoisonedOnce is C05 with a coordinator: the good ones apply,
// the bad ones are moved with a word, once, and not met again.
func TestTwoBadOfTenArePoisonedOnce(t *testing.T) {
	t.Parallel()
	s, ctx := newSite(t), t.Context()
	n := s.Start("coordinator")
	var tasks []dag.Task
	for i := range 8 {
		tasks = append(tasks, task(fmt.Sprint("t", i), "true"))
	}
	s.submit(n, "w", tasks...)
	s.Take(ctx)
	s.FinishSome(ctx, 4)
	s.Post(ctx, []byte("%%%"))
	s.Post(ctx, []byte(`{"v":99}`))
	s.Finish(ctx)
	for range 3 {
		s.drain(n)
	}
	if got, err := s.View().Status(ctx, "w"); err != nil || got.Status != "completed" || got.Counts.Completed != 8 {
		t.Errorf("Status = %+v, error %v, want 8 completed", got, err)
	}
	s.empty(s.inbox)
	var bad []string
	for _, d := range receive(t, s.inbox.PoisonQueue(), 32, time.Minute) {
		bad = append(bad, string(d.Body))
		if d.Reason == "" {
			t.Errorf("%s was moved without a reason", d.Body)
		}
	}
	if len(bad) != 2 || bad[0] != "%%%" || bad[1] != `{"v":99}` {
		t.Errorf("the poison queue holds %q, want the two bad messages", bad)
	}
	if count := n.Count(); count["poison"] != 2 || count["received"] != 10 {
		t.Errorf("%d messages were received and %d poisoned, want 10 and 2", count["received"], count["poison"])
	}
	if said := s.log.count("message is poison"); said != 2 {
		t.Errorf("the log says %d times that a message is poison, want 2", said)
	}
}

// TestConflictsOfEveryKindAreReadAgain is C19 and C20 with a coordinator: saves
// are refused once, twice and five times, with each of the codes and with none.
func TestConflictsOfEveryKindAreReadAgain(t *testing.T) {
	t.Parallel()
	codes := []answer{{status: 412, code: "ConditionNotMet"}, {status: 412, code: "TargetConditionNotMet"}, {status: 412}, {status: 409, code: "BlobAlreadyExists"}, {status: 412, body: "<html/>"}}
	for _, conflicts := range []int{1, 2, 5} {
		for first, code := range codes {
			t.Run(fmt.Sprintf("%d from %d %s", conflicts, code.status, code.code), func(t *testing.T) {
				t.Parallel()
				s, ctx := newSite(t), t.Context()
				s.Options.FlushRetryLimit = 2
				n := s.Start("coordinator")
				s.submit(n, "w", task("A", "true"), task("B", "true", "A"))
				s.Take(ctx)
				s.Finish(ctx)
				refused := 0
				s.way.set(func(r *http.Request) (*http.Response, error) {
					if !isPut(r) || !strings.HasSuffix(r.URL.Path, "/w.state.bin") || refused == conflicts {
						return nil, nil
					}
					refused++
					return codes[(first+refused-1)%len(codes)].to(r)
				}, nil)
				s.drain(n)
				if held, err := s.inbox.Count(ctx); conflicts > 3 && (err != nil || held != 1) {
					t.Errorf("past the limit the inbox holds %d messages, error %v, want the completion back", held, err)
				}
				for deadline := time.Now().Add(time.Minute); s.Take(ctx) == 0 && time.Now().Before(deadline); {
					s.drain(n)
				}
				s.Finish(ctx)
				s.drain(n)
				s.looksLike("in the end", "w completed   A:completed B:completed")
				if got := n.Count()["conflicts"]; refused != conflicts || got < int64(min(conflicts, 3)) {
					t.Errorf("%d saves were refused and %d conflicts seen, want %d", refused, got, conflicts)
				}
				if s.Taken["w/B#1"] != 1 {
					t.Errorf("B was sent %d times, want once", s.Taken["w/B#1"])
				}
				s.empty(s.inbox)
				s.empty(s.inbox.PoisonQueue())
			})
		}
	}
}

// padded is a task whose whole first message has size bytes in workflow id.
func (s *site) padded(ctx context.Context, n *testkit.Node, id string, size int) dag.Task {
	s.t.Helper()
	s.submit(n, "probe-"+id, task("t", ": "))
	ds := receive(s.t, s.Store.Queues.Queue("cpu"), 1, time.Minute)
	if len(ds) != 1 {
		s.t.Fatal("the probe was not sent")
	}
	s.Store.Queues.Queue("cpu").Acknowledge(ctx, ds)
	bare := len(ds[0].Body) - strings.Count(string(ds[0].Body), "probe-"+id)*len("probe-")
	return task("t", ": "+strings.Repeat("x", size-bare))
}

// TestTheWholeMessageIsMeasured is C01: what fits is sent and arrives whole, and
// what does not ends its task with the size in the reason, not waiting for ever.
func TestTheWholeMessageIsMeasured(t *testing.T) {
	t.Parallel()
	limit := 65_536
	for size, fits := range map[int]bool{45_000: true, 49_152: true, 49_153: true, 60_000: true, limit - 64: true, limit - 63: false, 70_000: false} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			s, ctx := newSite(t), t.Context()
			n := s.Start("coordinator")
			s.submit(n, "w", s.padded(ctx, n, "w", size))
			ds := receive(t, s.Store.Queues.Queue("cpu"), 2, time.Minute)
			s.drain(n)
			got, err := s.View().Tasks(ctx, "w", coord.TaskFilter{})
			if err != nil {
				t.Fatal(err)
			}
			if fits {
				if len(ds) != 1 || len(ds[0].Body) != size || got.Tasks[0].Status != "running" {
					t.Fatalf("%d messages came, the task is %s; want one of %d bytes and running", len(ds), got.Tasks[0].Status, size)
				}
				return
			}
			reason := got.Tasks[0].Reason
			if len(ds) != 0 || got.Status != "failed" || !strings.Contains(reason, fmt.Sprint(size, " bytes")) || !strings.Contains(reason, `task "t"`) {
				t.Errorf("%d messages came and the workflow is %s because of %q; want none, failed, and task and size named", len(ds), got.Status, reason)
			}
		})
	}
}

// TestAMessageAtTheLimitGoesThroughEveryRetry is C03: a task that fails 13 times
// has a message that grows by a digit on the way.
func TestAMessageAtTheLimitGoesThroughEveryRetry(t *testing.T) {
	t.Parallel()
	for under, attempts := range map[int]int{64: 13, 64 + 20: 13, 20: 1} {
		t.Run(fmt.Sprintf("%d bytes under the limit", under), func(t *testing.T) {
			t.Parallel()
			s, ctx := newSite(t), t.Context()
			s.Outcome = func(msg.Task) msg.Completion { return msg.Completion{Error: "exit 1"} }
			n := s.Start("coordinator")
			// The retries that are left stand in the message with their two digits.
			long := s.padded(ctx, n, "w", 65_536-under-1)
			long.NumRetries = 12
			s.submit(n, "w", long)
			for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); {
				s.Take(ctx)
				s.Finish(ctx)
				s.drain(n)
				if got, err := s.View().Status(ctx, "w"); err != nil || got.Status == "failed" {
					break
				}
			}
			s.looksLike("in the end", "w failed   t:failed")
			got, err := s.View().Tasks(ctx, "w", coord.TaskFilter{})
			if err != nil {
				t.Fatal(err)
			}
			if int(got.Tasks[0].Attempt) != attempts {
				t.Errorf("it failed at attempt %d with the reason %.200q, want %d", got.Tasks[0].Attempt, got.Tasks[0].Reason, attempts)
			}
			if sent := len(s.Taken); attempts > 1 && sent != attempts {
				t.Errorf("%d attempts were sent, want %d", sent, attempts)
			}
			s.empty(s.inbox)
		})
	}
}
