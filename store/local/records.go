package local

import (
	"context"
	"time"

	"jobq/core/fault"
	"jobq/core/port"
)

var _ port.Records = records{}

type records struct{ s *Store }

// Create need not survive a power failure: that ends the process that was to
// run the attempt too, and the attempt is begun again whether or not the record
// is there. Whatever its caller stores later comes later in the log, so nothing
// in the store ever lasts without the record before it. A task thus waits for
// one sync, that of its end.
func (v records) Create(ctx context.Context, k port.RecordKey, r port.Record) (port.Tag, error) {
	if err := v.s.check(ctx); err != nil {
		return "", err
	}
	tag := newTag()
	err := v.s.write.do(ctx, true, func(tx *tx) error {
		n, err := tx.exec(`INSERT INTO record (prefix, workflow, task, attempt, tag, owner, written_at, body)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
			v.s.prefix, k.Workflow, k.Task, k.Attempt, string(tag), r.Owner, now(), stored(r.Body))
		if err == nil && n == 0 {
			err = fault.Newf(fault.Exists, "attempt %d of task %q in workflow %q has a record already", k.Attempt, k.Task, k.Workflow)
		}
		return err
	})
	return unless(err, tag)
}

func (v records) Read(ctx context.Context, k port.RecordKey) (port.StoredRecord, error) {
	if err := v.s.check(ctx); err != nil {
		return port.StoredRecord{}, err
	}
	var (
		r       port.StoredRecord
		tag     string
		written int64
		joined  bool
	)
	found, err := v.s.read.row(ctx, `SELECT r.tag, r.owner, r.written_at, r.body, m.id IS NOT NULL
		FROM record r LEFT JOIN member m ON m.id = r.owner
		WHERE r.prefix = ? AND r.workflow = ? AND r.task = ? AND r.attempt = ?`,
		[]any{v.s.prefix, k.Workflow, k.Task, k.Attempt}, &tag, &r.Owner, &written, &r.Body, &joined)
	if err == nil && !found {
		err = fault.Newf(fault.NotFound, "attempt %d of task %q in workflow %q has no record", k.Attempt, k.Task, k.Workflow)
	}
	if err != nil {
		return port.StoredRecord{}, err
	}
	r.Tag = port.Tag(tag)
	r.Age = max(0, time.Duration(now()-written))
	r.Owned = v.s.probes.liveness(r.Owner, joined)
	return r, nil
}

func (v records) Change(ctx context.Context, k port.RecordKey, r port.Record, ifMatch port.Tag) (port.Tag, error) {
	if err := v.s.check(ctx); err != nil {
		return "", err
	}
	tag := newTag()
	err := v.s.write.do(ctx, false, func(tx *tx) error {
		return v.change(tx, k, r, ifMatch, tag)
	})
	return unless(err, tag)
}

// change stores r under tag if the record under k is at ifMatch.
func (v records) change(tx *tx, k port.RecordKey, r port.Record, ifMatch, tag port.Tag) error {
	n, err := tx.exec(`UPDATE record SET tag = ?, owner = ?, written_at = ?, body = ?
		WHERE prefix = ? AND workflow = ? AND task = ? AND attempt = ? AND tag = ?`,
		string(tag), r.Owner, now(), stored(r.Body), v.s.prefix, k.Workflow, k.Task, k.Attempt, string(ifMatch))
	if err == nil && n == 0 {
		err = recordChanged(k)
	}
	return err
}

func recordChanged(k port.RecordKey) error {
	return fault.Newf(fault.Conflict, "the record of attempt %d of task %q in workflow %q was changed by another writer", k.Attempt, k.Task, k.Workflow)
}

func (v records) Delete(ctx context.Context, k port.RecordKey, ifMatch port.Tag) error {
	if err := v.s.check(ctx); err != nil {
		return err
	}
	return v.s.write.do(ctx, false, func(tx *tx) error {
		where := []any{v.s.prefix, k.Workflow, k.Task, k.Attempt}
		n, err := tx.exec("DELETE FROM record WHERE prefix = ? AND workflow = ? AND task = ? AND attempt = ? AND tag = ?", append(where, string(ifMatch))...)
		if err != nil || n > 0 {
			return err
		}
		var tag string
		found, err := tx.row("SELECT tag FROM record WHERE prefix = ? AND workflow = ? AND task = ? AND attempt = ?", where, &tag)
		if err == nil && found {
			err = recordChanged(k)
		}
		return err
	})
}

func (v records) DeleteAll(ctx context.Context, wf string, last uint32) error {
	if err := v.s.check(ctx); err != nil {
		return err
	}
	return v.s.write.do(ctx, false, func(tx *tx) error {
		_, err := tx.exec("DELETE FROM record WHERE prefix = ? AND workflow = ? AND attempt <= ?", v.s.prefix, wf, last)
		return err
	})
}
