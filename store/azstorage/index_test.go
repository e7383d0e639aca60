package azstorage_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/google/go-cmp/cmp"

	"jobq/core/fault"
	"jobq/core/port"
	"jobq/store/azstorage"
)

// table returns the table as a foreign script sees it.
func (a account) table(text string) *aztables.Client {
	a.tb.Helper()
	service, err := aztables.NewServiceClientFromConnectionString(text, nil)
	if err != nil {
		a.tb.Fatal(err)
	}
	return service.NewClient("DemoWorkflowsIndex")
}

func merge(t *testing.T, c *aztables.Client, wf string, columns map[string]any) {
	t.Helper()
	columns["PartitionKey"], columns["RowKey"] = azstorage.Shard("wf", wf), wf
	body, err := json.Marshal(columns)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.UpsertEntity(t.Context(), body, &aztables.UpsertEntityOptions{UpdateMode: aztables.UpdateModeMerge}); err != nil {
		t.Fatal(err)
	}
}

var born = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

func running(wf string, version uint64) port.Row {
	return port.Row{Workflow: wf, Name: "n", Status: "running", StateVersion: version, CreatedAt: born, UpdatedAt: born}
}

func listed(t *testing.T, s *port.Store, f port.Filter) []string {
	t.Helper()
	var all []string
	for {
		rows, next, err := s.Index.List(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			all = append(all, r.Workflow)
		}
		if next == "" {
			return all
		}
		f.After = next
	}
}

func TestForeignColumnsAndFlagsSurviveProjections(t *testing.T) {
	t.Parallel()
	text := emulator.Account(t)
	a := account{t, parse(t, text)}
	s := a.open(a.options())
	tag, err := s.Index.Project(t.Context(), running("w1", 1), "")
	if err != nil {
		t.Fatal(err)
	}
	script := a.table(text)
	merge(t, script, "w1", map[string]any{"cancel_requested": true, "team": "climate"})
	// A row that a script made by itself, without the columns of this program.
	merge(t, script, "w2", map[string]any{"cancel_requested": true, "workflow_state": "running"})
	if _, err := s.Index.Project(t.Context(), running("w1", 2), tag); !fault.Is(err, fault.Conflict) {
		t.Errorf("Project at the tag before the script = error %v, want a conflict", err)
	}
	rows, err := s.Index.CancelRequests(t.Context(), 10)
	if err != nil || len(rows) != 2 {
		t.Fatalf("CancelRequests = %v, error %v, want both flags", rows, err)
	}
	got, err := s.Index.Get(t.Context(), "w1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Index.Project(t.Context(), running("w1", 2), got.Tag); err != nil {
		t.Fatal(err)
	}
	raw, err := script.GetEntity(t.Context(), azstorage.Shard("wf", "w1"), "w1", nil)
	if err != nil {
		t.Fatal(err)
	}
	var columns map[string]any
	if err := json.Unmarshal(raw.Value, &columns); err != nil {
		t.Fatal(err)
	}
	if columns["team"] != "climate" || columns["cancel_requested"] != true {
		t.Errorf("after a projection the row is %v, want the script's columns untouched", columns)
	}
}

// A writer that stops between the pointer and the row, and one that comes late.
func TestListingsHealAfterAStopBetweenTheTwoWrites(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	way := newNetwork()
	o := a.options()
	o.Transport = &http.Client{Transport: way}
	s, other := a.open(o), a.open(a.options())
	rowWrites := func(r *http.Request) (*http.Response, error) {
		if r.Method != http.MethodGet && strings.Contains(r.URL.Path, "PartitionKey='wf-") {
			return nil, errDropped
		}
		if r.Method == http.MethodPost && r.ContentLength > 400 {
			return nil, errDropped
		}
		return nil, nil
	}
	way.set(rowWrites, nil)
	if _, err := s.Index.Project(t.Context(), running("w", 1), ""); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("Project whose row is not written = error %v, want unavailable", err)
	}
	if got := listed(t, other, port.Filter{}); len(got) != 0 {
		t.Errorf("List = %v, want nothing: the pointer has no row", got)
	}
	way.heal()
	tag, err := s.Index.Project(t.Context(), running("w", 1), "")
	if err != nil {
		t.Fatal(err)
	}
	done := running("w", 3)
	done.Status = "completed"
	way.set(rowWrites, nil)
	if _, err := s.Index.Project(t.Context(), done, tag); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("Project whose row is not written = error %v, want unavailable", err)
	}
	if got := listed(t, other, port.Filter{Status: []string{"completed"}}); len(got) != 0 {
		t.Errorf("List of completed = %v, want nothing: the row says running", got)
	}
	if got := listed(t, other, port.Filter{}); !cmp.Equal(got, []string{"w"}) {
		t.Errorf("List = %v, want w", got)
	}
	way.heal()
	// Another process goes on, and a late writer of an older state fails.
	tag2, err := other.Index.Project(t.Context(), done, tag)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Index.Project(t.Context(), running("w", 2), tag); !fault.Is(err, fault.Conflict) {
		t.Errorf("a late Project = error %v, want a conflict", err)
	}
	if got := listed(t, s, port.Filter{Status: []string{"completed"}}); !cmp.Equal(got, []string{"w"}) {
		t.Errorf("List of completed = %v, want w", got)
	}
	// A retry makes it running again, by the process that remembers it as running.
	if _, err := s.Index.Project(t.Context(), running("w", 4), tag2); err != nil {
		t.Fatal(err)
	}
	if got := listed(t, other, port.Filter{Status: []string{"running"}}); !cmp.Equal(got, []string{"w"}) {
		t.Errorf("List of running = %v, want w", got)
	}
}

func TestALostAnswerOfAProjectionIsSeenByReading(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	way := newNetwork()
	o := a.options()
	o.Transport = &http.Client{Transport: way}
	s := a.open(o)
	tag, err := s.Index.Project(t.Context(), running("w", 1), "")
	if err != nil {
		t.Fatal(err)
	}
	way.set(nil, func(r *http.Request) bool { return r.Method != http.MethodGet })
	if _, err := s.Index.Project(t.Context(), running("w", 2), tag); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("Project whose answer is lost = error %v, want unavailable", err)
	}
	way.heal()
	if _, err := s.Index.Project(t.Context(), running("w", 2), tag); !fault.Is(err, fault.Conflict) {
		t.Errorf("Project again = error %v, want a conflict", err)
	}
	got, err := s.Index.Get(t.Context(), "w")
	if err != nil || got.StateVersion != 2 {
		t.Errorf("Get = version %d, error %v, want 2", got.StateVersion, err)
	}
}

func TestARowOfANewLifeMovesInTheListing(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	s := a.open(a.options())
	tag, err := s.Index.Project(t.Context(), running("nightly", 1), "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Index.Project(t.Context(), running("other", 1), ""); err != nil {
		t.Fatal(err)
	}
	next := running("nightly", 9)
	next.CreatedAt = born.Add(time.Hour)
	if _, err := a.open(a.options()).Index.Project(t.Context(), next, tag); err != nil {
		t.Fatal(err)
	}
	if got := listed(t, s, port.Filter{}); !cmp.Equal(got, []string{"nightly", "other"}) {
		t.Errorf("List = %v, want nightly once and first", got)
	}
}

// C60 where it meets the table: ids that a key cannot hold as they are.
func TestOddIDsHaveRowsOfTheirOwn(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	s := a.open(a.options())
	ids := []string{"prep/featurize", "a#b", "a?b", `a\b`, "a\tb", "ـ", "a'b", "A", "a", strings.Repeat("n", 240)}
	for _, id := range ids {
		if _, err := s.Index.Project(t.Context(), running(id, 1), ""); err != nil {
			t.Errorf("Project(%q) = error %v", id, err)
		}
		if err := s.Index.PutDue(t.Context(), port.Due{Key: id + "!1", Workflow: id, DueAt: born}); err != nil {
			t.Errorf("PutDue(%q) = error %v", id, err)
		}
	}
	long := strings.Repeat("n", 300)
	if _, err := s.Index.Project(t.Context(), running(long, 1), ""); !fault.Is(err, fault.Invalid) {
		t.Errorf("Project of an id of 300 bytes = error %v, want invalid", err)
	}
	if _, err := s.Records.Create(t.Context(), port.RecordKey{Workflow: "w", Task: strings.Repeat("%", 500), Attempt: 1}, port.Record{}); !fault.Is(err, fault.Invalid) {
		t.Errorf("Create of a record whose name is too long = error %v, want invalid", err)
	}
	for _, id := range ids {
		if got, err := s.Index.Get(t.Context(), id); err != nil || got.Workflow != id {
			t.Errorf("Get(%q) = %q, error %v", id, got.Workflow, err)
		}
	}
	if got := listed(t, s, port.Filter{Limit: 3}); len(got) != len(ids) {
		t.Errorf("List = %q, want all %d ids", got, len(ids))
	}
	if due, err := s.Index.DueBefore(t.Context(), born, 100); err != nil || len(due) != len(ids) {
		t.Errorf("DueBefore = %d rows, error %v, want %d", len(due), err, len(ids))
	}
}

// The service cuts its answers at 1,000 entities.
func TestMoreRowsThanOneAnswerHolds(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	s := a.open(a.options())
	const rows = 1050
	var wg sync.WaitGroup
	for part := range 16 {
		wg.Go(func() {
			for i := part; i < rows; i += 16 {
				d := port.Due{Key: fmt.Sprintf("w%04d", i), Workflow: "w", DueAt: born.Add(-time.Duration(i) * time.Second)}
				if err := s.Index.PutDue(t.Context(), d); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	due, err := s.Index.DueBefore(t.Context(), born, rows+1)
	if err != nil || len(due) != rows || due[0].Key != "w1049" || due[rows-1].Key != "w0000" {
		t.Errorf("DueBefore = %d rows, error %v, want %d, the oldest first", len(due), err, rows)
	}
}

// A row that a script left in a partition of due rows is nobody's: it keeps no other
// from being read.
func TestAForeignRowAmongTheDueOnesIsLeftOut(t *testing.T) {
	t.Parallel()
	text := emulator.Account(t)
	a := account{t, parse(t, text)}
	s := a.open(a.options())
	if err := s.Index.PutDue(t.Context(), port.Due{Key: "w", Workflow: "w", DueAt: born}); err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(map[string]any{"PartitionKey": "due-00", "RowKey": "~no key", "due_at": "2000-01-01"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.table(text).AddEntity(t.Context(), body, nil); err != nil {
		t.Fatal(err)
	}
	due, err := s.Index.DueBefore(t.Context(), born, 10)
	if err != nil || len(due) != 1 || due[0].Key != "w" {
		t.Errorf("DueBefore = %+v, error %v, want the row of w", due, err)
	}
}

// A claimed command names its tasks, and may name thousands.
func TestLongNotesComeBackWholeAndShortOnesAfterThem(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	s := a.open(a.options())
	for _, note := range []string{strings.Repeat("é", 60_001), "short", strings.Repeat("🦆x", 9_000), ""} {
		d := port.Due{Key: "w!1", Workflow: "w", DueAt: born, Note: note}
		if err := s.Index.PutDue(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		due, err := s.Index.DueBefore(t.Context(), born, 1)
		if err != nil || len(due) != 1 || due[0].Note != note {
			t.Errorf("a note of %d bytes did not come back: %d rows, error %v", len(note), len(due), err)
		}
	}
	if err := s.Index.PutDue(t.Context(), port.Due{Key: "w!1", Note: strings.Repeat("x", 400_000)}); !fault.Is(err, fault.TooLarge) {
		t.Errorf("PutDue of a note of 400,000 bytes = error %v, want too large", err)
	}
}
