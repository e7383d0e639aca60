package local

import (
	"os"
	"path/filepath"
	"testing"
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
