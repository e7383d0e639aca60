package local

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"

	"jobq/core/fault"
	"jobq/core/port"
)

var _ port.Index = index{}

type index struct{ s *Store }

const (
	// pageSize is the length of a page of List that names none.
	pageSize = 100
	// noTime stands for the zero time, which is older than all others.
	noTime = math.MinInt64

	rowColumns = `workflow, tag, created_at, updated_at, name, status, state_version, epoch, born_epoch,
		counts, default_queue, queues, error, cancel_requested, cancel_epoch`
)

func toNanos(t time.Time) int64 {
	if t.IsZero() {
		return noTime
	}
	return t.UnixNano()
}

func fromNanos(n int64) time.Time {
	if n == noTime {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

func (v index) Get(ctx context.Context, wf string) (port.StoredRow, error) {
	if err := v.s.check(ctx); err != nil {
		return port.StoredRow{}, err
	}
	return scanRow(func(dest ...any) error {
		found, err := v.s.read.row(ctx, "SELECT "+rowColumns+" FROM workflow WHERE prefix = ? AND workflow = ?", []any{v.s.prefix, wf}, dest...)
		if err == nil && !found {
			err = fault.Newf(fault.NotFound, "workflow %q has no row in the index", wf)
		}
		return err
	})
}

func (v index) rows(ctx context.Context, query string, args ...any) ([]port.StoredRow, error) {
	var rows []port.StoredRow
	err := v.s.read.rows(ctx, query, args, func(scan func(...any) error) error {
		row, err := scanRow(scan)
		rows = append(rows, row)
		return err
	})
	return rows, err
}

func scanRow(scan func(...any) error) (port.StoredRow, error) {
	var (
		r                port.StoredRow
		tag              string
		created, updated int64
		version, epoch   int64
		born, asked      int64
		counts, queues   string
	)
	err := scan(&r.Workflow, &tag, &created, &updated, &r.Name, &r.Status, &version, &epoch, &born,
		&counts, &r.DefaultQueue, &queues, &r.Error, &r.Cancel.Requested, &asked)
	if err != nil {
		return r, err
	}
	r.Tag = port.Tag(tag)
	r.CreatedAt, r.UpdatedAt = fromNanos(created), fromNanos(updated)
	r.StateVersion, r.Epoch, r.BornEpoch, r.Cancel.Epoch = uint64(version), uint64(epoch), uint64(born), uint64(asked)
	if err := json.Unmarshal([]byte(queues), &r.Queues); err != nil {
		return r, fault.Wrapf(fault.Corrupt, err, "the index row of workflow %q has queues that cannot be read", r.Workflow)
	}
	if err := json.Unmarshal([]byte(counts), &r.Counts); err != nil {
		return r, fault.Wrapf(fault.Corrupt, err, "the index row of workflow %q has counts that cannot be read", r.Workflow)
	}
	return r, nil
}

func (v index) Project(ctx context.Context, row port.Row, ifMatch port.Tag) (port.Tag, error) {
	counts, err := json.Marshal(row.Counts)
	if err != nil {
		return "", fault.Wrapf(fault.Invalid, err, "the counts of workflow %q cannot be written", row.Workflow)
	}
	queues, err := json.Marshal(row.Queues)
	if err != nil {
		return "", fault.Wrapf(fault.Invalid, err, "the queues of workflow %q cannot be written", row.Workflow)
	}
	return v.change(ctx, row.Workflow, ifMatch, `UPDATE workflow SET tag = ?3, created_at = ?4, updated_at = ?5, name = ?6, status = ?7,
		state_version = ?8, epoch = ?9, born_epoch = ?10, counts = ?11, default_queue = ?12, queues = ?13, error = ?14
		WHERE prefix = ?1 AND workflow = ?2`,
		toNanos(row.CreatedAt), toNanos(row.UpdatedAt), row.Name, row.Status, int64(row.StateVersion), int64(row.Epoch), int64(row.BornEpoch),
		string(counts), row.DefaultQueue, string(queues), row.Error)
}

func (v index) SetCancel(ctx context.Context, wf string, c port.CancelRequest, ifMatch port.Tag) (port.Tag, error) {
	return v.change(ctx, wf, ifMatch, "UPDATE workflow SET tag = ?3, cancel_requested = ?4, cancel_epoch = ?5 WHERE prefix = ?1 AND workflow = ?2", c.Requested, int64(c.Epoch))
}

// change updates the row of wf if it is at ifMatch. With an empty ifMatch it
// makes an empty row first, which must not be there yet. Columns that update
// does not name keep their value.
func (v index) change(ctx context.Context, wf string, ifMatch port.Tag, update string, values ...any) (port.Tag, error) {
	if err := v.s.check(ctx); err != nil {
		return "", err
	}
	tag := newTag()
	err := v.s.write.do(ctx, false, func(tx *tx) error {
		if err := v.match(tx, wf, ifMatch); err != nil {
			return err
		}
		_, err := tx.exec(update, append([]any{v.s.prefix, wf, string(tag)}, values...)...)
		return err
	})
	return unless(err, tag)
}

func (v index) match(tx *tx, wf string, ifMatch port.Tag) error {
	if ifMatch == "" {
		n, err := tx.exec(`INSERT INTO workflow (prefix, `+rowColumns+`)
			VALUES (?, ?, '', ?, ?, '', '', 0, 0, 0, '{}', '', 'null', '', 0, 0) ON CONFLICT DO NOTHING`, v.s.prefix, wf, int64(noTime), int64(noTime))
		if err == nil && n == 0 {
			err = fault.Newf(fault.Exists, "workflow %q has a row in the index already", wf)
		}
		return err
	}
	var tag string
	found, err := tx.row("SELECT tag FROM workflow WHERE prefix = ? AND workflow = ?", []any{v.s.prefix, wf}, &tag)
	if err == nil && (!found || port.Tag(tag) != ifMatch) {
		err = fault.Newf(fault.Conflict, "the index row of workflow %q was changed by another writer", wf)
	}
	return err
}

func (v index) Delete(ctx context.Context, wf string) error {
	if err := v.s.check(ctx); err != nil {
		return err
	}
	return v.s.write.do(ctx, false, func(tx *tx) error {
		_, err := tx.exec("DELETE FROM workflow WHERE prefix = ? AND workflow = ?", v.s.prefix, wf)
		return err
	})
}

func (v index) List(ctx context.Context, f port.Filter) ([]port.StoredRow, string, error) {
	if err := v.s.check(ctx); err != nil {
		return nil, "", err
	}
	limit := cmp.Or(max(f.Limit, 0), pageSize)
	where, args := "prefix = ?", []any{v.s.prefix}
	switch len(f.Status) {
	case 0:
	case 1:
		where, args = where+" AND status = ?", append(args, f.Status[0])
	default:
		statuses, err := json.Marshal(f.Status)
		if err != nil {
			return nil, "", fault.Wrap(fault.Invalid, err, "the statuses to list cannot be read")
		}
		where, args = where+" AND status IN (SELECT value FROM json_each(?))", append(args, string(statuses))
	}
	if f.Prefix != "" {
		from, to := below(f.Prefix)
		where, args = where+" AND workflow >= ? AND workflow < ?", append(args, from, to)
	}
	if f.After != "" {
		created, wf, err := parsePosition(f.After)
		if err != nil {
			return nil, "", err
		}
		where, args = where+" AND (created_at, workflow) < (?, ?)", append(args, created, wf)
	}
	rows, err := v.rows(ctx, "SELECT "+rowColumns+" FROM workflow WHERE "+where+" ORDER BY created_at DESC, workflow DESC LIMIT ?", append(args, limit+1)...)
	if err != nil || len(rows) <= limit {
		return rows, "", err
	}
	last := rows[limit-1]
	return rows[:limit], strconv.FormatInt(toNanos(last.CreatedAt), 10) + "/" + last.Workflow, nil
}

// parsePosition reads where the page before ended.
func parsePosition(after string) (created int64, wf string, err error) {
	at, wf, ok := strings.Cut(after, "/")
	created, err = strconv.ParseInt(at, 10, 64)
	if !ok || err != nil {
		return 0, "", fault.Newf(fault.Invalid, "%q does not continue a listing; use the value that the page before returned", after)
	}
	return created, wf, nil
}

// CancelRequests knows the words of a workflow's end from state.WorkflowStatus
// and the index.
func (v index) CancelRequests(ctx context.Context, most int) ([]port.StoredRow, error) {
	if err := v.s.check(ctx); err != nil {
		return nil, err
	}
	return v.rows(ctx, "SELECT "+rowColumns+` FROM workflow
		WHERE prefix = ? AND cancel_requested = 1 AND cancel_epoch = 0 AND status NOT IN ('completed', 'failed', 'cancelled', 'purged')
		ORDER BY workflow LIMIT ?`, v.s.prefix, max(most, 0))
}

func (v index) PutDue(ctx context.Context, d port.Due) error {
	if err := v.s.check(ctx); err != nil {
		return err
	}
	return v.s.write.do(ctx, false, func(tx *tx) error {
		_, err := tx.exec(`INSERT INTO due (prefix, key, workflow, due_at, state_version, note) VALUES (?, ?, ?, ?, ?, ?)
			ON CONFLICT (prefix, key) DO UPDATE SET workflow = excluded.workflow, due_at = excluded.due_at,
				state_version = excluded.state_version, note = excluded.note
			WHERE state_version <= excluded.state_version`,
			v.s.prefix, d.Key, d.Workflow, toNanos(d.DueAt), int64(d.StateVersion), d.Note)
		return err
	})
}

func (v index) DeleteDue(ctx context.Context, key string, last uint64) error {
	if err := v.s.check(ctx); err != nil {
		return err
	}
	return v.s.write.do(ctx, false, func(tx *tx) error {
		_, err := tx.exec("DELETE FROM due WHERE prefix = ? AND key = ? AND state_version <= ?", v.s.prefix, key, int64(min(last, math.MaxInt64)))
		return err
	})
}

func (v index) DueBefore(ctx context.Context, t time.Time, most int) ([]port.Due, error) {
	if err := v.s.check(ctx); err != nil {
		return nil, err
	}
	var due []port.Due
	err := v.s.read.rows(ctx, "SELECT key, workflow, due_at, state_version, note FROM due WHERE prefix = ? AND due_at <= ? ORDER BY due_at, key LIMIT ?",
		[]any{v.s.prefix, toNanos(t), max(most, 0)}, func(scan func(...any) error) error {
			var (
				d           port.Due
				at, version int64
			)
			err := scan(&d.Key, &d.Workflow, &at, &version, &d.Note)
			d.DueAt, d.StateVersion = fromNanos(at), uint64(version)
			due = append(due, d)
			return err
		})
	return due, err
}
