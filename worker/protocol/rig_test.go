package protocol_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"jobq/core/fault"
	"jobq/core/msg"
	"jobq/core/port"
	"jobq/core/sched"
	"jobq/store/memory"
	"jobq/worker/protocol"
)

const (
	inbox  = "proj-workflow-completions"
	queueA = "cpu"
	prefix = "local/proj"
)

// rig is a store and one worker process on it.
type rig struct {
	t *testing.T
	// store is the data where they are in memory, nil elsewhere.
	store *memory.Store
	// outside is the store as the test looks at it, port as the worker does.
	outside, port *port.Store
	model         *model
	conf          protocol.Config
	// patience is how long a message is waited for.
	patience time.Duration
	// network can be disturbed; only the cases that run on every store have one.
	network network
}

// bubble runs f on virtual time.
func bubble(t *testing.T, o memory.Options, f func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := memory.New(o)
		r := &rig{t: t, store: s, outside: s.Port(), port: s.Process("worker").Port(), patience: time.Hour}
		r.setUp()
		f(t, r)
	})
}

// setUp makes the queues and the worker.
func (r *rig) setUp() {
	r.t.Helper()
	r.model = &model{}
	for _, name := range []string{queueA, inbox} {
		r.must(r.port.Queues.Ensure(r.t.Context(), name))
	}
	r.conf = protocol.Config{
		Store: r.port, Scheduler: sched.Real{}, Runner: r.model, Owner: r.join(r.port),
		Worker: "host", Prefix: prefix, Inbox: inbox,
	}
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) join(p *port.Store) string {
	r.t.Helper()
	m, err := p.Presence.Join(r.t.Context(), port.Member{Kind: "worker"})
	r.must(err)
	return m.ID()
}

// push sends the message of attempt 1 of task "t", changed by edits.
func (r *rig) push(edits ...func(*msg.Task)) {
	r.t.Helper()
	task := msg.Task{
		ID: "w/t/1", Workflow: "w", Name: "t", Attempt: 1, Prefix: prefix,
		Kwargs: []msg.Kwarg{{Key: "cmd", Value: json.RawMessage(`"true"`)}},
	}
	for _, edit := range edits {
		edit(&task)
	}
	body, err := msg.EncodeTask(task)
	r.must(err)
	r.pushBody(body)
}

func (r *rig) pushBody(body []byte) {
	r.t.Helper()
	// An id of its own for each, so that no service takes a copy for a repeat.
	if errs := r.outside.Queues.Queue(queueA).Send(r.t.Context(), []port.Message{{ID: rand.Text(), Body: body}}); errs != nil {
		r.t.Fatal(errs[0])
	}
}

// receive takes the next message.
func (r *rig) receive() port.Delivery {
	r.t.Helper()
	q := r.port.Queues.Queue(queueA)
	for begun := time.Now(); time.Since(begun) < r.patience; {
		ds, err := q.Receive(r.t.Context(), port.ReceiveOptions{Max: 1, Lock: 10 * time.Minute, Wait: r.patience})
		r.must(err)
		if len(ds) == 1 {
			return ds[0]
		}
		if !q.Props().CanWait {
			r.wait(100 * time.Millisecond)
		}
	}
	r.t.Fatalf("no message came within %v", r.patience)
	return port.Delivery{}
}

// handle receives the next message and has it dealt with.
func (r *rig) handle(ctx context.Context) protocol.Result {
	r.t.Helper()
	d := r.receive()
	return protocol.New(r.conf).Handle(ctx, r.port.Queues.Queue(queueA), d, 1)
}

func (r *rig) expect(what string, got, want protocol.Result) {
	r.t.Helper()
	if got != want {
		r.t.Errorf("%s: Handle = %d, want %d", what, got, want)
	}
}

// completions removes and returns what is in the inbox.
func (r *rig) completions() []msg.Completion {
	r.t.Helper()
	q := r.outside.Queues.Queue(inbox)
	var all []msg.Completion
	for {
		ds, err := q.Receive(r.t.Context(), port.ReceiveOptions{Max: 32, Lock: time.Minute})
		r.must(err)
		if len(ds) == 0 {
			return all
		}
		for _, d := range ds {
			in, err := msg.DecodeInbox(d.Body)
			r.must(err)
			all = append(all, *in.Completion)
		}
		if errs := q.Acknowledge(r.t.Context(), ds); errs != nil {
			r.t.Fatal(errs)
		}
	}
}

// completion returns the only message of the inbox.
func (r *rig) completion() msg.Completion {
	r.t.Helper()
	all := r.completions()
	if len(all) != 1 {
		r.t.Fatalf("the inbox holds %d completions, want 1: %+v", len(all), all)
	}
	return all[0]
}

func (r *rig) left(want int) {
	r.t.Helper()
	n, err := r.outside.Queues.Queue(queueA).Count(r.t.Context())
	r.must(err)
	if n != want {
		r.t.Errorf("the task queue holds %d messages, want %d", n, want)
	}
}

var key = port.RecordKey{Workflow: "w", Task: "t", Attempt: 1}

func (r *rig) record() (msg.AttemptRecord, port.StoredRecord) {
	r.t.Helper()
	stored, err := r.outside.Records.Read(r.t.Context(), key)
	r.must(err)
	rec, err := msg.DecodeRecord(stored.Body)
	r.must(err)
	return rec, stored
}

func (r *rig) putRecord(owner string, rec msg.AttemptRecord) {
	r.t.Helper()
	body, err := msg.EncodeRecord(rec)
	r.must(err)
	_, err = r.outside.Records.Create(r.t.Context(), key, port.Record{Owner: owner, Body: body})
	r.must(err)
}

func (r *rig) row(row port.Row, c port.CancelRequest) {
	r.t.Helper()
	row.Workflow = "w"
	tag, err := r.outside.Index.Project(r.t.Context(), row, "")
	r.must(err)
	_, err = r.outside.Index.SetCancel(r.t.Context(), "w", c, tag)
	r.must(err)
}

// model stands for the command.
type model struct {
	mu     sync.Mutex
	starts []protocol.Start
	beats  int
	// causes are what stopped commands; killed counts those that Kill ended.
	causes []error
	killed int
	// run is what the command does; nil succeeds at once.
	run func(ctx context.Context, s protocol.Start) protocol.Outcome
}

func (m *model) Moment() protocol.Moment { return protocol.Moment(time.Now().UnixNano()) }

func (m *model) Beat(string, protocol.Moment) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.beats++
}

func (m *model) Run(ctx context.Context, s protocol.Start) protocol.Outcome {
	m.mu.Lock()
	m.starts = append(m.starts, s)
	run := m.run
	m.mu.Unlock()
	if run == nil {
		return exit(0)
	}
	out := run(ctx, s)
	if out.Kind == protocol.Stopped {
		m.mu.Lock()
		m.causes = append(m.causes, context.Cause(ctx))
		m.mu.Unlock()
	}
	return out
}

func exit(code int) protocol.Outcome {
	out := protocol.Outcome{Kind: protocol.Exited, ExitCode: code, StartedAt: time.Now(), EndedAt: time.Now()}
	if code != 0 {
		out.Error = "it failed"
	}
	return out
}

// lasting is a command that runs for d and takes grace to end when it is asked.
func (m *model) lasting(d, grace time.Duration) func(context.Context, protocol.Start) protocol.Outcome {
	return func(ctx context.Context, s protocol.Start) protocol.Outcome {
		started := time.Now()
		stopped := protocol.Outcome{Kind: protocol.Stopped, ExitCode: -1, Signal: "SIGTERM", StartedAt: started}
		select {
		case <-time.After(d):
			return exit(0)
		case <-s.Kill:
		case <-ctx.Done():
			select {
			case <-time.After(grace):
				stopped.EndedAt = time.Now()
				return stopped
			case <-s.Kill:
			}
		}
		m.mu.Lock()
		m.killed++
		m.mu.Unlock()
		stopped.Signal, stopped.EndedAt = "SIGKILL", time.Now()
		return stopped
	}
}

func (m *model) runs(t *testing.T, want int) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.starts) != want {
		t.Errorf("the command was started %d times, want %d", len(m.starts), want)
	}
}

// flaky makes calls of Records fail by plan.
type flaky struct {
	port.Records
	mu sync.Mutex
	// lost says which writes happen without an answer; down refuses everything.
	lostCreates, lostChanges int
	down, denied             bool
	// deaf says that reads fail.
	deaf bool
}

var (
	errDown   = fault.New(fault.Unavailable, "no answer")
	errDenied = fault.New(fault.Denied, "not allowed")
)

func (f *flaky) lose(n *int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if *n > 0 {
		*n--
		return true
	}
	return false
}

func (f *flaky) away() bool { return f.outage() != nil }

// outage returns why the records cannot be used.
func (f *flaky) outage() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.down:
		return errDown
	case f.denied:
		return errDenied
	}
	return nil
}

func (f *flaky) refuse(denied bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.denied = denied
}

func (f *flaky) hear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.deaf = false
}

func (f *flaky) isDeaf() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.deaf
}

func (f *flaky) set(down bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down = down
}

func (f *flaky) Create(ctx context.Context, k port.RecordKey, r port.Record) (port.Tag, error) {
	if err := f.outage(); err != nil {
		return "", err
	}
	tag, err := f.Records.Create(ctx, k, r)
	if f.lose(&f.lostCreates) {
		return "", errDown
	}
	return tag, err
}

func (f *flaky) Change(ctx context.Context, k port.RecordKey, r port.Record, ifMatch port.Tag) (port.Tag, error) {
	if err := f.outage(); err != nil {
		return "", err
	}
	tag, err := f.Records.Change(ctx, k, r, ifMatch)
	if f.lose(&f.lostChanges) {
		return "", errDown
	}
	return tag, err
}

func (f *flaky) Read(ctx context.Context, k port.RecordKey) (port.StoredRecord, error) {
	if err := f.outage(); err != nil {
		return port.StoredRecord{}, err
	}
	if f.isDeaf() {
		return port.StoredRecord{}, errDown
	}
	return f.Records.Read(ctx, k)
}

// withRecords puts a flaky front before the records of the worker.
func (r *rig) withRecords(f *flaky) *flaky {
	f.Records = r.port.Records
	r.port.Records = f
	r.port.Finisher = nil
	return f
}

// wait lets time pass, which is virtual for a store in memory.
func (r *rig) wait(d time.Duration) { time.Sleep(d) }
