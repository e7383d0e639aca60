package local

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"jobq/core/fault"
)

// TestAnOlderDatabaseIsUpgraded, and what it holds is there afterwards.
func TestAnOlderDatabaseIsUpgraded(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	db := oldDatabase(t, home)
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

// oldDatabase makes one of version 1 in home.
func oldDatabase(t *testing.T, home string) *sql.DB {
	t.Helper()
	db, err := connect(filepath.Join(home, databaseFile), 1, "journal_mode(WAL)")
	if err != nil {
		t.Fatal(err)
	}
	if err := step(t.Context(), db, 0); err != nil {
		t.Fatal(err)
	}
	return db
}

// TestNothingIsUpgradedBesideAnOlderProgram, which would write rows as it knows them. The
// home can be looked at meanwhile, and newer programs are in nobody's way.
func TestNothingIsUpgradedBesideAnOlderProgram(t *testing.T) {
	t.Parallel()
	ctx, home := t.Context(), t.TempDir()
	db := oldDatabase(t, home)
	if _, err := db.ExecContext(ctx, "INSERT INTO state (prefix, workflow, tag, body) VALUES ('main', 'w', 't', CAST('state' AS BLOB))"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(home, liveDir), 0o700); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(home)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	newer, err := createLive(root, home, "run")
	if err != nil {
		t.Fatal(err)
	}
	defer newer.close()
	older, err := os.Create(filepath.Join(home, liveDir, newProcessID()))
	if err != nil {
		t.Fatal(err)
	}
	defer older.Close()
	if _, err := older.WriteString("run pid 7 since today\n"); err != nil {
		t.Fatal(err)
	}
	if got, err := tryLock(older, true); err != nil || !got {
		t.Fatalf("tryLock = %t, %v", got, err)
	}

	refusesToOpen(t, home, fault.Unavailable, home, "older jobq", "run pid 7 since today")
	look, err := Open(ctx, Options{Home: home, Prefix: "main", LookOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer look.Close()
	if got, err := look.Port().States.Load(ctx, "w", ""); err != nil || string(got.Body) != "state" {
		t.Errorf("Load = %q, error %v", got.Body, err)
	}
	if _, err := look.Port().States.Create(ctx, "v", nil); !fault.Is(err, fault.Unavailable) || !strings.Contains(fault.RemedyOf(err), "let it end") {
		t.Errorf("Create = %v, want why it cannot be upgraded", err)
	}
	if err := older.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := openIn(t, home).Port().States.Load(ctx, "w", ""); err != nil || string(got.Body) != "state" {
		t.Errorf("Load after the upgrade = %q, error %v", got.Body, err)
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
