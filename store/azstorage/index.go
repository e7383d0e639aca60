package azstorage

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"jobq/core/fault"
	"jobq/core/msg"
	"jobq/core/port"
)

var _ port.Index = (*index)(nil)

// rememberedRows bounds what index remembers of rows that it wrote.
const rememberedRows = 10_000

// index keeps one row a workflow in the partitions wf-00 to wf-0f, with the
// columns of ai4s-jobq and our own beside them, and due rows in due-00 to
// due-0f. For listings there is one pointer a workflow in the partition newest,
// whose keys sort newest first (see pointer.go).
//
// A pointer is written before the row that needs it, and never below a higher
// state version. So a writer that stops between the two leaves a pointer that
// its row contradicts, which a listing leaves out, and a row that is behind its
// state, which the next projection writes anew: pointer first.
type index struct {
	t  *table
	mu sync.Mutex
	// known is what this process wrote last, by workflow.
	known map[string]knownRow
}

// pointerTrust is how long a row whose tag has not changed is taken to have its
// pointer right. Nobody else has written the row then, but somebody may have
// stopped after writing the pointer of a state that came to no row.
const pointerTrust = time.Minute

type knownRow struct {
	tag     port.Tag
	created time.Time
	status  string
	// pointed is when the pointer was last looked at, zero for never.
	pointed time.Time
}

func (v *index) of(wf string) string {
	return "the index row of workflow " + wf + " in account " + v.t.account
}

// shard is the sum of the code points of the id, modulo 16, as ai4s-jobq has it.
func shard(kind, wf string) string {
	sum := 0
	for _, r := range wf {
		sum += int(r)
	}
	return fmt.Sprintf("%s-%02x", kind, sum&15)
}

func rowKey(wf string) (partition, key string) { return shard("wf", wf), msg.Escape(wf) }

func (v *index) Get(ctx context.Context, wf string) (port.StoredRow, error) {
	partition, key := rowKey(wf)
	e, err := v.t.get(ctx, partition, key, "read "+v.of(wf))
	if err != nil {
		return port.StoredRow{}, err
	}
	return rowOf(wf, e), nil
}

func (v *index) Project(ctx context.Context, row port.Row, ifMatch port.Tag) (port.Tag, error) {
	doing := "write " + v.of(row.Workflow)
	row.CreatedAt = tableTime(row.CreatedAt)
	columns := rowColumns(row)
	if ifMatch == "" {
		columns[cancelFlag], columns[cancelEpoch] = false, int64Column(0)
		return v.insert(ctx, row, columns, doing)
	}
	before, err := v.before(ctx, row.Workflow, ifMatch, doing)
	if err != nil {
		return "", err
	}
	moved := !before.created.Equal(row.CreatedAt)
	if moved || before.status != row.Status || time.Since(before.pointed) > pointerTrust {
		before.pointed = time.Now()
		if err := v.point(ctx, row, !moved, doing); err != nil {
			return "", err
		}
	}
	partition, key := rowKey(row.Workflow)
	tag, err := v.t.merge(ctx, partition, key, columns, ifMatch, doing)
	if err != nil {
		v.forget(row.Workflow)
		return "", err
	}
	v.remember(row.Workflow, knownRow{tag, row.CreatedAt, row.Status, before.pointed})
	if moved {
		// One that stays is contradicted by the row and left out of listings.
		_ = v.t.remove(ctx, pointers, pointerKey(before.created, row.Workflow), doing)
	}
	return tag, nil
}

// insert stores the first row of a workflow, pointer first.
func (v *index) insert(ctx context.Context, row port.Row, c columns, doing string) (port.Tag, error) {
	// The pointer's key is the longer one.
	if err := checkKey(v.of(row.Workflow), pointerKey(row.CreatedAt, row.Workflow)); err != nil {
		return "", err
	}
	if err := v.point(ctx, row, false, doing); err != nil {
		return "", err
	}
	partition, key := rowKey(row.Workflow)
	tag, err := v.t.insert(ctx, partition, key, c, doing)
	if err != nil {
		return "", err
	}
	v.remember(row.Workflow, knownRow{tag, row.CreatedAt, row.Status, time.Now()})
	return tag, nil
}

// before returns what the row of wf says at ifMatch.
func (v *index) before(ctx context.Context, wf string, ifMatch port.Tag, doing string) (knownRow, error) {
	v.mu.Lock()
	known, ok := v.known[wf]
	v.mu.Unlock()
	if ok && known.tag == ifMatch {
		return known, nil
	}
	stored, err := v.Get(ctx, wf)
	if fault.Is(err, fault.NotFound) || err == nil && stored.Tag != ifMatch {
		return knownRow{}, fault.Newf(fault.Conflict, "cannot %s: it was changed by another writer or is gone", doing)
	}
	return knownRow{tag: stored.Tag, created: stored.CreatedAt, status: stored.Status}, err
}

func (v *index) remember(wf string, k knownRow) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.known) >= rememberedRows {
		clear(v.known)
	}
	v.known[wf] = k
}

func (v *index) forget(wf string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.known, wf)
}

func (v *index) SetCancel(ctx context.Context, wf string, c port.CancelRequest, ifMatch port.Tag) (port.Tag, error) {
	doing := "write the cancel request into " + v.of(wf)
	request := columns{cancelFlag: c.Requested, cancelEpoch: int64Column(c.Epoch)}
	if ifMatch == "" {
		// An empty status, since a filter cannot ask for a column that is not there.
		request[statusColumn] = ""
		return v.insert(ctx, port.Row{Workflow: wf}, request, doing)
	}
	partition, key := rowKey(wf)
	tag, err := v.t.merge(ctx, partition, key, request, ifMatch, doing)
	if err != nil {
		return "", err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if known, ok := v.known[wf]; ok && known.tag == ifMatch {
		known.tag = tag
		v.known[wf] = known
	}
	return tag, nil
}

func (v *index) Delete(ctx context.Context, wf string) error {
	doing := "delete " + v.of(wf)
	stored, err := v.Get(ctx, wf)
	if err != nil {
		if fault.Is(err, fault.NotFound) {
			return nil
		}
		return err
	}
	v.forget(wf)
	partition, key := rowKey(wf)
	if err := v.t.remove(ctx, partition, key, doing); err != nil {
		return err
	}
	return v.t.remove(ctx, pointers, pointerKey(stored.CreatedAt, wf), doing)
}

// CancelRequests asks the service for flags that are set. Which of them no
// command has answered yet it could not tell of rows that lack the column.
func (v *index) CancelRequests(ctx context.Context, most int) ([]port.StoredRow, error) {
	var rows []port.StoredRow
	if most <= 0 {
		return nil, ended(ctx, "read the cancel requests")
	}
	for e, err := range v.t.query(ctx, flagged, 1000, "read the cancel requests in account "+v.t.account) {
		if err != nil {
			return nil, err
		}
		wf, err := msg.Unescape(e.key)
		if row := rowOf(wf, e); err == nil && row.Cancel.Epoch == 0 {
			if rows = append(rows, row); len(rows) == most {
				break
			}
		}
	}
	return rows, nil
}

// flagged selects the rows whose flag is set and whose status leaves something
// to cancel.
const flagged = "PartitionKey ge 'wf-00' and PartitionKey le 'wf-0f' and " + cancelFlag + " eq true" +
	" and " + statusColumn + " ne 'completed' and " + statusColumn + " ne 'failed'" +
	" and " + statusColumn + " ne 'cancelled' and " + statusColumn + " ne 'purged'"

// The columns that ai4s-jobq has, and ours. failed_tasks and pending_tasks are
// the sums that it shows.
const (
	statusColumn = "workflow_state"
	cancelFlag   = "cancel_requested"
	cancelEpoch  = "cancel_epoch"
)

// rowColumns are all columns but those of the cancel request.
func rowColumns(r port.Row) columns {
	n := r.Counts
	c := columns{
		"name":                  clip(r.Name),
		statusColumn:            r.Status,
		"total_tasks":           int32Column(n.Total),
		"completed_tasks":       int32Column(n.Completed),
		"failed_tasks":          int32Column(n.Failed + n.UpstreamFailed + n.Cancelled),
		"running_tasks":         int32Column(n.Running),
		"pending_tasks":         int32Column(n.Pending + n.Ready),
		"skipped_tasks":         int32Column(n.Skipped),
		"ready_tasks":           int32Column(n.Ready),
		"upstream_failed_tasks": int32Column(n.UpstreamFailed),
		"cancelled_tasks":       int32Column(n.Cancelled),
		"default_queue":         r.DefaultQueue,
		"queues_used":           clip(strings.Join(r.Queues, ",")),
		"error":                 clip(r.Error),
		"state_version":         int64Column(r.StateVersion),
		"epoch":                 int64Column(r.Epoch),
		"born_epoch":            int64Column(r.BornEpoch),
	}
	c.setTime("created_at", r.CreatedAt)
	c.setTime("updated_at", r.UpdatedAt)
	return c
}

// rowOf reads what rowColumns and SetCancel wrote, and what ai4s-jobq writes.
func rowOf(wf string, e entity) port.StoredRow {
	c := e.columns
	count := func(name string) int { return int(c.number(name)) }
	n := port.Counts{
		Total:          count("total_tasks"),
		Ready:          count("ready_tasks"),
		Running:        count("running_tasks"),
		Completed:      count("completed_tasks"),
		UpstreamFailed: count("upstream_failed_tasks"),
		Skipped:        count("skipped_tasks"),
		Cancelled:      count("cancelled_tasks"),
	}
	n.Pending = max(0, count("pending_tasks")-n.Ready)
	n.Failed = max(0, count("failed_tasks")-n.UpstreamFailed-n.Cancelled)
	row := port.Row{
		Workflow: wf, Name: c.text("name"), Status: c.text(statusColumn),
		StateVersion: c.number("state_version"), Epoch: c.number("epoch"), BornEpoch: c.number("born_epoch"),
		Counts: n, DefaultQueue: c.text("default_queue"),
		CreatedAt: c.time("created_at"), UpdatedAt: c.time("updated_at"), Error: c.text("error"),
	}
	if used := c.text("queues_used"); used != "" {
		row.Queues = slices.Collect(strings.SplitSeq(used, ","))
	}
	return port.StoredRow{Row: row, Cancel: port.CancelRequest{Requested: c.flag(cancelFlag), Epoch: c.number(cancelEpoch)}, Tag: e.tag}
}
