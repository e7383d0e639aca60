package sim

import (
	"context"
	"iter"
	"slices"
	"strconv"
	"time"

	"jobq/core/port"
)

// The types of this file carry the calls of core/port through the gate.

type states struct{ g *gate }

func (v states) CreateDefinition(ctx context.Context, wf string, body []byte) error {
	return v.g.call(ctx, opCreateDefinition, wf, func(ctx context.Context) error {
		return v.g.inner.States.CreateDefinition(ctx, wf, body)
	})
}

func (v states) Definition(ctx context.Context, wf string) (body []byte, err error) {
	err = v.g.call(ctx, opDefinition, wf, func(ctx context.Context) (err error) {
		body, err = v.g.inner.States.Definition(ctx, wf)
		return err
	})
	return body, err
}

func (v states) DeleteDefinition(ctx context.Context, wf string) error {
	return v.g.call(ctx, opDeleteDefinition, wf, func(ctx context.Context) error {
		return v.g.inner.States.DeleteDefinition(ctx, wf)
	})
}

func (v states) Create(ctx context.Context, wf string, doc []byte) (tag port.Tag, err error) {
	err = v.g.call(ctx, opCreateState, wf, func(ctx context.Context) (err error) {
		stored := v.g.outgoing(doc)
		if tag, err = v.g.inner.States.Create(ctx, wf, stored); err == nil {
			v.g.w.ledger.saved(v.g.p, wf, doc, stored)
		}
		return err
	})
	return tag, err
}

func (v states) Load(ctx context.Context, wf string, known port.Tag) (d port.Document, err error) {
	err = v.g.call(ctx, opLoad, wf, func(ctx context.Context) (err error) {
		d, err = v.g.inner.States.Load(ctx, wf, known)
		d.Body = v.g.incoming(d.Body)
		return err
	})
	return d, err
}

func (v states) Save(ctx context.Context, wf string, doc []byte, ifMatch port.Tag) (tag port.Tag, err error) {
	err = v.g.call(ctx, opSave, wf, func(ctx context.Context) (err error) {
		stored := v.g.outgoing(doc)
		if tag, err = v.g.inner.States.Save(ctx, wf, stored, ifMatch); err == nil {
			v.g.w.ledger.saved(v.g.p, wf, doc, stored)
		}
		return err
	})
	return tag, err
}

type records struct{ g *gate }

func recordKey(k port.RecordKey) string {
	return k.Workflow + "/" + k.Task + "/" + strconv.Itoa(int(k.Attempt))
}

func (v records) Create(ctx context.Context, k port.RecordKey, r port.Record) (tag port.Tag, err error) {
	err = v.g.call(ctx, opCreateRecord, recordKey(k), func(ctx context.Context) (err error) {
		if tag, err = v.g.inner.Records.Create(ctx, k, r); err == nil {
			v.g.w.ledger.recorded(v.g.p, k, r)
		}
		return err
	})
	return tag, err
}

func (v records) Read(ctx context.Context, k port.RecordKey) (r port.StoredRecord, err error) {
	err = v.g.call(ctx, opReadRecord, recordKey(k), func(ctx context.Context) (err error) {
		r, err = v.g.inner.Records.Read(ctx, k)
		return err
	})
	return r, err
}

func (v records) Change(ctx context.Context, k port.RecordKey, r port.Record, ifMatch port.Tag) (tag port.Tag, err error) {
	err = v.g.call(ctx, opChangeRecord, recordKey(k), func(ctx context.Context) (err error) {
		if tag, err = v.g.inner.Records.Change(ctx, k, r, ifMatch); err == nil {
			v.g.w.ledger.recorded(v.g.p, k, r)
		}
		return err
	})
	return tag, err
}

func (v records) Delete(ctx context.Context, k port.RecordKey, ifMatch port.Tag) error {
	return v.g.call(ctx, opDeleteRecord, recordKey(k), func(ctx context.Context) error {
		err := v.g.inner.Records.Delete(ctx, k, ifMatch)
		if err == nil {
			v.g.w.ledger.erased(k)
		}
		return err
	})
}

func (v records) DeleteAll(ctx context.Context, wf string, last uint32) error {
	return v.g.call(ctx, opDeleteRecords, wf, func(ctx context.Context) error {
		for k := range v.g.w.ledger.attempts {
			if k.Workflow == wf && k.Attempt <= last {
				v.g.w.ledger.erased(k)
			}
		}
		return v.g.inner.Records.DeleteAll(ctx, wf, last)
	})
}

type index struct{ g *gate }

func (v index) Get(ctx context.Context, wf string) (row port.StoredRow, err error) {
	err = v.g.call(ctx, opRow, wf, func(ctx context.Context) (err error) {
		v.g.w.ledger.rowRead(v.g.p, v.g.w.s.active, wf)
		row, err = v.g.inner.Index.Get(ctx, wf)
		return err
	})
	return row, err
}

func (v index) Project(ctx context.Context, row port.Row, ifMatch port.Tag) (tag port.Tag, err error) {
	err = v.g.call(ctx, opProject, row.Workflow, func(ctx context.Context) (err error) {
		if tag, err = v.g.inner.Index.Project(ctx, row, ifMatch); err == nil {
			v.g.w.ledger.projected(v.g.p, row)
		}
		return err
	})
	return tag, err
}

func (v index) SetCancel(ctx context.Context, wf string, c port.CancelRequest, ifMatch port.Tag) (tag port.Tag, err error) {
	err = v.g.call(ctx, opSetCancel, wf, func(ctx context.Context) (err error) {
		v.g.p.began = true
		tag, err = v.g.inner.Index.SetCancel(ctx, wf, c, ifMatch)
		return err
	})
	return tag, err
}

func (v index) Delete(ctx context.Context, wf string) error {
	return v.g.call(ctx, opDeleteRow, wf, func(ctx context.Context) error { return v.g.inner.Index.Delete(ctx, wf) })
}

func (v index) List(ctx context.Context, f port.Filter) (rows []port.StoredRow, next string, err error) {
	err = v.g.call(ctx, opListRows, f.Prefix, func(ctx context.Context) (err error) {
		rows, next, err = v.g.inner.Index.List(ctx, f)
		return err
	})
	return rows, next, err
}

func (v index) PutDue(ctx context.Context, d port.Due) error {
	return v.g.call(ctx, opPutDue, d.Key, func(ctx context.Context) error {
		v.g.w.dueWritten[d.Key] = v.g.w.s.now
		return v.g.inner.Index.PutDue(ctx, d)
	})
}

func (v index) DeleteDue(ctx context.Context, key string, last uint64) error {
	return v.g.call(ctx, opDeleteDue, key, func(ctx context.Context) error { return v.g.inner.Index.DeleteDue(ctx, key, last) })
}

// listLag is how old a row must be to be in a listing that lags.
const listLag = 20 * time.Second

func (v index) DueBefore(ctx context.Context, t time.Time, most int) (due []port.Due, err error) {
	w := v.g.w
	err = v.g.call(ctx, opDueBefore, "", func(ctx context.Context) (err error) {
		if due, err = v.g.inner.Index.DueBefore(ctx, t, most); w.lagging() {
			due = slices.DeleteFunc(due, func(d port.Due) bool { return w.s.now-w.dueWritten[d.Key] < listLag })
		}
		return err
	})
	return due, err
}

func (v index) CancelRequests(ctx context.Context, most int) (rows []port.StoredRow, err error) {
	err = v.g.call(ctx, opCancelRequests, "", func(ctx context.Context) (err error) {
		rows, err = v.g.inner.Index.CancelRequests(ctx, most)
		return err
	})
	return rows, err
}

type blobs struct{ g *gate }

func (v blobs) Put(ctx context.Context, name string, body []byte) error {
	return v.g.call(ctx, opPutOutput, name, func(ctx context.Context) error { return v.g.inner.Outputs.Put(ctx, name, body) })
}

func (v blobs) Get(ctx context.Context, name string) (body []byte, err error) {
	err = v.g.call(ctx, opGetOutput, name, func(ctx context.Context) (err error) {
		body, err = v.g.inner.Outputs.Get(ctx, name)
		return err
	})
	return body, err
}

func (v blobs) List(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return v.g.names(ctx, opListOutputs, prefix, v.g.inner.Outputs.List)
}

func (v blobs) DeletePrefix(ctx context.Context, prefix string, keep func(name string) bool) error {
	return v.g.call(ctx, opDeleteOutputs, prefix, func(ctx context.Context) error {
		return v.g.inner.Outputs.DeletePrefix(ctx, prefix, keep)
	})
}

// names makes one call for the whole listing.
func (g *gate) names(ctx context.Context, o op, prefix string, list func(context.Context, string) iter.Seq2[string, error]) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		var names []string
		err := g.call(ctx, o, prefix, func(ctx context.Context) error {
			for name, err := range list(ctx, prefix) {
				if err != nil {
					return err
				}
				names = append(names, name)
			}
			return nil
		})
		for _, name := range names {
			if !yield(name, nil) {
				return
			}
		}
		if err != nil {
			yield("", err)
		}
	}
}

type log struct {
	g     *gate
	inner port.Log
}

func (v log) Append(ctx context.Context, name string, data []byte) error {
	return v.g.call(ctx, opAppend, name, func(ctx context.Context) error { return v.inner.Append(ctx, name, data) })
}

func (v log) Read(ctx context.Context, name string, offset int64, most int) (data []byte, err error) {
	err = v.g.call(ctx, opReadLog, name, func(ctx context.Context) (err error) {
		data, err = v.inner.Read(ctx, name, offset, most)
		return err
	})
	return data, err
}

func (v log) Size(ctx context.Context, name string) (n int64, err error) {
	err = v.g.call(ctx, opLogSize, name, func(ctx context.Context) (err error) {
		n, err = v.inner.Size(ctx, name)
		return err
	})
	return n, err
}

func (v log) Names(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return v.g.names(ctx, opLogNames, prefix, v.inner.Names)
}

func (v log) DeletePrefix(ctx context.Context, prefix string, keep func(name string) bool) error {
	return v.g.call(ctx, opDeleteLogs, prefix, func(ctx context.Context) error { return v.inner.DeletePrefix(ctx, prefix, keep) })
}

type leases struct{ g *gate }

func (v leases) Acquire(ctx context.Context, name, holder string, ttl time.Duration) error {
	return v.g.call(ctx, opAcquire, name, func(ctx context.Context) error {
		return v.g.inner.Leases.Acquire(ctx, name, holder, ttl)
	})
}

func (v leases) Release(ctx context.Context, name, holder string) error {
	return v.g.call(ctx, opReleaseLease, name, func(ctx context.Context) error {
		return v.g.inner.Leases.Release(ctx, name, holder)
	})
}

func (v leases) Holder(ctx context.Context, name string) (holder string, err error) {
	err = v.g.call(ctx, opHolder, name, func(ctx context.Context) (err error) {
		holder, err = v.g.inner.Leases.Holder(ctx, name)
		return err
	})
	return holder, err
}

type presence struct{ g *gate }

func (v presence) Join(ctx context.Context, m port.Member) (ms port.Membership, err error) {
	err = v.g.call(ctx, opJoin, "", func(ctx context.Context) (err error) {
		ms, err = v.g.inner.Presence.Join(ctx, m)
		return err
	})
	return ms, err
}

func (v presence) Members(ctx context.Context) (all []port.Member, err error) {
	err = v.g.call(ctx, opMembers, "", func(ctx context.Context) (err error) {
		all, err = v.g.inner.Presence.Members(ctx)
		return err
	})
	return all, err
}
