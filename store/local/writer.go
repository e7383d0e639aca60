package local

import (
	"context"
	"database/sql"
	"errors"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"jobq/core/fault"
)

const (
	// maxRequests bounds one transaction, so that the first answer is not held
	// up by a crowd.
	maxRequests = 128
	// gatherTime bounds the wait for callers that were answered just now. A sync
	// takes several times as long.
	gatherTime = 50 * time.Microsecond
	// lockPause lies between two tries to get the lock from another process.
	lockPause = 500 * time.Microsecond
	// pollInterval is how soon a waiting receive hears of another process.
	pollInterval = 15 * time.Millisecond
)

// request is one write that waits for its transaction.
type request struct {
	// run makes the change. It may be called again after a rollback, so it sets
	// its results afresh. An error with a code refuses this request alone and
	// promises that run changed nothing; any other error undoes the transaction.
	run func(*tx) error
	// relaxed says that the change may be lost with the power.
	relaxed bool
	state   atomic.Int32
	done    chan error
}

// The states of a request.
const (
	waiting int32 = iota
	running
	abandoned
)

// writer owns the one connection that writes.
type writer struct {
	tx
	// refusal, where set, is the answer to every write: there is no connection.
	refusal  error
	db       *sql.DB
	conn     *sql.Conn
	path     string
	bell     *bell
	requests chan *request
	stop     chan struct{}
	stopped  chan struct{}
	// relaxed is what the connection's synchronous setting is now.
	relaxed bool
	// crowd is how many requests the transaction before answered.
	crowd int
	// pending are durable requests that let relaxed ones go first. They do so
	// once: putOff says that they did.
	pending []*request
	putOff  bool
	version int64
	polled  time.Time
}

// tx is a transaction as its requests see it.
type tx struct {
	statements
	ctx context.Context
	// rung are the queues that have something new after the commit.
	rung []string
}

func openWriter(ctx context.Context, path string, b *bell) (*writer, error) {
	db, err := connect(path, 1, "synchronous(FULL)", "wal_autocheckpoint(4000)", "journal_size_limit(67108864)", "cache_size(-16000)")
	if err != nil {
		return nil, err
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, errors.Join(classify(err, path, "open the database"), db.Close())
	}
	// Only now: opening has to wait for a process that is just closing the file.
	if _, err := conn.ExecContext(ctx, "PRAGMA busy_timeout = 0"); err != nil {
		return nil, errors.Join(classify(err, path, "open the database"), conn.Close(), db.Close())
	}
	w := &writer{
		// The writer outlives the call that opened it, and a caller who gives up
		// must not undo the writes of others.
		tx:       tx{ctx: context.WithoutCancel(ctx), statements: statements{prepare: conn.PrepareContext}},
		db:       db,
		conn:     conn,
		path:     path,
		bell:     b,
		requests: make(chan *request),
		stop:     make(chan struct{}),
		stopped:  make(chan struct{}),
	}
	go func() {
		defer close(w.stopped)
		w.loop()
	}()
	return w, nil
}

// close answers what waits and ends the writer.
func (w *writer) close() error {
	if w.refusal != nil {
		return nil
	}
	close(w.stop)
	<-w.stopped
	return classify(errors.Join(w.conn.Close(), w.db.Close()), w.path, "close the database")
}

// do runs a change and returns when it is committed, refused or undone. When
// ctx ends first it returns at once, and the change does not happen.
func (w *writer) do(ctx context.Context, relaxed bool, run func(*tx) error) error {
	if w.refusal != nil {
		return w.refusal
	}
	r := &request{run: run, relaxed: relaxed, done: make(chan error, 1)}
	select {
	case w.requests <- r:
	case <-ctx.Done():
		return canceled(ctx)
	case <-w.stopped:
		return errClosed()
	}
	select {
	case err := <-r.done:
		return err
	case <-ctx.Done():
		if r.state.CompareAndSwap(waiting, abandoned) {
			return canceled(ctx)
		}
		return <-r.done
	}
}

// loop commits until stop, then once more what waits by then.
func (w *writer) loop() {
	poll := time.NewTimer(pollInterval)
	defer poll.Stop()
	for {
		if len(w.pending) > 0 {
			w.commit(w.gather(nil))
			continue
		}
		var tick <-chan time.Time
		if w.bell.awaited() {
			w.pollOthers()
			poll.Reset(pollInterval)
			tick = poll.C
		}
		select {
		case r := <-w.requests:
			w.commit(w.gather(r))
		case <-tick:
		case <-w.bell.arrived:
		case <-w.stop:
			for batch := w.gather(nil); len(batch) > 0; batch = w.gather(nil) {
				w.commit(batch)
			}
			return
		}
	}
}

// gather returns first and what else waits. Callers that were answered together
// are about to come back together: letting them run for a moment costs
// microseconds, and each that makes it spares a sync.
func (w *writer) gather(first *request) []*request {
	batch := w.pending
	w.pending = nil
	if first != nil {
		batch = append(batch, first)
	}
	var patience time.Time
	for len(batch) < maxRequests {
		select {
		case r := <-w.requests:
			batch = append(batch, r)
			continue
		default:
		}
		if len(batch) >= w.crowd {
			break
		}
		if patience.IsZero() {
			patience = time.Now().Add(gatherTime)
		} else if time.Now().After(patience) {
			break
		}
		runtime.Gosched()
	}
	return batch
}

// commit answers batch, in one transaction where it can. Where relaxed requests
// meet durable ones they go first: they need no sync, and most of their callers
// come back with something durable in time for the sync of the others.
func (w *writer) commit(batch []*request) {
	if len(batch) == 0 {
		return
	}
	w.crowd = len(batch)
	relaxed, durable := divide(batch)
	if len(relaxed) > 0 && len(durable) > 0 && !w.putOff {
		w.putOff, w.pending = true, durable
		w.settle(relaxed)
		return
	}
	w.putOff = false
	w.settle(batch)
}

func divide(batch []*request) (relaxed, durable []*request) {
	for _, r := range batch {
		if r.relaxed {
			relaxed = append(relaxed, r)
		} else {
			durable = append(durable, r)
		}
	}
	return relaxed, durable
}

// settle runs batch, and what arrives meanwhile, in one transaction. When the
// transaction as a whole fails, each request gets one of its own, so that the
// one to blame does not spoil the others.
func (w *writer) settle(batch []*request) {
	o := w.transact(batch, false)
	if o.err == nil || !o.begun || len(o.took) == 1 {
		o.answer()
		return
	}
	for _, r := range o.took {
		w.transact([]*request{r}, true).answer()
	}
}

// outcome is how a transaction ended: with one answer for each request that it
// took, or with an error that says that nothing of it happened.
type outcome struct {
	took    []*request
	answers []error
	begun   bool
	err     error
}

func (o *outcome) answer() {
	for i, r := range o.took {
		if o.err != nil {
			r.done <- o.err
		} else {
			r.done <- o.answers[i]
		}
	}
}

// transact runs one transaction of batch. Unless alone is set, it takes in what
// arrives while it runs.
func (w *writer) transact(batch []*request, alone bool) *outcome {
	o := &outcome{}
	w.rung = w.rung[:0]
	relaxed := !slices.ContainsFunc(batch, func(r *request) bool { return !r.relaxed })
	if err := w.begin(relaxed); err != nil {
		o.took, o.err = claim(batch), classify(err, w.path, "write")
		return o
	}
	o.begun = true
	for i := 0; i < len(batch); i++ {
		if r := batch[i]; r.claim() {
			o.took = append(o.took, r)
			answer := r.run(&w.tx)
			if answer != nil && !refused(answer) {
				return w.undo(o, batch[i+1:], answer)
			}
			o.answers = append(o.answers, answer)
		}
		if !alone && i == len(batch)-1 && len(batch) < maxRequests {
			batch = w.more(batch, relaxed)
		}
	}
	if _, err := w.exec("COMMIT"); err != nil {
		return w.undo(o, nil, err)
	}
	w.bell.ring(w.rung...)
	return o
}

// undo rolls back because of err, for which the requests in rest fail too.
func (w *writer) undo(o *outcome, rest []*request, err error) *outcome {
	// SQLite may have rolled back by itself already; then this fails, rightly.
	_, _ = w.exec("ROLLBACK")
	o.took = append(o.took, claim(rest)...)
	o.err = classify(err, w.path, "write")
	return o
}

// more takes one further request that waits, if it fits the transaction.
func (w *writer) more(batch []*request, relaxed bool) []*request {
	if relaxed && len(w.pending) > 0 {
		return batch
	}
	select {
	case r := <-w.requests:
		if relaxed && !r.relaxed {
			w.pending = append(w.pending, r)
			return batch
		}
		return append(batch, r)
	default:
		return batch
	}
}

func (w *writer) begin(relaxed bool) error {
	if w.relaxed != relaxed {
		pragma := "PRAGMA synchronous = FULL"
		if relaxed {
			// In WAL mode NORMAL commits without a sync. The log is one file written
			// in order: the next full commit syncs this one before itself. So no
			// later effect survives a power failure without it.
			pragma = "PRAGMA synchronous = NORMAL"
		}
		if _, err := w.conn.ExecContext(w.ctx, pragma); err != nil {
			return err
		}
		w.relaxed = relaxed
	}
	// SQLite's own wait for the lock backs off to 100 ms; beside a busy process,
	// which gives the lock up for microseconds, it can fail to get it for seconds.
	for deadline := time.Now().Add(busyTimeout); ; time.Sleep(lockPause) {
		_, err := w.exec("BEGIN IMMEDIATE")
		if !isBusy(err) || time.Now().After(deadline) {
			return err
		}
	}
}

// pollOthers rings for all queues when another process has committed. The
// connection's own commits do not change its data_version.
func (w *writer) pollOthers() {
	if time.Since(w.polled) < pollInterval {
		return
	}
	w.polled = time.Now()
	var version int64
	if ok, err := w.row("PRAGMA data_version", nil, &version); err != nil || !ok || version == w.version {
		return
	}
	w.version = version
	w.bell.ringAll()
}

// claim reports whether the caller of r still waits, and makes it wait on.
func (r *request) claim() bool {
	return r.state.CompareAndSwap(waiting, running) || r.state.Load() == running
}

// claim returns the requests of batch whose callers still wait.
func claim(batch []*request) []*request {
	return slices.DeleteFunc(slices.Clone(batch), func(r *request) bool { return !r.claim() })
}

// refused reports whether err is an answer and not a failure.
func refused(err error) bool {
	_, ok := errors.AsType[*fault.Error](err)
	return ok
}

func (t *tx) exec(query string, args ...any) (int64, error) {
	stmt, err := t.get(t.ctx, query)
	if err != nil {
		return 0, err
	}
	result, err := stmt.ExecContext(t.ctx, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

func (t *tx) row(query string, args []any, dest ...any) (bool, error) {
	return t.statements.row(t.ctx, query, args, dest...)
}

func (t *tx) rows(query string, args []any, each func(scan func(dest ...any) error) error) error {
	return t.statements.rows(t.ctx, query, args, each)
}

// ring wakes the receivers of queue after the commit.
func (t *tx) ring(queue string) {
	if !slices.Contains(t.rung, queue) {
		t.rung = append(t.rung, queue)
	}
}
