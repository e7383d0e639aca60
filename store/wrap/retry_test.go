package wrap_test

import (
	"context"
	"iter"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"jobq/core/fault"
	"jobq/core/port"
	"jobq/store/memory"
	"jobq/store/storetest"
	"jobq/store/wrap"
)

// clock is the time of the bubble that the test runs in.
type clock struct{}

func (clock) Now() time.Time { return time.Now() }

func (clock) Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// script fails calls in turn, then lets them through. It counts all.
type script struct {
	errs  []error
	calls int
}

func (s *script) next() error {
	s.calls++
	if len(s.errs) == 0 {
		return nil
	}
	err := s.errs[0]
	s.errs = s.errs[1:]
	return err
}

// The flaky types ask the script before every call that a test makes.
type flakyStates struct {
	port.States
	*script
}

func (f flakyStates) Load(ctx context.Context, wf string, known port.Tag) (port.Document, error) {
	if err := f.next(); err != nil {
		return port.Document{}, err
	}
	return f.States.Load(ctx, wf, known)
}

func (f flakyStates) Save(ctx context.Context, wf string, doc []byte, ifMatch port.Tag) (port.Tag, error) {
	if err := f.next(); err != nil {
		return "", err
	}
	return f.States.Save(ctx, wf, doc, ifMatch)
}

func (f flakyStates) Create(ctx context.Context, wf string, doc []byte) (port.Tag, error) {
	if err := f.next(); err != nil {
		return "", err
	}
	return f.States.Create(ctx, wf, doc)
}

type flakyFinisher struct{ *script }

func (f flakyFinisher) Finish(context.Context, port.Finish) (port.Tag, error) { return "", f.next() }

type flakyLog struct {
	port.Log
	*script
}

func (f flakyLog) Append(ctx context.Context, name string, data []byte) error {
	if err := f.next(); err != nil {
		return err
	}
	return f.Log.Append(ctx, name, data)
}

type flakyBlobs struct {
	port.Blobs
	*script
}

// List asks the script after every second name.
func (f flakyBlobs) List(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		n := 0
		for name, err := range f.Blobs.List(ctx, prefix) {
			if n++; n%2 == 0 {
				if err := f.next(); err != nil {
					yield("", err)
					return
				}
			}
			if !yield(name, err) {
				return
			}
		}
	}
}

type flakyQueues struct {
	port.Queues
	*script
}

func (f flakyQueues) Queue(name string) port.Queue { return flakyQueue{f.Queues.Queue(name), f.script} }

type flakyQueue struct {
	port.Queue
	*script
}

// Send asks the script for every message.
func (f flakyQueue) Send(ctx context.Context, messages []port.Message) []error {
	errs := make([]error, len(messages))
	for i, m := range messages {
		if errs[i] = f.next(); errs[i] == nil {
			if sent := f.Queue.Send(ctx, []port.Message{m}); sent != nil {
				errs[i] = sent[0]
			}
		}
	}
	if slices.ContainsFunc(errs, func(err error) bool { return err != nil }) {
		return errs
	}
	return nil
}

// flaky is a store that fails by a script, wrapped by the policy under test.
func flaky(s *script, p wrap.RetryPolicy) *port.Store {
	store := memory.New(memory.Options{}).Port()
	store.States = flakyStates{store.States, s}
	store.Finisher = flakyFinisher{s}
	store.TaskLogs = flakyLog{store.TaskLogs, s}
	store.Outputs = flakyBlobs{store.Outputs, s}
	store.Queues = flakyQueues{store.Queues, s}
	return wrap.Retry(store, clock{}, p)
}

// even is a policy without chance: pauses of 100, 200, 400 ms and so on.
var even = wrap.RetryPolicy{Tries: 5, Random: func() float64 { return 0 }}

func repeatedly(err error, n int) []error { return slices.Repeat([]error{err}, n) }

func TestRetryDecidesByCodeAndCall(t *testing.T) {
	t.Parallel()
	unavailable, throttled := fault.New(fault.Unavailable, "no answer"), fault.New(fault.Throttled, "slow down")
	load := func(ctx context.Context, s *port.Store) error {
		_, err := s.States.Load(ctx, "w", "")
		return err
	}
	appendLog := func(ctx context.Context, s *port.Store) error { return s.TaskLogs.Append(ctx, "w", []byte("x")) }
	finish := func(ctx context.Context, s *port.Store) error {
		_, err := s.Finisher.Finish(ctx, port.Finish{})
		return err
	}
	create := func(ctx context.Context, s *port.Store) error {
		_, err := s.States.Create(ctx, "w", nil)
		return err
	}
	save := func(ctx context.Context, s *port.Store) error {
		_, err := s.States.Save(ctx, "w", nil, "tag")
		return err
	}
	for name, tc := range map[string]struct {
		call  func(context.Context, *port.Store) error
		errs  []error
		code  fault.Code
		calls int
		took  time.Duration
	}{
		"a read goes on until it succeeds":     {load, repeatedly(unavailable, 3), fault.NotFound, 4, 700 * time.Millisecond},
		"a read gives up after its tries":      {load, repeatedly(unavailable, 9), fault.Unavailable, 5, 1500 * time.Millisecond},
		"a verdict is final":                   {load, repeatedly(fault.New(fault.Denied, "no"), 9), fault.Denied, 1, 0},
		"an unclassified error is final":       {load, repeatedly(context.Canceled, 9), fault.Canceled, 1, 0},
		"the service's pause is kept":          {load, []error{throttled.WithRetryAfter(3 * time.Second)}, fault.NotFound, 2, 3 * time.Second},
		"a pause beyond the time is not begun": {load, []error{throttled.WithRetryAfter(time.Hour)}, fault.Throttled, 1, 0},
		"a state is never created twice":       {create, repeatedly(unavailable, 9), fault.Unavailable, 1, 0},
		"a state is never saved twice":         {save, repeatedly(throttled, 9), fault.Throttled, 1, 0},
		"a finish is never repeated":           {finish, repeatedly(throttled, 9), fault.Throttled, 1, 0},
		"an append of unknown outcome is not":  {appendLog, repeatedly(unavailable, 9), fault.Unavailable, 1, 0},
		"a refused append is":                  {appendLog, repeatedly(throttled, 9), fault.Throttled, 5, 1500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &script{errs: tc.errs}
				store := flaky(s, even)
				start := time.Now()
				err := tc.call(t.Context(), store)
				if !fault.Is(err, tc.code) {
					t.Errorf("the call = error %v, want fault %v", err, tc.code)
				}
				if took := time.Since(start); s.calls != tc.calls || took != tc.took {
					t.Errorf("the call was made %d times in %v, want %d times in %v", s.calls, took, tc.calls, tc.took)
				}
			})
		})
	}
}

func TestRetryCutsPausesAtRandomAndAtMost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{errs: repeatedly(fault.New(fault.Unavailable, "no answer"), 100)}
		store := flaky(s, wrap.RetryPolicy{Tries: 100, MaxTime: 10 * time.Second, MaxPause: time.Second, Random: func() float64 { return 0.5 }})
		start := time.Now()
		_, err := store.States.Load(t.Context(), "w", "")
		// Pauses of 75, 150, 300, 600, then 750 ms each.
		if took := time.Since(start); !fault.Is(err, fault.Unavailable) || took > 10*time.Second || took < 9*time.Second || s.calls != 16 {
			t.Errorf("Load = error %v after %d calls in %v, want 16 calls within the last second of 10", err, s.calls, took)
		}
	})
}

func TestRetryStopsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{errs: repeatedly(fault.New(fault.Unavailable, "no answer"), 100)}
		ctx, cancel := context.WithTimeout(t.Context(), 250*time.Millisecond)
		defer cancel()
		start := time.Now()
		_, err := flaky(s, even).States.Load(ctx, "w", "")
		if took := time.Since(start); !fault.Is(err, fault.Unavailable) || took != 250*time.Millisecond || s.calls != 2 {
			t.Errorf("Load = error %v after %d calls in %v, want the store's error after 2 calls in 250ms", err, s.calls, took)
		}
	})
}

func TestRetrySendsOnlyWhatFailed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		passing, final := fault.New(fault.Unavailable, "no answer"), fault.New(fault.Invalid, "never")
		// First round: b, c and e fail; second round: c fails again.
		s := &script{errs: []error{nil, passing, passing, nil, final, nil, passing}}
		store := flaky(s, even)
		if err := store.Queues.Ensure(t.Context(), "cpu"); err != nil {
			t.Fatal(err)
		}
		q := store.Queues.Queue("cpu")
		var messages []port.Message
		for _, body := range []string{"a", "b", "c", "d", "e"} {
			messages = append(messages, port.Message{Body: []byte(body)})
		}
		errs := q.Send(t.Context(), messages)
		if len(errs) != 5 || errs[4] == nil || failures(errs) != 1 {
			t.Errorf("Send = %v, want one final error for the last message", errs)
		}
		ds, err := q.Receive(t.Context(), port.ReceiveOptions{Max: 10, Lock: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, d := range ds {
			got = append(got, string(d.Body))
		}
		slices.Sort(got)
		if diff := cmp.Diff([]string{"a", "b", "c", "d"}, got); diff != "" {
			t.Errorf("messages in the queue differ (-want +got):\n%s", diff)
		}
	})
}

func failures(errs []error) int {
	n := 0
	for _, err := range errs {
		if err != nil {
			n++
		}
	}
	return n
}

func TestRetryGoesOnWithABrokenListing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		passing := fault.New(fault.Unavailable, "no answer")
		s := &script{}
		store := flaky(s, even)
		want := []string{"", "a", "b", "c", "d", "e"}
		for _, name := range want {
			if err := store.Outputs.Put(t.Context(), name, nil); err != nil {
				t.Fatal(err)
			}
		}
		s.errs = []error{passing, nil, passing, nil, nil, passing}
		var got []string
		for name, err := range store.Outputs.List(t.Context(), "") {
			if err != nil {
				t.Fatalf("List = error %v", err)
			}
			got = append(got, name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("List differs (-want +got):\n%s", diff)
		}
		s.errs = repeatedly(passing, 99)
		var last error
		for _, err := range store.Outputs.List(t.Context(), "") {
			last = err
		}
		if !fault.Is(last, fault.Unavailable) {
			t.Errorf("List of a store that stays away ended with error %v, want fault unavailable", last)
		}
	})
}

// TestRetryKeepsTheContract runs the whole suite through the wrapper.
func TestRetryKeepsTheContract(t *testing.T) {
	t.Parallel()
	storetest.Run(t, storetest.Harness{
		New: func(testing.TB) storetest.Data {
			s := memory.New(memory.Options{ProcessIdentity: true})
			processes := map[*port.Store]*memory.Process{}
			return storetest.Data{
				Open: func() *port.Store {
					p := s.Process("test")
					store := wrap.Retry(p.Port(), clock{}, wrap.RetryPolicy{})
					processes[store] = p
					return store
				},
				Kill:        func(store *port.Store) { processes[store].Kill() },
				KnowsOwners: true,
			}
		},
		Virtual: true,
		Tick:    time.Second,
	})
}
