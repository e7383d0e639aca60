package storetest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"jobq/core/fault"
	"jobq/core/port"
)

// birth is a time that every store keeps exactly: whole milliseconds, UTC.
var birth = time.Date(2026, 3, 4, 5, 6, 7, 89_000_000, time.UTC)

func row(wf string, age time.Duration) port.Row {
	return port.Row{
		Workflow: wf, Name: "name of " + wf, Status: "running", StateVersion: 7, Epoch: 3, BornEpoch: 2,
		Counts:       port.Counts{Total: 36, Pending: 1, Ready: 2, Running: 3, Completed: 4, Failed: 5, UpstreamFailed: 6, Skipped: 7, Cancelled: 8},
		DefaultQueue: "cpu", Queues: []string{"cpu", "gpu"},
		CreatedAt: birth.Add(-age), UpdatedAt: birth, Error: "no error \"yet\"",
	}
}

func project(t testing.TB, index port.Index, rows ...port.Row) {
	t.Helper()
	for _, r := range rows {
		_, err := index.Project(t.Context(), r, "")
		ok(t, err, "Project("+r.Workflow+")")
	}
}

// listAll follows the pages of a listing.
func listAll(t testing.TB, index port.Index, f port.Filter) []string {
	t.Helper()
	var all []string
	for range 1000 {
		rows, next, err := index.List(t.Context(), f)
		ok(t, err, "List")
		for _, r := range rows {
			all = append(all, r.Workflow)
		}
		if next == "" {
			return all
		}
		f.After = next
	}
	t.Fatal("List has not ended after 1000 pages")
	return nil
}

var indexCases = []testCase{
	{"every column of a row comes back", func(t *testing.T, e env) {
		ctx, index := t.Context(), e.store.Index
		_, err := index.Get(ctx, "w")
		fails(t, err, fault.NotFound, "Get before Project")
		tag, err := index.Project(ctx, row("w", 0), "")
		ok(t, err, "Project")
		got, err := index.Get(ctx, "w")
		ok(t, err, "Get")
		same(t, got, port.StoredRow{Row: row("w", 0), Tag: tag}, "Get")
	}},
	{"a row is created once and changed by tag", func(t *testing.T, e env) {
		ctx, index := t.Context(), e.store.Index
		first, err := index.Project(ctx, row("w", 0), "")
		ok(t, err, "Project")
		_, err = index.Project(ctx, row("w", 0), "")
		fails(t, err, fault.Exists, "Project without a tag again")
		changed := row("w", 0)
		changed.Status, changed.Queues, changed.Error = "completed", nil, ""
		second, err := index.Project(ctx, changed, first)
		ok(t, err, "Project at the tag")
		_, err = index.Project(ctx, row("w", 0), first)
		fails(t, err, fault.Conflict, "Project at a stale tag")
		_, err = index.Project(ctx, row("absent", 0), first)
		fails(t, err, fault.Conflict, "Project of an absent row at a tag")
		got, err := index.Get(ctx, "w")
		ok(t, err, "Get")
		same(t, got, port.StoredRow{Row: changed, Tag: second}, "Get")
	}},
	{"a projection leaves the cancel request alone and the reverse", func(t *testing.T, e env) {
		ctx, index := t.Context(), e.store.Index
		first, err := index.Project(ctx, row("w", 0), "")
		ok(t, err, "Project")
		request := port.CancelRequest{Requested: true, Epoch: 9}
		second, err := index.SetCancel(ctx, "w", request, first)
		ok(t, err, "SetCancel")
		_, err = index.SetCancel(ctx, "w", request, first)
		fails(t, err, fault.Conflict, "SetCancel at a stale tag")
		_, err = index.SetCancel(ctx, "w", request, "")
		fails(t, err, fault.Exists, "SetCancel without a tag on a row that is there")
		changed := row("w", time.Hour)
		third, err := index.Project(ctx, changed, second)
		ok(t, err, "Project")
		got, err := index.Get(ctx, "w")
		ok(t, err, "Get")
		same(t, got, port.StoredRow{Row: changed, Cancel: request, Tag: third}, "Get")
	}},
	{"a cancel request can come before the row", func(t *testing.T, e env) {
		ctx, index := t.Context(), e.store.Index
		tag, err := index.SetCancel(ctx, "w", port.CancelRequest{Requested: true, Epoch: 1}, "")
		ok(t, err, "SetCancel")
		_, err = index.Project(ctx, row("w", 0), "")
		fails(t, err, fault.Exists, "Project without a tag")
		_, err = index.Project(ctx, row("w", 0), tag)
		ok(t, err, "Project at the tag of SetCancel")
	}},
	{"deleting a row twice is no error", func(t *testing.T, e env) {
		ctx, index := t.Context(), e.store.Index
		project(t, index, row("w", 0))
		ok(t, index.Delete(ctx, "w"), "Delete")
		ok(t, index.Delete(ctx, "w"), "Delete again")
		_, err := index.Get(ctx, "w")
		fails(t, err, fault.NotFound, "Get after Delete")
	}},
	{"a listing is newest first, ties by descending id", func(t *testing.T, e env) {
		index := e.store.Index
		project(t, index, row("b", time.Hour), row("a", 0), row("d", time.Hour), row("c", time.Hour), row("z", 2*time.Hour))
		same(t, listAll(t, index, port.Filter{}), []string{"a", "d", "c", "b", "z"}, "List")
	}},
	{"pages of every size give each row once", func(t *testing.T, e env) {
		index := e.store.Index
		var want []string
		for i := range 25 {
			// Five rows share each creation time, so that pages end inside ties.
			wf := fmt.Sprintf("w%02d", 99-i)
			project(t, index, row(wf, time.Duration(i/5)*time.Minute))
			want = append(want, wf)
		}
		for _, limit := range []int{0, 1, 2, 5, 24, 25, 26} {
			same(t, listAll(t, index, port.Filter{Limit: limit}), want, fmt.Sprintf("List by pages of %d", limit))
		}
	}},
	{"rows that come and go do not disturb the following pages", func(t *testing.T, e env) {
		ctx, index := t.Context(), e.store.Index
		project(t, index, row("a", 0), row("b", time.Minute), row("c", 2*time.Minute))
		_, next, err := index.List(ctx, port.Filter{Limit: 2})
		ok(t, err, "List")
		project(t, index, row("newer", -time.Minute))
		ok(t, index.Delete(ctx, "b"), "Delete of the row where the page ended")
		same(t, listAll(t, index, port.Filter{Limit: 2, After: next}), []string{"c"}, "List of the next page")
	}},
	{"a listing is filtered by status and by prefix of the id", func(t *testing.T, e env) {
		index := e.store.Index
		for i, wf := range []string{"ab-1", "ab-2", "ac-1", "Ab-1", "ab_1"} {
			r := row(wf, time.Duration(i)*time.Minute)
			r.Status = []string{"running", "failed", "completed"}[i%3]
			project(t, index, r)
		}
		for name, c := range map[string]struct {
			filter port.Filter
			want   []string
		}{
			"one status":         {port.Filter{Status: []string{"running"}}, []string{"ab-1", "Ab-1"}},
			"two statuses":       {port.Filter{Status: []string{"failed", "completed"}}, []string{"ab-2", "ac-1", "ab_1"}},
			"a prefix":           {port.Filter{Prefix: "ab-"}, []string{"ab-1", "ab-2"}},
			"prefix and status":  {port.Filter{Prefix: "ab", Status: []string{"failed"}}, []string{"ab-2", "ab_1"}},
			"nothing that is":    {port.Filter{Prefix: "x"}, nil},
			"a whole id":         {port.Filter{Prefix: "ac-1"}, []string{"ac-1"}},
			"no known status":    {port.Filter{Status: []string{"odd"}}, nil},
			"prefix, small page": {port.Filter{Prefix: "a", Limit: 1}, []string{"ab-1", "ab-2", "ac-1", "ab_1"}},
		} {
			same(t, listAll(t, index, c.filter), c.want, "List by "+name)
		}
	}},
	{"a continuation that no page returned is refused", func(t *testing.T, e env) {
		_, _, err := e.store.Index.List(t.Context(), port.Filter{After: "no continuation"})
		fails(t, err, fault.Invalid, "List")
	}},
	{"cancel requests of scripts are found until they are answered", func(t *testing.T, e env) {
		ctx, index := t.Context(), e.store.Index
		ended := row("ended", 0)
		ended.Status = "failed"
		project(t, index, row("asked", 0), row("answered", 0), row("quiet", 0), row("withdrawn", 0), ended)
		set := func(wf string, c port.CancelRequest) {
			t.Helper()
			got, err := index.Get(ctx, wf)
			ok(t, err, "Get")
			_, err = index.SetCancel(ctx, wf, c, got.Tag)
			ok(t, err, "SetCancel")
		}
		set("asked", port.CancelRequest{Requested: true})
		set("answered", port.CancelRequest{Requested: true, Epoch: 4})
		set("withdrawn", port.CancelRequest{})
		set("ended", port.CancelRequest{Requested: true})
		rows, err := index.CancelRequests(ctx, 10)
		ok(t, err, "CancelRequests")
		if len(rows) != 1 || rows[0].Workflow != "asked" {
			t.Fatalf("CancelRequests = %v, want the row of asked alone", rows)
		}
		_, err = index.SetCancel(ctx, "asked", port.CancelRequest{Requested: true, Epoch: 4}, rows[0].Tag)
		ok(t, err, "SetCancel at the tag of CancelRequests")
		rows, err = index.CancelRequests(ctx, 10)
		ok(t, err, "CancelRequests")
		same(t, len(rows), 0, "rows of CancelRequests after the answer")
	}},
	{"a row without times keeps none", func(t *testing.T, e env) {
		ctx, index := t.Context(), e.store.Index
		project(t, index, port.Row{Workflow: "w"})
		got, err := index.Get(ctx, "w")
		ok(t, err, "Get")
		same(t, got.Row, port.Row{Workflow: "w"}, "Get")
	}},
}

var dueCases = []testCase{
	{"due rows come oldest first and only when due", func(t *testing.T, e env) {
		ctx, index := t.Context(), e.store.Index
		none, err := index.DueBefore(ctx, birth, 10)
		ok(t, err, "DueBefore of nothing")
		same(t, len(none), 0, "rows of DueBefore of nothing")
		for i, key := range []string{"c", "a", "b", "later"} {
			ok(t, index.PutDue(ctx, port.Due{Key: key, Workflow: key, DueAt: birth.Add(time.Duration(i) * time.Second)}), "PutDue")
		}
		for most, want := range map[int][]string{10: {"c", "a", "b"}, 2: {"c", "a"}, 0: nil} {
			due, err := index.DueBefore(ctx, birth.Add(2*time.Second), most)
			ok(t, err, "DueBefore")
			var keys []string
			for _, d := range due {
				keys = append(keys, d.Key)
			}
			same(t, keys, want, fmt.Sprintf("DueBefore of at most %d", most))
		}
	}},
	{"a due row is written over an earlier one and that of the same state", func(t *testing.T, e env) {
		ctx, index := t.Context(), e.store.Index
		for _, version := range []uint64{0, 4, 4, 9} {
			want := port.Due{Key: "w!c", Workflow: "w", DueAt: birth.Add(-time.Duration(version) * time.Hour), StateVersion: version, Note: "{\"new\": true}"}
			ok(t, index.PutDue(ctx, port.Due{Key: "w!c", Workflow: "w", DueAt: birth, StateVersion: version / 2, Note: "old"}), "PutDue")
			ok(t, index.PutDue(ctx, want), "PutDue")
			due, err := index.DueBefore(ctx, birth, 10)
			ok(t, err, "DueBefore")
			same(t, due, []port.Due{want}, "DueBefore")
		}
	}},
	{"a due row of a later state is neither written over nor deleted", func(t *testing.T, e env) {
		ctx, index := t.Context(), e.store.Index
		want := port.Due{Key: "w", Workflow: "w", DueAt: birth, StateVersion: 9}
		ok(t, index.PutDue(ctx, want), "PutDue")
		for _, version := range []uint64{0, 8} {
			ok(t, index.PutDue(ctx, port.Due{Key: "w", Workflow: "w", DueAt: birth.Add(-time.Hour), StateVersion: version, Note: "old"}), "PutDue of an earlier state")
			ok(t, index.DeleteDue(ctx, "w", version), "DeleteDue of an earlier state")
		}
		due, err := index.DueBefore(ctx, birth, 10)
		ok(t, err, "DueBefore")
		same(t, due, []port.Due{want}, "DueBefore")
		ok(t, index.DeleteDue(ctx, "w", 9), "DeleteDue")
		due, err = index.DueBefore(ctx, birth, 10)
		ok(t, err, "DueBefore")
		same(t, len(due), 0, "rows of DueBefore after DeleteDue")
	}},
	{"due rows that several write at once keep the latest", func(t *testing.T, e env) {
		ctx, index := t.Context(), e.store.Index
		const writers = 6
		var wg sync.WaitGroup
		for v := range uint64(writers) {
			wg.Go(func() {
				ok(t, index.PutDue(ctx, port.Due{Key: "w", Workflow: "w", DueAt: birth, StateVersion: v + 1}), "PutDue")
				ok(t, index.DeleteDue(ctx, "w", v), "DeleteDue")
			})
		}
		wg.Wait()
		due, err := index.DueBefore(ctx, birth, 10)
		ok(t, err, "DueBefore")
		same(t, due, []port.Due{{Key: "w", Workflow: "w", DueAt: birth, StateVersion: writers}}, "DueBefore")
	}},
	{"deleting a due row twice is no error", func(t *testing.T, e env) {
		ctx, index := t.Context(), e.store.Index
		ok(t, index.PutDue(ctx, port.Due{Key: "w", Workflow: "w", DueAt: birth}), "PutDue")
		ok(t, index.DeleteDue(ctx, "w", 0), "DeleteDue")
		ok(t, index.DeleteDue(ctx, "w", 0), "DeleteDue again")
		due, err := index.DueBefore(ctx, birth, 10)
		ok(t, err, "DueBefore")
		same(t, len(due), 0, "rows of DueBefore after DeleteDue")
	}},
}
