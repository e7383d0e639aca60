package wrap

import (
	"context"
	"iter"
	"time"

	"jobq/core/port"
)

// The types of this file are those of core/port with the repeats that Retry
// promises. A method that is not here is the driver's own.

type states struct {
	port.States
	r *retrier
}

func (v states) CreateDefinition(ctx context.Context, wf string, body []byte) error {
	return v.r.do(ctx, ifTransient, func() error { return v.States.CreateDefinition(ctx, wf, body) })
}

func (v states) Definition(ctx context.Context, wf string) ([]byte, error) {
	return value(ctx, v.r, ifTransient, func() ([]byte, error) { return v.States.Definition(ctx, wf) })
}

func (v states) DeleteDefinition(ctx context.Context, wf string) error {
	return v.r.do(ctx, ifTransient, func() error { return v.States.DeleteDefinition(ctx, wf) })
}

func (v states) Load(ctx context.Context, wf string, known port.Tag) (port.Document, error) {
	return value(ctx, v.r, ifTransient, func() (port.Document, error) { return v.States.Load(ctx, wf, known) })
}

type records struct {
	port.Records
	r *retrier
}

func (v records) Create(ctx context.Context, k port.RecordKey, rec port.Record) (port.Tag, error) {
	return value(ctx, v.r, ifTransient, func() (port.Tag, error) { return v.Records.Create(ctx, k, rec) })
}

func (v records) Read(ctx context.Context, k port.RecordKey) (port.StoredRecord, error) {
	return value(ctx, v.r, ifTransient, func() (port.StoredRecord, error) { return v.Records.Read(ctx, k) })
}

func (v records) Change(ctx context.Context, k port.RecordKey, rec port.Record, ifMatch port.Tag) (port.Tag, error) {
	return value(ctx, v.r, ifTransient, func() (port.Tag, error) { return v.Records.Change(ctx, k, rec, ifMatch) })
}

func (v records) Delete(ctx context.Context, k port.RecordKey, ifMatch port.Tag) error {
	return v.r.do(ctx, ifTransient, func() error { return v.Records.Delete(ctx, k, ifMatch) })
}

func (v records) DeleteAll(ctx context.Context, wf string, last uint32) error {
	return v.r.do(ctx, ifTransient, func() error { return v.Records.DeleteAll(ctx, wf, last) })
}

type index struct {
	port.Index
	r *retrier
}

func (v index) Get(ctx context.Context, wf string) (port.StoredRow, error) {
	return value(ctx, v.r, ifTransient, func() (port.StoredRow, error) { return v.Index.Get(ctx, wf) })
}

func (v index) Project(ctx context.Context, row port.Row, ifMatch port.Tag) (port.Tag, error) {
	return value(ctx, v.r, ifTransient, func() (port.Tag, error) { return v.Index.Project(ctx, row, ifMatch) })
}

func (v index) SetCancel(ctx context.Context, wf string, c port.CancelRequest, ifMatch port.Tag) (port.Tag, error) {
	return value(ctx, v.r, ifTransient, func() (port.Tag, error) { return v.Index.SetCancel(ctx, wf, c, ifMatch) })
}

func (v index) Delete(ctx context.Context, wf string) error {
	return v.r.do(ctx, ifTransient, func() error { return v.Index.Delete(ctx, wf) })
}

func (v index) List(ctx context.Context, f port.Filter) (rows []port.StoredRow, next string, err error) {
	err = v.r.do(ctx, ifTransient, func() (err error) {
		rows, next, err = v.Index.List(ctx, f)
		return err
	})
	return rows, next, err
}

func (v index) PutDue(ctx context.Context, d port.Due) error {
	return v.r.do(ctx, ifTransient, func() error { return v.Index.PutDue(ctx, d) })
}

func (v index) DeleteDue(ctx context.Context, key string, last uint64) error {
	return v.r.do(ctx, ifTransient, func() error { return v.Index.DeleteDue(ctx, key, last) })
}

func (v index) DueBefore(ctx context.Context, t time.Time, most int) ([]port.Due, error) {
	return value(ctx, v.r, ifTransient, func() ([]port.Due, error) { return v.Index.DueBefore(ctx, t, most) })
}

func (v index) CancelRequests(ctx context.Context, most int) ([]port.StoredRow, error) {
	return value(ctx, v.r, ifTransient, func() ([]port.StoredRow, error) { return v.Index.CancelRequests(ctx, most) })
}

type queues struct {
	port.Queues
	r *retrier
}

func (v queues) Queue(name string) port.Queue { return queue{v.Queues.Queue(name), v.r} }

func (v queues) Ensure(ctx context.Context, name string) error {
	return v.r.do(ctx, ifTransient, func() error { return v.Queues.Ensure(ctx, name) })
}

type queue struct {
	port.Queue
	r *retrier
}

func (v queue) PoisonQueue() port.Queue { return queue{v.Queue.PoisonQueue(), v.r} }

func (v queue) Send(ctx context.Context, messages []port.Message) []error {
	return each(ctx, v.r, messages, func(m []port.Message) []error { return v.Queue.Send(ctx, m) })
}

func (v queue) Receive(ctx context.Context, o port.ReceiveOptions) ([]port.Delivery, error) {
	return value(ctx, v.r, ifTransient, func() ([]port.Delivery, error) { return v.Queue.Receive(ctx, o) })
}

func (v queue) Extend(ctx context.Context, d *port.Delivery, lock time.Duration) error {
	return v.r.do(ctx, ifTransient, func() error { return v.Queue.Extend(ctx, d, lock) })
}

func (v queue) Acknowledge(ctx context.Context, ds []port.Delivery) []error {
	return each(ctx, v.r, ds, func(ds []port.Delivery) []error { return v.Queue.Acknowledge(ctx, ds) })
}

func (v queue) Release(ctx context.Context, d port.Delivery, delay time.Duration) error {
	return v.r.do(ctx, ifTransient, func() error { return v.Queue.Release(ctx, d, delay) })
}

func (v queue) Poison(ctx context.Context, d port.Delivery, reason string) error {
	return v.r.do(ctx, ifTransient, func() error { return v.Queue.Poison(ctx, d, reason) })
}

func (v queue) Count(ctx context.Context) (int, error) {
	return value(ctx, v.r, ifTransient, func() (int, error) { return v.Queue.Count(ctx) })
}

func (v queue) Peek(ctx context.Context, most int) ([]port.Delivery, error) {
	return value(ctx, v.r, ifTransient, func() ([]port.Delivery, error) { return v.Queue.Peek(ctx, most) })
}

func (v queue) Clear(ctx context.Context) (int, error) {
	return value(ctx, v.r, ifTransient, func() (int, error) { return v.Queue.Clear(ctx) })
}

type blobs struct {
	port.Blobs
	r *retrier
}

func (v blobs) Put(ctx context.Context, name string, body []byte) error {
	return v.r.do(ctx, ifTransient, func() error { return v.Blobs.Put(ctx, name, body) })
}

func (v blobs) Get(ctx context.Context, name string) ([]byte, error) {
	return value(ctx, v.r, ifTransient, func() ([]byte, error) { return v.Blobs.Get(ctx, name) })
}

func (v blobs) List(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return v.r.names(ctx, func() iter.Seq2[string, error] { return v.Blobs.List(ctx, prefix) })
}

func (v blobs) DeletePrefix(ctx context.Context, prefix string, keep func(name string) bool) error {
	return v.r.do(ctx, ifTransient, func() error { return v.Blobs.DeletePrefix(ctx, prefix, keep) })
}

type log struct {
	port.Log
	r *retrier
}

func (v log) Append(ctx context.Context, name string, data []byte) error {
	return v.r.do(ctx, ifRefused, func() error { return v.Log.Append(ctx, name, data) })
}

func (v log) Read(ctx context.Context, name string, offset int64, most int) ([]byte, error) {
	return value(ctx, v.r, ifTransient, func() ([]byte, error) { return v.Log.Read(ctx, name, offset, most) })
}

func (v log) Size(ctx context.Context, name string) (int64, error) {
	return value(ctx, v.r, ifTransient, func() (int64, error) { return v.Log.Size(ctx, name) })
}

func (v log) Names(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return v.r.names(ctx, func() iter.Seq2[string, error] { return v.Log.Names(ctx, prefix) })
}

func (v log) DeletePrefix(ctx context.Context, prefix string, keep func(name string) bool) error {
	return v.r.do(ctx, ifTransient, func() error { return v.Log.DeletePrefix(ctx, prefix, keep) })
}

type leases struct {
	port.Leases
	r *retrier
}

func (v leases) Acquire(ctx context.Context, name, holder string, ttl time.Duration) error {
	return v.r.do(ctx, ifTransient, func() error { return v.Leases.Acquire(ctx, name, holder, ttl) })
}

func (v leases) Release(ctx context.Context, name, holder string) error {
	return v.r.do(ctx, ifTransient, func() error { return v.Leases.Release(ctx, name, holder) })
}

func (v leases) Holder(ctx context.Context, name string) (string, error) {
	return value(ctx, v.r, ifTransient, func() (string, error) { return v.Leases.Holder(ctx, name) })
}

type presence struct {
	port.Presence
	r *retrier
}

func (v presence) Join(ctx context.Context, m port.Member) (port.Membership, error) {
	joined, err := value(ctx, v.r, ifRefused, func() (port.Membership, error) { return v.Presence.Join(ctx, m) })
	if err != nil {
		return nil, err
	}
	return membership{joined, v.r}, nil
}

func (v presence) Members(ctx context.Context) ([]port.Member, error) {
	return value(ctx, v.r, ifTransient, func() ([]port.Member, error) { return v.Presence.Members(ctx) })
}

type membership struct {
	port.Membership
	r *retrier
}

func (v membership) Beat(ctx context.Context, busy int) error {
	return v.r.do(ctx, ifTransient, func() error { return v.Membership.Beat(ctx, busy) })
}

func (v membership) Leave(ctx context.Context) error {
	return v.r.do(ctx, ifTransient, func() error { return v.Membership.Leave(ctx) })
}
