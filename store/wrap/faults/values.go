package faults

import (
	"context"
	"fmt"
	"iter"
	"time"

	"jobq/core/port"
)

type states struct {
	p *Process
	s port.States
}

func (v states) CreateDefinition(ctx context.Context, wf string, body []byte) error {
	return do(ctx, v.p, "States.CreateDefinition", wf, func() error { return v.s.CreateDefinition(ctx, wf, body) })
}

func (v states) Definition(ctx context.Context, wf string) ([]byte, error) {
	return call(ctx, v.p, "States.Definition", wf, func() ([]byte, error) { return v.s.Definition(ctx, wf) })
}

func (v states) DeleteDefinition(ctx context.Context, wf string) error {
	return do(ctx, v.p, "States.DeleteDefinition", wf, func() error { return v.s.DeleteDefinition(ctx, wf) })
}

func (v states) Create(ctx context.Context, wf string, doc []byte) (port.Tag, error) {
	return call(ctx, v.p, "States.Create", wf, func() (port.Tag, error) { return v.s.Create(ctx, wf, doc) })
}

func (v states) Load(ctx context.Context, wf string, known port.Tag) (port.Document, error) {
	return call(ctx, v.p, "States.Load", wf, func() (port.Document, error) { return v.s.Load(ctx, wf, known) })
}

func (v states) Save(ctx context.Context, wf string, doc []byte, ifMatch port.Tag) (port.Tag, error) {
	return call(ctx, v.p, "States.Save", wf, func() (port.Tag, error) { return v.s.Save(ctx, wf, doc, ifMatch) })
}

type records struct {
	p *Process
	s port.Records
}

func recordName(k port.RecordKey) string {
	return fmt.Sprintf("%s/%s/%d", k.Workflow, k.Task, k.Attempt)
}

func (v records) Create(ctx context.Context, k port.RecordKey, r port.Record) (port.Tag, error) {
	return call(ctx, v.p, "Records.Create", recordName(k), func() (port.Tag, error) { return v.s.Create(ctx, k, r) })
}

func (v records) Read(ctx context.Context, k port.RecordKey) (port.StoredRecord, error) {
	return call(ctx, v.p, "Records.Read", recordName(k), func() (port.StoredRecord, error) { return v.s.Read(ctx, k) })
}

func (v records) Change(ctx context.Context, k port.RecordKey, r port.Record, ifMatch port.Tag) (port.Tag, error) {
	return call(ctx, v.p, "Records.Change", recordName(k), func() (port.Tag, error) { return v.s.Change(ctx, k, r, ifMatch) })
}

func (v records) Delete(ctx context.Context, k port.RecordKey, ifMatch port.Tag) error {
	return do(ctx, v.p, "Records.Delete", recordName(k), func() error { return v.s.Delete(ctx, k, ifMatch) })
}

func (v records) DeleteAll(ctx context.Context, wf string, last uint32) error {
	return do(ctx, v.p, "Records.DeleteAll", wf, func() error { return v.s.DeleteAll(ctx, wf, last) })
}

type blobs struct {
	p *Process
	s port.Blobs
}

func (v blobs) Put(ctx context.Context, name string, body []byte) error {
	return do(ctx, v.p, "Outputs.Put", name, func() error { return v.s.Put(ctx, name, body) })
}

func (v blobs) Get(ctx context.Context, name string) ([]byte, error) {
	return call(ctx, v.p, "Outputs.Get", name, func() ([]byte, error) { return v.s.Get(ctx, name) })
}

func (v blobs) List(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return list(ctx, v.p, "Outputs.List", prefix, v.s.List)
}

func (v blobs) DeletePrefix(ctx context.Context, prefix string, keep func(name string) bool) error {
	return do(ctx, v.p, "Outputs.DeletePrefix", prefix, func() error { return v.s.DeletePrefix(ctx, prefix, keep) })
}

// list makes one call of a listing, however many the driver makes.
func list(ctx context.Context, p *Process, op, prefix string, f func(context.Context, string) iter.Seq2[string, error]) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		fate := p.begin(ctx, op, prefix)
		if fate.Before != nil {
			yield("", fate.Before)
			return
		}
		for name, err := range f(ctx, prefix) {
			if !yield(name, err) {
				return
			}
		}
		if fate.After != nil {
			yield("", fate.After)
		}
	}
}

type log struct {
	p    *Process
	name string
	s    port.Log
}

func (v log) Append(ctx context.Context, name string, data []byte) error {
	return do(ctx, v.p, v.name+".Append", name, func() error { return v.s.Append(ctx, name, data) })
}

func (v log) Read(ctx context.Context, name string, offset int64, most int) ([]byte, error) {
	return call(ctx, v.p, v.name+".Read", name, func() ([]byte, error) { return v.s.Read(ctx, name, offset, most) })
}

func (v log) Size(ctx context.Context, name string) (int64, error) {
	return call(ctx, v.p, v.name+".Size", name, func() (int64, error) { return v.s.Size(ctx, name) })
}

func (v log) Names(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return list(ctx, v.p, v.name+".Names", prefix, v.s.Names)
}

func (v log) DeletePrefix(ctx context.Context, prefix string, keep func(name string) bool) error {
	return do(ctx, v.p, v.name+".DeletePrefix", prefix, func() error { return v.s.DeletePrefix(ctx, prefix, keep) })
}

type leases struct {
	p *Process
	s port.Leases
}

func (v leases) Acquire(ctx context.Context, name, holder string, ttl time.Duration) error {
	return do(ctx, v.p, "Leases.Acquire", name, func() error { return v.s.Acquire(ctx, name, holder, ttl) })
}

func (v leases) Release(ctx context.Context, name, holder string) error {
	return do(ctx, v.p, "Leases.Release", name, func() error { return v.s.Release(ctx, name, holder) })
}

func (v leases) Holder(ctx context.Context, name string) (string, error) {
	return call(ctx, v.p, "Leases.Holder", name, func() (string, error) { return v.s.Holder(ctx, name) })
}
