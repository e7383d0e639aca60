package faults

import (
	"context"
	"os"
	"time"

	"jobq/core/port"
)

type index struct {
	p *Process
	s port.Index
}

func (v index) Get(ctx context.Context, wf string) (port.StoredRow, error) {
	return call(ctx, v.p, "Index.Get", wf, func() (port.StoredRow, error) { return v.s.Get(ctx, wf) })
}

func (v index) Project(ctx context.Context, row port.Row, ifMatch port.Tag) (port.Tag, error) {
	return call(ctx, v.p, "Index.Project", row.Workflow, func() (port.Tag, error) { return v.s.Project(ctx, row, ifMatch) })
}

func (v index) SetCancel(ctx context.Context, wf string, c port.CancelRequest, ifMatch port.Tag) (port.Tag, error) {
	return call(ctx, v.p, "Index.SetCancel", wf, func() (port.Tag, error) { return v.s.SetCancel(ctx, wf, c, ifMatch) })
}

func (v index) Delete(ctx context.Context, wf string) error {
	return do(ctx, v.p, "Index.Delete", wf, func() error { return v.s.Delete(ctx, wf) })
}

func (v index) List(ctx context.Context, f port.Filter) (rows []port.StoredRow, next string, err error) {
	rows, err = call(ctx, v.p, "Index.List", f.Prefix, func() (rows []port.StoredRow, err error) {
		rows, next, err = v.s.List(ctx, f)
		return rows, err
	})
	return rows, next, err
}

func (v index) PutDue(ctx context.Context, d port.Due) error {
	return do(ctx, v.p, "Index.PutDue", d.Key, func() error { return v.s.PutDue(ctx, d) })
}

func (v index) DeleteDue(ctx context.Context, key string, last uint64) error {
	return do(ctx, v.p, "Index.DeleteDue", key, func() error { return v.s.DeleteDue(ctx, key, last) })
}

func (v index) DueBefore(ctx context.Context, t time.Time, most int) ([]port.Due, error) {
	return call(ctx, v.p, "Index.DueBefore", "", func() ([]port.Due, error) { return v.s.DueBefore(ctx, t, most) })
}

func (v index) CancelRequests(ctx context.Context, most int) ([]port.StoredRow, error) {
	return call(ctx, v.p, "Index.CancelRequests", "", func() ([]port.StoredRow, error) { return v.s.CancelRequests(ctx, most) })
}

type queues struct {
	p *Process
	s port.Queues
}

func (v queues) Queue(name string) port.Queue { return queue{v.p, v.s.Queue(name)} }

func (v queues) Ensure(ctx context.Context, name string) error {
	return do(ctx, v.p, "Queues.Ensure", name, func() error { return v.s.Ensure(ctx, name) })
}

type queue struct {
	p *Process
	s port.Queue
}

func (v queue) Name() string            { return v.s.Name() }
func (v queue) Props() port.QueueProps  { return v.s.Props() }
func (v queue) PoisonQueue() port.Queue { return queue{v.p, v.s.PoisonQueue()} }

func (v queue) Send(ctx context.Context, messages []port.Message) []error {
	return each(ctx, v.p, "Queue.Send", v.Name(), len(messages), func() []error { return v.s.Send(ctx, messages) })
}

func (v queue) Receive(ctx context.Context, o port.ReceiveOptions) ([]port.Delivery, error) {
	return call(ctx, v.p, "Queue.Receive", v.Name(), func() ([]port.Delivery, error) { return v.s.Receive(ctx, o) })
}

func (v queue) Extend(ctx context.Context, d *port.Delivery, lock time.Duration) error {
	return do(ctx, v.p, "Queue.Extend", v.Name(), func() error { return v.s.Extend(ctx, d, lock) })
}

func (v queue) Acknowledge(ctx context.Context, ds []port.Delivery) []error {
	return each(ctx, v.p, "Queue.Acknowledge", v.Name(), len(ds), func() []error { return v.s.Acknowledge(ctx, ds) })
}

func (v queue) Release(ctx context.Context, d port.Delivery, delay time.Duration) error {
	return do(ctx, v.p, "Queue.Release", v.Name(), func() error { return v.s.Release(ctx, d, delay) })
}

func (v queue) Poison(ctx context.Context, d port.Delivery, reason string) error {
	return do(ctx, v.p, "Queue.Poison", v.Name(), func() error { return v.s.Poison(ctx, d, reason) })
}

func (v queue) Count(ctx context.Context) (int, error) {
	return call(ctx, v.p, "Queue.Count", v.Name(), func() (int, error) { return v.s.Count(ctx) })
}

func (v queue) Peek(ctx context.Context, most int) ([]port.Delivery, error) {
	return call(ctx, v.p, "Queue.Peek", v.Name(), func() ([]port.Delivery, error) { return v.s.Peek(ctx, most) })
}

func (v queue) Clear(ctx context.Context) (int, error) {
	return call(ctx, v.p, "Queue.Clear", v.Name(), func() (int, error) { return v.s.Clear(ctx) })
}

type presence struct {
	p *Process
	s port.Presence
}

func (v presence) Join(ctx context.Context, m port.Member) (port.Membership, error) {
	return call(ctx, v.p, "Presence.Join", m.Kind, func() (port.Membership, error) {
		joined, err := v.s.Join(ctx, m)
		if err != nil {
			return nil, err
		}
		return membership{v.p, joined}, nil
	})
}

func (v presence) Members(ctx context.Context) ([]port.Member, error) {
	return call(ctx, v.p, "Presence.Members", "", func() ([]port.Member, error) { return v.s.Members(ctx) })
}

type membership struct {
	p *Process
	m port.Membership
}

func (v membership) ID() string          { return v.m.ID() }
func (v membership) Inherit() []*os.File { return v.m.Inherit() }

func (v membership) Beat(ctx context.Context, busy int) error {
	return do(ctx, v.p, "Membership.Beat", v.ID(), func() error { return v.m.Beat(ctx, busy) })
}

func (v membership) Leave(ctx context.Context) error {
	return do(ctx, v.p, "Membership.Leave", v.ID(), func() error { return v.m.Leave(ctx) })
}

type finisher struct {
	p *Process
	s port.Finisher
}

func (v finisher) Finish(ctx context.Context, f port.Finish) (port.Tag, error) {
	return call(ctx, v.p, "Finisher.Finish", recordName(f.Key), func() (port.Tag, error) { return v.s.Finish(ctx, f) })
}
