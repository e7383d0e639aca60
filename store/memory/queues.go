package memory

import (
	"context"
	"strconv"
	"time"

	"jobq/core/fault"
	"jobq/core/port"
)

var (
	_ port.Queues = queues{}
	_ port.Queue  = queue{}
)

type queues struct{ p *Process }

func (v queues) Queue(name string) port.Queue { return queue{v.p, name} }

// Ensure creates the poison queue with the queue.
func (v queues) Ensure(ctx context.Context, name string) error {
	if err := v.p.enter(ctx); err != nil {
		return err
	}
	defer v.p.s.mu.Unlock()
	q := v.p.s.ensure(name)
	if q.poison == nil {
		q.poison = v.p.s.ensure(port.PoisonName(name))
		q.poison.source = q
	}
	return nil
}

// ensure returns the queue called name. The mutex is held.
func (s *Store) ensure(name string) *queueData {
	q, ok := s.queues[name]
	if !ok {
		q = &queueData{name: name, props: s.queueProps, accepted: map[string]time.Time{}, changed: make(chan struct{})}
		s.queues[name] = q
	}
	return q
}

type queue struct {
	p    *Process
	name string
}

// open takes the mutex and returns the data of the queue. On an error the
// mutex is not held.
func (v queue) open(ctx context.Context) (*queueData, time.Time, error) {
	if err := v.p.enter(ctx); err != nil {
		return nil, time.Time{}, err
	}
	q, err := v.p.s.queue(v.name)
	if err != nil {
		v.p.s.mu.Unlock()
		return nil, time.Time{}, err
	}
	now := v.p.s.now()
	q.settle(now)
	return q, now, nil
}

// queue returns the queue called name or fault.NotFound. The mutex is held.
func (s *Store) queue(name string) (*queueData, error) {
	q, ok := s.queues[name]
	if !ok {
		return nil, fault.Newf(fault.NotFound, "queue %q does not exist", name)
	}
	return q, nil
}

func (v queue) Name() string { return v.name }

func (v queue) Props() port.QueueProps { return v.p.s.queueProps }

func (v queue) PoisonQueue() port.Queue { return queue{v.p, port.PoisonName(v.name)} }

func (v queue) Send(ctx context.Context, messages []port.Message) []error {
	q, now, err := v.open(ctx)
	if err != nil {
		return repeat(err, len(messages))
	}
	defer v.p.s.mu.Unlock()
	errs := make([]error, len(messages))
	for i, m := range messages {
		if errs[i] = q.check(m); errs[i] == nil {
			v.p.s.revision++
			q.add(m, v.p.s.revision, now)
		}
	}
	return nilIfNone(errs)
}

func (v queue) Receive(ctx context.Context, o port.ReceiveOptions) ([]port.Delivery, error) {
	props := v.Props()
	if o.Max <= 0 || o.Lock <= 0 {
		return nil, fault.Newf(fault.Invalid, "a receive of %d messages for %v is not possible; both must be above 0", o.Max, o.Lock)
	}
	if props.MaxBatch > 0 {
		o.Max = min(o.Max, props.MaxBatch)
	}
	if props.MaxLock > 0 {
		o.Lock = min(o.Lock, props.MaxLock)
	}
	var enough <-chan time.Time
	for {
		q, now, err := v.open(ctx)
		if err != nil {
			return nil, err
		}
		ds, next := q.take(v.p, o.Max, o.Lock, now)
		changed := q.changed
		v.p.s.mu.Unlock()
		if len(ds) > 0 || !props.CanWait || o.Wait <= 0 {
			return ds, nil
		}
		if enough == nil {
			timer := time.NewTimer(o.Wait)
			defer timer.Stop()
			enough = timer.C
		}
		if done, err := wait(ctx, enough, changed, next, now); done {
			return nil, err
		}
	}
}

// wait returns when there may be something to receive, or true when enough
// was waited or ctx ended.
func wait(ctx context.Context, enough <-chan time.Time, changed <-chan struct{}, next, now time.Time) (bool, error) {
	var due <-chan time.Time
	if !next.IsZero() {
		timer := time.NewTimer(next.Sub(now))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-ctx.Done():
		return true, canceled(ctx)
	case <-enough:
		return true, nil
	case <-changed:
	case <-due:
	}
	return false, nil
}

func (v queue) Extend(ctx context.Context, d *port.Delivery, lock time.Duration) error {
	q, now, err := v.open(ctx)
	if err != nil {
		return err
	}
	defer v.p.s.mu.Unlock()
	m, err := q.mustHold(d.Receipt)
	if err != nil {
		return err
	}
	if limit := q.props.MaxLock; limit > 0 {
		lock = min(lock, limit)
	}
	m.receipt++
	m.holder = v.p
	m.visible = now.Add(lock)
	d.Receipt = m.receiptText()
	d.Until = m.visible
	return nil
}

func (v queue) Acknowledge(ctx context.Context, ds []port.Delivery) []error {
	q, _, err := v.open(ctx)
	if err != nil {
		return repeat(err, len(ds))
	}
	defer v.p.s.mu.Unlock()
	errs := make([]error, len(ds))
	for i, d := range ds {
		m, err := q.held(d.Receipt)
		errs[i] = err
		if m != nil {
			q.remove(m)
		}
	}
	return nilIfNone(errs)
}

// Release keeps the message where NativeRelease is set, else it sends a copy with
// an id of its own and removes the message. The deliveries count on either way.
func (v queue) Release(ctx context.Context, d port.Delivery, delay time.Duration) error {
	q, now, err := v.open(ctx)
	if err != nil {
		return err
	}
	defer v.p.s.mu.Unlock()
	m, err := q.mustHold(d.Receipt)
	if err != nil {
		return err
	}
	if err := q.checkDelay(delay); err != nil {
		return err
	}
	if !q.props.NativeRelease {
		q.remove(m)
		v.p.s.revision++
		id := m.id + "/" + strconv.FormatUint(v.p.s.revision, 10)
		if made := q.add(port.Message{ID: id, Body: m.body, Delay: delay}, v.p.s.revision, now); made != nil {
			made.count, made.released, made.reason = m.count, m.count, m.reason
		}
		return nil
	}
	m.released++
	m.receipt++
	m.holder = nil
	m.visible = now.Add(max(delay, 0))
	q.notify()
	return nil
}

func (v queue) Poison(ctx context.Context, d port.Delivery, reason string) error {
	q, now, err := v.open(ctx)
	if err != nil {
		return err
	}
	defer v.p.s.mu.Unlock()
	m, err := q.mustHold(d.Receipt)
	if err != nil {
		return err
	}
	if q.poison == nil {
		q.poison = v.p.s.ensure(port.PoisonName(v.name))
	}
	q.moveToPoison(m, reason, now)
	return nil
}

func (v queue) Count(ctx context.Context) (int, error) {
	q, _, err := v.open(ctx)
	if err != nil {
		return 0, err
	}
	defer v.p.s.mu.Unlock()
	if !q.props.CountReadable {
		return 0, fault.Newf(fault.Invalid, "the number of messages in queue %q cannot be read", v.name)
	}
	return len(q.messages), nil
}

// Peek shows visible messages only.
func (v queue) Peek(ctx context.Context, most int) ([]port.Delivery, error) {
	q, now, err := v.open(ctx)
	if err != nil {
		return nil, err
	}
	defer v.p.s.mu.Unlock()
	var ds []port.Delivery
	for _, m := range q.messages {
		if len(ds) < most && !m.visible.After(now) {
			ds = append(ds, m.delivery())
		}
	}
	return ds, nil
}

func (v queue) Clear(ctx context.Context) (int, error) {
	q, _, err := v.open(ctx)
	if err != nil {
		return 0, err
	}
	defer v.p.s.mu.Unlock()
	n := len(q.messages)
	q.messages = nil
	return n, nil
}

// repeat answers every one of n messages with err.
func repeat(err error, n int) []error {
	errs := make([]error, n)
	for i := range errs {
		errs[i] = err
	}
	return errs
}

// nilIfNone returns nil when no message failed.
func nilIfNone(errs []error) []error {
	for _, err := range errs {
		if err != nil {
			return errs
		}
	}
	return nil
}
