package memory

import (
	"bytes"
	"context"
	"maps"
	"time"

	"jobq/core/fault"
	"jobq/core/port"
)

var _ port.Records = records{}

type records struct{ p *Process }

type record struct {
	port.Record
	tag     port.Tag
	written time.Time
}

func (v records) Create(ctx context.Context, k port.RecordKey, r port.Record) (port.Tag, error) {
	if err := v.p.enter(ctx); err != nil {
		return "", err
	}
	defer v.p.s.mu.Unlock()
	if _, ok := v.p.s.records[k]; ok {
		return "", fault.Newf(fault.Exists, "attempt %d of task %q in workflow %q has a record already", k.Attempt, k.Task, k.Workflow)
	}
	return v.put(k, r), nil
}

func (v records) Read(ctx context.Context, k port.RecordKey) (port.StoredRecord, error) {
	if err := v.p.enter(ctx); err != nil {
		return port.StoredRecord{}, err
	}
	defer v.p.s.mu.Unlock()
	r, ok := v.p.s.records[k]
	if !ok {
		return port.StoredRecord{}, fault.Newf(fault.NotFound, "attempt %d of task %q in workflow %q has no record", k.Attempt, k.Task, k.Workflow)
	}
	return port.StoredRecord{
		Record: port.Record{Owner: r.Owner, Body: bytes.Clone(r.Body)},
		Tag:    r.tag,
		Age:    max(0, v.p.s.now().Sub(r.written)),
		Owned:  v.p.s.liveness(r.Owner),
	}, nil
}

func (v records) Change(ctx context.Context, k port.RecordKey, r port.Record, ifMatch port.Tag) (port.Tag, error) {
	if err := v.p.enter(ctx); err != nil {
		return "", err
	}
	defer v.p.s.mu.Unlock()
	if err := v.match(k, ifMatch); err != nil {
		return "", err
	}
	return v.put(k, r), nil
}

func (v records) Delete(ctx context.Context, k port.RecordKey, ifMatch port.Tag) error {
	if err := v.p.enter(ctx); err != nil {
		return err
	}
	defer v.p.s.mu.Unlock()
	if _, ok := v.p.s.records[k]; !ok {
		return nil
	}
	if err := v.match(k, ifMatch); err != nil {
		return err
	}
	delete(v.p.s.records, k)
	return nil
}

func (v records) DeleteAll(ctx context.Context, wf string, last uint32) error {
	if err := v.p.enter(ctx); err != nil {
		return err
	}
	defer v.p.s.mu.Unlock()
	maps.DeleteFunc(v.p.s.records, func(k port.RecordKey, _ record) bool { return k.Workflow == wf && k.Attempt <= last })
	return nil
}

// match checks the tag of the record under k. The mutex is held.
func (v records) match(k port.RecordKey, ifMatch port.Tag) error {
	if r, ok := v.p.s.records[k]; !ok || r.tag != ifMatch {
		return fault.Newf(fault.Conflict, "the record of attempt %d of task %q in workflow %q was changed by another writer", k.Attempt, k.Task, k.Workflow)
	}
	return nil
}

// put stores r under a new tag. The mutex is held.
func (v records) put(k port.RecordKey, r port.Record) port.Tag {
	tag := v.p.s.nextTag()
	v.p.s.records[k] = record{
		Record:  port.Record{Owner: r.Owner, Body: bytes.Clone(r.Body)},
		tag:     tag,
		written: v.p.s.now(),
	}
	return tag
}
