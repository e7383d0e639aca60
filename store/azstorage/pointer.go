package azstorage

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"jobq/core/fault"
	"jobq/core/port"
)

// pointers is the partition of the pointers. Each says which workflow has its
// place in the listing, and its status, by which the service can select.
const pointers = "newest"

const (
	pointerWorkflow = "workflow"
	// pointerStatus is not called workflow_state: ai4s-jobq, which takes every
	// entity of the table for a workflow, would think that this one has ended.
	pointerStatus  = "state"
	pointerVersion = "state_version"
	// pointerTries bounds how often one write of a pointer loses against others.
	pointerTries = 5
)

// pointerKey sorts newest first, then by descending id: the nanoseconds that
// are left until time ends, the complement of each byte of the id, and a
// character above all of them, so that an id comes before its own beginning.
// Times before 1970, such as none, sort as the oldest.
func pointerKey(created time.Time, wf string) string {
	left := int64(math.MaxInt64)
	if created.Year() >= 1970 && created.Year() < 2262 {
		left -= created.UnixNano()
	}
	id := []byte(wf)
	for i := range id {
		id[i] = ^id[i]
	}
	return fmt.Sprintf("%019d%s~", left, hex.EncodeToString(id))
}

// checkPointerKey refuses what pointerKey never returns.
func checkPointerKey(key string) error {
	digits, ok := strings.CutSuffix(key, "~")
	if !ok || len(digits) < 19 || len(key) > 1024 || strings.Trim(digits, "0123456789abcdef") != "" {
		return fault.Newf(fault.Invalid, "%q does not continue a listing; use the value that the page before returned", key)
	}
	return nil
}

// point writes the pointer of row unless one of a higher version is there.
// expected says that there most likely is one.
func (v *index) point(ctx context.Context, row port.Row, expected bool, doing string) error {
	key := pointerKey(row.CreatedAt, row.Workflow)
	c := columns{pointerWorkflow: row.Workflow, pointerStatus: row.Status, pointerVersion: int64Column(row.StateVersion)}
	for range pointerTries {
		if !expected {
			if _, err := v.t.insert(ctx, pointers, key, c, doing); !fault.Is(err, fault.Exists) {
				return err
			}
		}
		there, err := v.t.get(ctx, pointers, key, doing)
		expected = !fault.Is(err, fault.NotFound)
		switch {
		case !expected:
			continue
		case err != nil:
			return err
		case there.columns.number(pointerVersion) > row.StateVersion,
			there.columns.number(pointerVersion) == row.StateVersion && there.columns.text(pointerStatus) == row.Status:
			return nil
		}
		if _, err := v.t.merge(ctx, pointers, key, c, there.tag, doing); !fault.Is(err, fault.Conflict) {
			return err
		}
	}
	return fault.Newf(fault.Unavailable, "cannot %s: other writers were faster %d times in a row", doing, pointerTries)
}

// List walks the pointers and reads the rows that they name. A pointer that its
// row contradicts is what a writer left that stopped, or is about to go on.
func (v *index) List(ctx context.Context, f port.Filter) ([]port.StoredRow, string, error) {
	doing := "list workflows in account " + v.t.account
	limit := cmp.Or(max(f.Limit, 0), 100)
	filter, err := pointerFilter(f)
	if err != nil {
		return nil, "", err
	}
	var rows []port.StoredRow
	var batch []entity
	for e, err := range v.t.query(ctx, filter, limit+1, doing) {
		if err != nil {
			return nil, "", err
		}
		if batch = append(batch, e); len(rows)+len(batch) <= limit {
			continue
		}
		if rows, err = v.follow(ctx, rows, batch, f); err != nil {
			return nil, "", err
		}
		if batch = batch[:0]; len(rows) > limit {
			rows = rows[:limit]
			last := rows[limit-1]
			return rows, pointerKey(last.CreatedAt, last.Workflow), nil
		}
	}
	rows, err = v.follow(ctx, rows, batch, f)
	return rows, "", err
}

func pointerFilter(f port.Filter) (string, error) {
	filter := "PartitionKey eq " + quote(pointers)
	if f.After != "" {
		if err := checkPointerKey(f.After); err != nil {
			return "", err
		}
		filter += " and RowKey gt " + quote(f.After)
	}
	if f.Prefix != "" {
		filter += " and " + pointerWorkflow + " ge " + quote(f.Prefix)
		if last := f.Prefix[len(f.Prefix)-1]; last < 0x7e {
			filter += " and " + pointerWorkflow + " lt " + quote(f.Prefix[:len(f.Prefix)-1]+string(rune(last+1)))
		}
	}
	// Beyond some 15 comparisons the service refuses a filter; then the rows alone
	// decide.
	if n := len(f.Status); n > 0 && n <= 10 {
		wanted := make([]string, n)
		for i, status := range f.Status {
			wanted[i] = pointerStatus + " eq " + quote(status)
		}
		filter += " and (" + strings.Join(wanted, " or ") + ")"
	}
	return filter, nil
}

// follow appends to rows those that a batch of pointers names and f selects.
func (v *index) follow(ctx context.Context, rows []port.StoredRow, batch []entity, f port.Filter) ([]port.StoredRow, error) {
	found := make([]*port.StoredRow, len(batch))
	errs := each(len(batch), func(i int) error {
		row, err := v.Get(ctx, batch[i].columns.text(pointerWorkflow))
		switch {
		case fault.Is(err, fault.NotFound):
			return nil
		case err != nil:
			return err
		case pointerKey(row.CreatedAt, row.Workflow) == batch[i].key && selected(row.Row, f):
			found[i] = &row
		}
		return nil
	})
	for _, row := range found {
		if row != nil {
			rows = append(rows, *row)
		}
	}
	return rows, worst(errs)
}

func selected(row port.Row, f port.Filter) bool {
	return strings.HasPrefix(row.Workflow, f.Prefix) && (len(f.Status) == 0 || slices.Contains(f.Status, row.Status))
}
