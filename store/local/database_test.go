package local

import (
	"path/filepath"
	"testing"
	"time"
)

// TestAnOlderDatabaseIsUpgraded, and what it holds is there afterwards.
func TestAnOlderDatabaseIsUpgraded(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	db, err := connect(filepath.Join(home, databaseFile), 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := step(t.Context(), db, 0); err != nil {
		t.Fatal(err)
	}
	sent := time.Now().UnixNano()
	for query, args := range map[string][]any{
		"INSERT INTO queue (name) VALUES ('cpu')": nil,
		"INSERT INTO message (queue, visible_at, receipt, count, process, sent_at, id, reason, body) VALUES ('cpu', ?, 0, 0, '', ?, 'old', '', x'')":  {sent, sent},
		"INSERT INTO message (queue, visible_at, receipt, count, process, sent_at, id, reason, body) VALUES ('cpu', ?, 0, 0, '', ?, 'late', '', x'')": {sent + int64(time.Hour), sent},
	} {
		if _, err := db.ExecContext(t.Context(), query, args...); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	q := openIn(t, home).Port().Queues.Queue("cpu")
	if d, _ := receiveOne(t, q, time.Minute); d.ID != "old" {
		t.Errorf("received %q, want the message that is visible", d.ID)
	}
	if n, err := q.Count(t.Context()); err != nil || n != 2 {
		t.Errorf("Count = %d, %v, want the other one there too", n, err)
	}
}

func TestBelow(t *testing.T) {
	t.Parallel()
	for prefix, want := range map[string]string{"a": "b", "w/": "w0", "a\xff\xff": "b", "\uFFFD": "\xef\xbf\xbe", "é": "\xc3\xaa"} {
		if from, to := below(prefix); from != prefix || to != want {
			t.Errorf("below(%q) = %q, %q, want an end of %q", prefix, from, to, want)
		}
	}
	for _, prefix := range []string{"", "\xff"} {
		if _, to := below(prefix); to == nil || len(to.([]byte)) != 0 {
			t.Errorf("below(%q) ends at %v, want the empty blob, which is above all texts", prefix, to)
		}
	}
}
