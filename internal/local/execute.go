package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"jobq/core/coord"
	"jobq/core/dag"
	"jobq/core/fault"
	"jobq/core/msg"
	"jobq/core/port"
	"jobq/core/sched"
	"jobq/store/local"
	"jobq/worker"
	"jobq/worker/logs"
	"jobq/worker/protocol"
)

// errWorkflowEnded is the cause that stops workers and coordinator at the end.
var errWorkflowEnded = errors.New("the workflow has ended")

const (
	// lookEvery is the rhythm in which commands of other processes are noticed.
	lookEvery = 500 * time.Millisecond
	// lastWords bounds what is still read from the store after a stop.
	lastWords = 10 * time.Second
	// guardianTime is how long the guardian of a killed run may need to end what
	// was still running; until then the run counts as alive.
	guardianTime = 3 * time.Second
	// stuckAfter is how long a stop may take beyond the kill timeout, with the end of
	// a log that the store does not take: what then still waits waits for the store.
	stuckAfter = logs.CloseBound + 10*time.Second
	ownRetry   = 25 * time.Millisecond
	// patientTries is how often a run is asked for before a person is told who has
	// it: one that was just killed is free sooner.
	patientTries = 8
	// ownedFor is how long a run is kept to one process. The store frees it at
	// once when that process dies.
	ownedFor = 365 * 24 * time.Hour
)

// Execute runs the workflow to its end and returns how it ended. When ctx ends
// it stops cleanly, so that another Execute goes on, and returns the present
// summary with an error of code fault.Canceled.
//
// Fails with fault.Conflict when another process is running this workflow or the
// id belongs to another definition, with fault.NotFound for a run to resume that
// does not exist, and with fault.Invalid where the directory of the run is gone.
func Execute(ctx context.Context, o Options) (coord.Summary, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	store, err := local.Open(ctx, local.Options{Home: o.Home, Prefix: o.Prefix, Kind: "run", Logger: o.Logger})
	if err != nil {
		return coord.Summary{}, HomeError{err}
	}
	r := &run{o: o, home: store, trouble: &trouble{tell: o.OnTrouble}, ended: make(chan struct{})}
	r.store = r.trouble.watch(store.Port())
	sum, err := r.execute(ctx)
	if closing := store.Close(); err == nil || !r.lost.Load() {
		err = errors.Join(err, closing)
	}
	return sum, err
}

// HomeError is that Options.Home could not be opened. What else Execute fails with is not
// for the choice of the home.
type HomeError struct{ Cause error }

func (e HomeError) Error() string { return e.Cause.Error() }

// Unwrap returns the error of the store.
func (e HomeError) Unwrap() error { return e.Cause }

// run is one Execute.
type run struct {
	o     Options
	home  *local.Store
	store *port.Store
	c     *coord.Coordinator

	trouble *trouble
	// lost says that the home was removed or replaced under the run.
	lost atomic.Bool

	once  sync.Once
	ended chan struct{}
}

func (r *run) execute(ctx context.Context) (coord.Summary, error) {
	me, err := r.store.Presence.Join(ctx, r.member())
	if err != nil {
		return coord.Summary{}, err
	}
	defer r.leave(ctx, me)
	if err := r.own(ctx, me); err != nil {
		return coord.Summary{}, err
	}
	namespace, d, err := r.namespace(ctx)
	if err != nil {
		return coord.Summary{}, err
	}
	r.c = coord.New(r.store, sched.Real{}, coord.Options{
		Prefix: "local/" + r.o.Prefix, Namespace: namespace, Inbox: r.inbox(),
		OnChange: r.changed, Logger: r.o.Logger,
	})
	dir, err := r.directory(ctx)
	if err != nil {
		return coord.Summary{}, err
	}
	if err := r.begin(ctx, namespace); err != nil {
		return coord.Summary{}, err
	}
	if r.o.OnBegun != nil {
		r.o.OnBegun()
	}
	sum, err := r.c.Status(ctx, r.o.WorkflowID)
	if err != nil || endedStatus(sum.Status) {
		return sum, err
	}
	if err := r.keepDirectory(ctx, dir); err != nil {
		return sum, err
	}
	work, err := worker.New(worker.Config{
		Store: r.store, Prefix: "local/" + r.o.Prefix, Inbox: namespace + r.inbox(),
		Queues: queues(namespace, d), Slots: r.slots(), Logger: r.o.Logger, Executable: r.o.Executable,
		Namespace: namespace, Membership: me, CancelPollInterval: time.Second, Cwd: dir, Output: r.output,
		OnEvent: r.happened, KillTimeout: r.o.KillTimeout,
	})
	if err != nil {
		return sum, err
	}
	return r.serve(ctx, work)
}

// serve runs coordinator and workers until the workflow or ctx ends. Workers
// stop first: what they still report is applied before the coordinator stops.
func (r *run) serve(ctx context.Context, work *worker.Worker) (coord.Summary, error) {
	apart := context.WithoutCancel(ctx)
	workers, stopWorkers := context.WithCancelCause(apart)
	defer stopWorkers(nil)
	coordinator, stopCoordinator := context.WithCancelCause(apart)
	defer stopCoordinator(nil)

	var workErr, serveErr error
	var working, serving sync.WaitGroup
	working.Go(func() { workErr = work.Run(workers); r.end() })
	serving.Go(func() { serveErr = r.c.Serve(coordinator); r.end() })
	cause := r.wait(ctx)
	overdue := r.overdue(cause)
	defer overdue()
	stopWorkers(cause)
	working.Wait()
	stopCoordinator(cause)
	serving.Wait()
	if r.lost.Load() {
		return coord.Summary{}, cause // everything else follows from it
	}

	last, cancel := context.WithTimeoutCause(apart, lastWords, errors.New("the last look at the workflow took too long"))
	defer cancel()
	sum, err := r.c.Status(last, r.o.WorkflowID)
	err = errors.Join(workErr, serveErr, err)
	if err == nil && !endedStatus(sum.Status) && ctx.Err() != nil {
		err = fault.Wrap(fault.Canceled, context.Cause(ctx), "the run was stopped")
	}
	return sum, err
}

// overdue tells OnStuck when the stop for cause takes longer than commands may,
// until the returned function is called.
func (r *run) overdue(cause error) (done func()) {
	if r.o.OnStuck == nil || r.o.KillTimeout < 0 {
		return func() {}
	}
	limit := cmp.Or(r.o.KillTimeout, worker.DefaultKillTimeout) + stuckAfter
	timer := time.AfterFunc(limit, func() {
		if !r.lost.Load() {
			cause = r.trouble.present()
		}
		r.o.OnStuck(cause)
	})
	return func() { timer.Stop() }
}

// wait returns when the workflow has ended, by us or by another process, or ctx
// has, or the home is lost, and says which.
func (r *run) wait(ctx context.Context) error {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-r.ended:
			return errWorkflowEnded
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-look.C:
			if err := r.store.Present(); err != nil {
				r.lost.Store(true)
				return err
			}
			if sum, err := r.c.Status(ctx, r.o.WorkflowID); err == nil && endedStatus(sum.Status) {
				return errWorkflowEnded
			}
		}
	}
}

func (r *run) end() { r.once.Do(func() { close(r.ended) }) }

// changed passes a change of our workflow on and notices its end.
func (r *run) changed(n coord.Notice) {
	if n.View.WorkflowID != r.o.WorkflowID {
		return
	}
	if r.o.OnChange != nil {
		r.o.OnChange(n)
	}
	if endedStatus(n.View.Status) {
		r.end()
	}
}

// happened passes on which commands run, and which could not.
func (r *run) happened(e protocol.Event) {
	if e.Workflow != r.o.WorkflowID {
		return
	}
	if r.o.OnGivenBack != nil && e.Kind == protocol.GivenBack && !errors.Is(e.Err, protocol.ErrStopping) {
		r.o.OnGivenBack(e.Task, e.Err)
	}
	if r.o.OnCommand != nil && e.Kind != protocol.Refused {
		r.o.OnCommand(e.Task, e.Attempt, e.Kind == protocol.Started)
	}
}

func (r *run) output(l worker.OutputLine) {
	if r.o.OnOutput != nil && l.Workflow == r.o.WorkflowID {
		r.o.OnOutput(Line{Task: l.Task, Attempt: l.Attempt, Stream: l.Stream, Text: l.Line})
	}
}

// begin submits, retries or wakes the workflow.
func (r *run) begin(ctx context.Context, namespace string) error {
	if r.o.Definition != nil {
		_, err := r.c.Submit(ctx, coord.Submission{ID: r.o.WorkflowID, Definition: r.o.Definition, Namespace: namespace, By: r.o.By})
		return err
	}
	if r.o.Retry {
		_, err := r.c.Retry(ctx, r.o.WorkflowID, coord.Command{By: r.o.By})
		return err
	}
	return r.c.Wake(ctx, r.o.WorkflowID)
}

// namespace returns the name space of the run's queues and its definition. A
// workflow that was submitted to shared queues keeps them.
func (r *run) namespace(ctx context.Context) (string, *dag.Definition, error) {
	views := coord.New(r.store, sched.Real{}, coord.Options{Logger: r.o.Logger})
	d, namespace, err := views.Definition(ctx, r.o.WorkflowID)
	switch {
	case err == nil && r.o.Definition != nil && dag.Hash(d) == dag.Hash(r.o.Definition):
		return namespace, d, nil
	case err == nil && r.o.Definition == nil:
		return namespace, d, nil
	case r.o.Definition != nil && (err == nil || fault.Is(err, fault.NotFound)):
		return r.namespaces() + r.o.WorkflowID + "/", r.o.Definition, nil
	default:
		return "", nil, err
	}
}

// namespaces is what the name spaces of all runs begin with.
func (r *run) namespaces() string { return strings.ToLower(r.o.Prefix) + "/" }

// own keeps the workflow to this process: two runs of one id would both be
// right, but each would show half of the output.
func (r *run) own(ctx context.Context, me port.Membership) error {
	var err error
	var other port.Member
	for try := range int(guardianTime / ownRetry) {
		err = r.store.Leases.Acquire(ctx, Lease(r.o.WorkflowID), me.ID(), ownedFor)
		if !fault.Is(err, fault.Conflict) {
			return err
		}
		if try == patientTries {
			if other, err = r.holder(ctx); err != nil {
				return err
			}
			if other.PID > 0 && r.o.OnHeld != nil {
				r.o.OnHeld(other)
			}
		}
		if err := (sched.Real{}).Sleep(ctx, ownRetry); err != nil {
			return err
		}
	}
	who := "another process"
	if other.PID > 0 {
		who = fmt.Sprintf("process %d on %s", other.PID, other.Host)
	}
	return fault.Newf(fault.Conflict, "workflow %s is being run by %s", r.o.WorkflowID, who).
		WithRemedy("watch it with `jobq watch " + r.o.WorkflowID + "`, or stop the other process first")
}

// holder returns the process that runs the workflow, as far as it is known.
func (r *run) holder(ctx context.Context) (port.Member, error) {
	id, err := r.store.Leases.Holder(ctx, Lease(r.o.WorkflowID))
	if err != nil {
		return port.Member{}, err
	}
	members, err := r.store.Presence.Members(ctx)
	if err != nil {
		return port.Member{}, err
	}
	for _, m := range members {
		if m.ID == id {
			return m, nil
		}
	}
	return port.Member{}, nil
}

// Lease names the lease by which one process at a time runs a workflow. Its
// holder is that process.
func Lease(workflow string) string { return "run/" + workflow }

// inbox is the name of the completion queue, as every program forms it.
func (r *run) inbox() string { return strings.ToLower(r.o.Prefix) + "-workflow-completions" }

func (r *run) leave(ctx context.Context, me port.Membership) {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), lastWords, errors.New("leaving took too long"))
	defer cancel()
	err := errors.Join(r.store.Leases.Release(ctx, Lease(r.o.WorkflowID), me.ID()), me.Leave(ctx))
	// The queues of this run, and of those that were killed and then ended by others.
	err = errors.Join(err, r.home.RemoveQueues(ctx, r.namespaces(), Lease, isWake))
	if err != nil && !r.lost.Load() {
		r.o.Logger.Warn("not left cleanly", "error", err)
	}
}

// isWake reports whether a message of an inbox asks for nothing but a look at its
// workflow, as a cancellation leaves one for later.
func isWake(body []byte) bool {
	in, err := msg.DecodeInbox(body)
	return err == nil && in.Wake != nil
}

func (r *run) member() port.Member {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	return port.Member{
		Kind: "run", Host: host, PID: os.Getpid(), Slots: r.slots(), Version: r.o.Version,
		Started: time.Now().UTC(),
	}
}

func (r *run) slots() int {
	if r.o.Workers > 0 {
		return r.o.Workers
	}
	return runtime.NumCPU()
}

func queues(namespace string, d *dag.Definition) []string {
	var names []string
	for i := range d.Tasks {
		names = append(names, namespace+d.Tasks[i].Queue)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func endedStatus(word string) bool {
	return word == "completed" || word == "failed" || word == "cancelled" || word == "purged"
}
