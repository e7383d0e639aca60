package memory

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"jobq/core/fault"
	"jobq/core/port"
)

var _ port.Index = index{}

type index struct{ p *Process }

// pageSize is the length of a page of List that names none.
const pageSize = 100

func (v index) Get(ctx context.Context, wf string) (port.StoredRow, error) {
	if err := v.p.enter(ctx); err != nil {
		return port.StoredRow{}, err
	}
	defer v.p.s.mu.Unlock()
	row, ok := v.p.s.rows[wf]
	if !ok {
		return port.StoredRow{}, fault.Newf(fault.NotFound, "workflow %q has no row in the index", wf)
	}
	return cloneRow(row), nil
}

func (v index) Project(ctx context.Context, row port.Row, ifMatch port.Tag) (port.Tag, error) {
	return v.write(ctx, row.Workflow, ifMatch, func(stored *port.StoredRow) {
		stored.Row = row
		stored.Queues = slices.Clone(row.Queues)
	})
}

func (v index) SetCancel(ctx context.Context, wf string, c port.CancelRequest, ifMatch port.Tag) (port.Tag, error) {
	return v.write(ctx, wf, ifMatch, func(stored *port.StoredRow) { stored.Cancel = c })
}

// write changes the row of wf at ifMatch, or makes one where ifMatch is empty.
func (v index) write(ctx context.Context, wf string, ifMatch port.Tag, change func(*port.StoredRow)) (port.Tag, error) {
	if err := v.p.enter(ctx); err != nil {
		return "", err
	}
	defer v.p.s.mu.Unlock()
	stored, ok := v.p.s.rows[wf]
	if ok && ifMatch == "" {
		return "", fault.Newf(fault.Exists, "workflow %q has a row in the index already", wf)
	}
	if ifMatch != "" && (!ok || stored.Tag != ifMatch) {
		return "", fault.Newf(fault.Conflict, "the index row of workflow %q was changed by another writer", wf)
	}
	change(&stored)
	stored.Workflow = wf
	stored.Tag = v.p.s.nextTag()
	v.p.s.rows[wf] = stored
	return stored.Tag, nil
}

func (v index) Delete(ctx context.Context, wf string) error {
	if err := v.p.enter(ctx); err != nil {
		return err
	}
	defer v.p.s.mu.Unlock()
	delete(v.p.s.rows, wf)
	return nil
}

func (v index) List(ctx context.Context, f port.Filter) ([]port.StoredRow, string, error) {
	limit := cmp.Or(max(f.Limit, 0), pageSize)
	after, err := parsePosition(f.After)
	if err != nil {
		return nil, "", err
	}
	if err := v.p.enter(ctx); err != nil {
		return nil, "", err
	}
	defer v.p.s.mu.Unlock()
	var rows []port.StoredRow
	for _, row := range v.p.s.rows {
		if len(f.Status) > 0 && !slices.Contains(f.Status, row.Status) || !strings.HasPrefix(row.Workflow, f.Prefix) {
			continue
		}
		if f.After == "" || after.precedes(row) {
			rows = append(rows, cloneRow(row))
		}
	}
	slices.SortFunc(rows, func(a, b port.StoredRow) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), strings.Compare(b.Workflow, a.Workflow))
	})
	if len(rows) <= limit {
		return rows, "", nil
	}
	rows = rows[:limit]
	last := rows[limit-1]
	return rows, position{last.CreatedAt, last.Workflow}.String(), nil
}

// position is where a page of List ended.
type position struct {
	created time.Time
	wf      string
}

func (p position) String() string {
	return strconv.FormatInt(p.created.UnixMicro(), 10) + "." + strconv.Itoa(p.created.Nanosecond()) + "/" + p.wf
}

func (p position) precedes(row port.StoredRow) bool {
	return cmp.Or(p.created.Compare(row.CreatedAt), strings.Compare(p.wf, row.Workflow)) > 0
}

func parsePosition(s string) (position, error) {
	if s == "" {
		return position{}, nil
	}
	at, wf, ok := strings.Cut(s, "/")
	micros, nanos, ok2 := strings.Cut(at, ".")
	m, err1 := strconv.ParseInt(micros, 10, 64)
	n, err2 := strconv.ParseInt(nanos, 10, 64)
	if !ok || !ok2 || err1 != nil || err2 != nil {
		return position{}, fault.Newf(fault.Invalid, "%q does not continue a listing; use the value that the page before returned", s)
	}
	created := time.UnixMicro(m)
	return position{created.Add(time.Duration(n - int64(created.Nanosecond()))), wf}, nil
}

func (v index) PutDue(ctx context.Context, d port.Due) error {
	if err := v.p.enter(ctx); err != nil {
		return err
	}
	defer v.p.s.mu.Unlock()
	if v.p.s.dues[d.Key].StateVersion <= d.StateVersion {
		v.p.s.dues[d.Key] = d
	}
	return nil
}

func (v index) DeleteDue(ctx context.Context, key string, last uint64) error {
	if err := v.p.enter(ctx); err != nil {
		return err
	}
	defer v.p.s.mu.Unlock()
	if v.p.s.dues[key].StateVersion <= last {
		delete(v.p.s.dues, key)
	}
	return nil
}

func (v index) DueBefore(ctx context.Context, t time.Time, most int) ([]port.Due, error) {
	if err := v.p.enter(ctx); err != nil {
		return nil, err
	}
	defer v.p.s.mu.Unlock()
	var due []port.Due
	for _, d := range v.p.s.dues {
		if !d.DueAt.After(t) {
			due = append(due, d)
		}
	}
	slices.SortFunc(due, func(a, b port.Due) int {
		return cmp.Or(a.DueAt.Compare(b.DueAt), strings.Compare(a.Key, b.Key))
	})
	return due[:min(len(due), max(most, 0))], nil
}

func (v index) CancelRequests(ctx context.Context, most int) ([]port.StoredRow, error) {
	if err := v.p.enter(ctx); err != nil {
		return nil, err
	}
	defer v.p.s.mu.Unlock()
	var rows []port.StoredRow
	for _, wf := range slices.Sorted(maps.Keys(v.p.s.rows)) {
		row := v.p.s.rows[wf]
		if row.Cancel.Requested && row.Cancel.Epoch == 0 && !ended(row.Status) && len(rows) < most {
			rows = append(rows, cloneRow(row))
		}
	}
	return rows, nil
}

// ended reports whether a workflow in the index can no longer be cancelled.
func ended(status string) bool {
	return slices.Contains([]string{"completed", "failed", "cancelled", "purged"}, status)
}

func cloneRow(row port.StoredRow) port.StoredRow {
	row.Queues = slices.Clone(row.Queues)
	return row
}
