package local

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"jobq/core/fault"
)

// TestALookMakesNothing: beside a database that nobody has open nothing is made, and
// of one that is open the newest changes are seen.
func TestALookMakesNothing(t *testing.T) {
	t.Parallel()
	ctx, home := t.Context(), t.TempDir()
	s, err := Open(ctx, Options{Home: home, Prefix: "main"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	path := filepath.Join(home, databaseFile)
	look, err := openLooker(path)
	if err != nil {
		t.Fatal(err)
	}
	defer look.close()
	states := func(want int) {
		t.Helper()
		var n int
		if _, err := look.row(ctx, "SELECT count(*) FROM state", nil, &n); err != nil || n != want {
			t.Errorf("the look found %d states, %v, want %d", n, err, want)
		}
	}
	for n, wf := range []string{"w1", "w2"} {
		if _, err := s.Port().States.Create(ctx, wf, nil); err != nil {
			t.Fatal(err)
		}
		states(n + 1)
	}

	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := connect(path, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for _, beside := range []string{"-wal", "-shm"} {
		_ = os.Remove(path + beside) // the checkpoint has left nothing in it
	}
	states(2)
	for _, beside := range []string{"-wal", "-shm"} {
		if _, err := os.Stat(path + beside); err == nil {
			t.Errorf("%s was made", path+beside)
		}
	}
}

// TestALookIsNoMixtureOfTwoStates: what changes while a question is answered is said
// to have changed, not shown in part.
func TestALookIsNoMixtureOfTwoStates(t *testing.T) {
	t.Parallel()
	ctx, home := t.Context(), t.TempDir()
	s, err := Open(ctx, Options{Home: home, Prefix: "main"})
	if err != nil {
		t.Fatal(err)
	}
	outputs := s.Port().Outputs
	for i := range 50 {
		if err := outputs.Put(ctx, strconv.Itoa(i), bytes.Repeat([]byte("a"), 3000)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(home, databaseFile)
	change := func(query string) {
		db, err := connect(path, 1)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		for _, query := range []string{query, "PRAGMA wal_checkpoint(TRUNCATE)"} {
			if _, err := db.ExecContext(ctx, query); err != nil {
				t.Fatal(err)
			}
		}
	}
	change("UPDATE output SET body = body")
	look, err := openLooker(path)
	if err != nil {
		t.Fatal(err)
	}
	defer look.close()
	seen := map[byte]int{}
	err = look.rows(ctx, "SELECT body FROM output ORDER BY rowid", nil, func(scan func(...any) error) error {
		var body []byte
		if err := scan(&body); err != nil {
			return err
		}
		if seen[body[0]]++; len(seen) == 1 && seen[body[0]] == 1 {
			change("UPDATE output SET body = CAST(replace(body, 'a', 'b') AS BLOB)")
		}
		return nil
	})
	if !fault.Is(err, fault.Unavailable) {
		t.Errorf("the look found %d rows of before and %d of after a change, and said %v", seen['a'], seen['b'], err)
	}
}

// TestALookAtAnOpenDatabaseIsNotDisturbed: where a process has the database open the
// look takes locks, so that a checkpoint beside it is no reason to ask again.
func TestALookAtAnOpenDatabaseIsNotDisturbed(t *testing.T) {
	t.Parallel()
	ctx, home := t.Context(), t.TempDir()
	s, err := Open(ctx, Options{Home: home, Prefix: "main"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	outputs := s.Port().Outputs
	for i := range 3 {
		if err := outputs.Put(ctx, strconv.Itoa(i), []byte("a")); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(home, databaseFile)
	look, err := openLooker(path)
	if err != nil {
		t.Fatal(err)
	}
	defer look.close()
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	err = look.rows(ctx, "SELECT name FROM output ORDER BY rowid", nil, func(scan func(...any) error) error {
		var name string
		if found++; found > 1 {
			return scan(&name)
		}
		if _, err := s.read.db.ExecContext(ctx, "PRAGMA query_only = 0; PRAGMA wal_checkpoint(PASSIVE); PRAGMA query_only = 1"); err != nil {
			return err
		}
		return scan(&name)
	})
	if err != nil || found != 3 {
		t.Errorf("the look found %d outputs, %v, want 3", found, err)
	}
	if after, err := os.Stat(path); err != nil || after.ModTime().Equal(before.ModTime()) && after.Size() == before.Size() {
		t.Errorf("the checkpoint changed nothing: %v, %v", after, err)
	}
}
