package local

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"jobq/core/fault"
	"jobq/core/port"
)

func openIn(t *testing.T, home string) *Store {
	t.Helper()
	s, err := Open(t.Context(), Options{Home: home, Prefix: "main"})
	if err != nil {
		t.Fatalf("Open = error %v", err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// refusesToOpen checks code and sentence of an Open that must fail.
func refusesToOpen(t *testing.T, home string, code fault.Code, words ...string) {
	t.Helper()
	s, err := Open(t.Context(), Options{Home: home, Prefix: "main"})
	if err == nil {
		_ = s.Close()
		t.Fatalf("Open(%s) succeeded, want fault %v", home, code)
	}
	if got := fault.CodeOf(err); got != code {
		t.Errorf("Open = error %v with fault %v, want fault %v", err, got, code)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("Open = error %q, want one that names %q", err, word)
		}
	}
}

func TestOpenRefusesBadPrefixesAndHomes(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{"", "a", "1abc", "a-b", "../x", strings.Repeat("a", 36)} {
		if _, err := Open(t.Context(), Options{Home: t.TempDir(), Prefix: prefix}); !fault.Is(err, fault.Invalid) {
			t.Errorf("Open of prefix %q = error %v, want fault invalid", prefix, err)
		}
	}
	if _, err := Open(t.Context(), Options{Prefix: "main"}); !fault.Is(err, fault.Invalid) {
		t.Errorf("Open without a home = error %v, want fault invalid", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refusesToOpen(t, file, fault.Denied, file, "not a directory")
}

// TestALogWithSomethingInItsPlaceIsRefused: nobody tries again and again to store it.
func TestALogWithSomethingInItsPlaceIsRefused(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	s := openIn(t, home)
	if err := os.WriteFile(filepath.Join(home, "logs", "main"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := s.Port().TaskLogs.Append(t.Context(), "w/a/1.1", []byte("said"))
	if !fault.Is(err, fault.Denied) || !strings.Contains(fault.RemedyOf(err), "move away") {
		t.Errorf("Append = %v, want it denied with what to do", err)
	}
}

func TestPrefixesAreApartAndCaseBlind(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	upper, err := Open(t.Context(), Options{Home: home, Prefix: "MAIN"})
	if err != nil {
		t.Fatal(err)
	}
	defer upper.Close()
	if _, err := upper.Port().States.Create(t.Context(), "w", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := openIn(t, home).Port().States.Load(t.Context(), "w", ""); err != nil {
		t.Errorf("Load by the same prefix in other case = error %v", err)
	}
	other, err := Open(t.Context(), Options{Home: home, Prefix: "other"})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := other.Port().States.Load(t.Context(), "w", ""); !fault.Is(err, fault.NotFound) {
		t.Errorf("Load by another prefix = error %v, want fault not_found", err)
	}
}

func TestHomeIsForItsUserAlone(t *testing.T) {
	t.Parallel()
	home := filepath.Join(t.TempDir(), "deep", "home")
	openIn(t, home)
	for name, want := range map[string]os.FileMode{"": 0o700, "live": 0o700, "logs": 0o700, "outputs": 0o700, databaseFile: 0o600} {
		info, err := os.Stat(filepath.Join(home, name))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("mode of home/%s = %v, error %v, want %v", name, info.Mode().Perm(), err, want)
		}
	}
}

func TestDamagedDatabaseIsCorrupt(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	path := filepath.Join(home, databaseFile)
	if err := os.WriteFile(path, []byte(strings.Repeat("this is no database\n", 500)), 0o600); err != nil {
		t.Fatal(err)
	}
	refusesToOpen(t, home, fault.Corrupt, path)
}

func TestNewerDatabaseIsTooNew(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	if err := openIn(t, home).Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(home, databaseFile)
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(fmt.Sprintf("PRAGMA user_version = %d", len(schema)+1)); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	refusesToOpen(t, home, fault.TooNew, path)
}

func TestFullDiskSpoilsNobodyElse(t *testing.T) {
	t.Parallel()
	s := openIn(t, t.TempDir())
	// A database that may not grow fails as one on a full disk does.
	var pages int
	if err := s.write.do(t.Context(), false, func(tx *tx) error {
		_, err := tx.row("PRAGMA page_count", nil, &pages)
		if err == nil {
			_, err = tx.row(fmt.Sprintf("PRAGMA max_page_count = %d", pages+40), nil, &pages)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	states := s.Port().States
	var wg sync.WaitGroup
	small := make([]error, 20)
	large := make([]error, 5)
	for i := range small {
		wg.Go(func() { _, small[i] = states.Create(t.Context(), fmt.Sprint("small ", i), []byte("x")) })
	}
	for i := range large {
		wg.Go(func() { _, large[i] = states.Create(t.Context(), fmt.Sprint("large ", i), make([]byte, 1<<20)) })
	}
	wg.Wait()
	if err := errors.Join(small...); err != nil {
		t.Errorf("small writes beside large ones = error %v", err)
	}
	for _, err := range large {
		if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "disk is full") || !strings.Contains(err.Error(), s.home) {
			t.Errorf("a write that does not fit = error %v, want fault unavailable that names the disk and %s", err, s.home)
		}
	}
}

func TestCallsAfterCloseFail(t *testing.T) {
	t.Parallel()
	s := openIn(t, t.TempDir())
	store := s.Port()
	if err := store.Queues.Ensure(t.Context(), "cpu"); err != nil {
		t.Fatal(err)
	}
	waiting := make(chan error, 1)
	go func() {
		_, err := store.Queues.Queue("cpu").Receive(t.Context(), port.ReceiveOptions{Max: 1, Lock: time.Hour, Wait: time.Hour})
		waiting <- err
	}()
	<-s.bell.arrived
	if err := store.Close(); err != nil {
		t.Errorf("Close = error %v", err)
	}
	_, load := store.States.Load(t.Context(), "w", "")
	_, create := store.States.Create(t.Context(), "w", nil)
	for call, err := range map[string]error{"waiting Receive": <-waiting, "Load": load, "Create": create, "Append": store.TaskLogs.Append(t.Context(), "w", nil)} {
		if !fault.Is(err, fault.Unavailable) {
			t.Errorf("%s after Close = error %v, want fault unavailable", call, err)
		}
	}
	if err := store.Close(); err != nil {
		t.Errorf("second Close = error %v", err)
	}
}

func TestCanceledWriteDoesNotHappen(t *testing.T) {
	t.Parallel()
	s := openIn(t, t.TempDir())
	states := s.Port().States
	hold, held := make(chan struct{}), make(chan struct{})
	go func() {
		_ = s.write.do(context.WithoutCancel(t.Context()), false, func(*tx) error {
			close(held)
			<-hold
			return nil
		})
	}()
	<-held
	ctx, cancel := context.WithCancel(t.Context())
	answer := make(chan error, 1)
	go func() {
		_, err := states.Create(ctx, "w", nil)
		answer <- err
	}()
	cancel()
	if err := <-answer; !fault.Is(err, fault.Canceled) {
		t.Errorf("Create while the writer is busy = error %v, want fault canceled", err)
	}
	close(hold)
	if _, err := states.Load(t.Context(), "w", ""); !fault.Is(err, fault.NotFound) {
		t.Errorf("Load after a canceled Create = error %v, want fault not_found", err)
	}
}

func TestManySavesDoNotBloat(t *testing.T) {
	t.Parallel()
	s := openIn(t, t.TempDir())
	doc := make([]byte, 1<<20)
	tag, err := s.Port().States.Create(t.Context(), "w", doc)
	for range 150 {
		if err != nil {
			t.Fatal(err)
		}
		tag, err = s.Port().States.Save(t.Context(), "w", doc, tag)
	}
	for name, most := range map[string]int64{databaseFile: 4 << 20, databaseFile + "-wal": 40 << 20} {
		info, err := os.Stat(filepath.Join(s.home, name))
		if err != nil || info.Size() > most {
			t.Errorf("after 150 saves of 1 MiB %s has %d bytes, error %v, want at most %d", name, info.Size(), err, most)
		}
	}
}

func TestLostOutputFileIsCorrupt(t *testing.T) {
	t.Parallel()
	s := openIn(t, t.TempDir())
	if err := s.Port().Outputs.Put(t.Context(), "large", make([]byte, inlineBlob+1)); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(s.home, outputDir, "*", "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files of outputs = %v, error %v, want one", files, err)
	}
	if err := os.Remove(files[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Port().Outputs.Get(t.Context(), "large"); !fault.Is(err, fault.Corrupt) {
		t.Errorf("Get = error %v, want fault corrupt", err)
	}
}

func TestOutputFilesGoWithTheirNames(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	s := openIn(t, home)
	outputs := s.Port().Outputs
	for _, name := range []string{"w/a", "w/b", "keep"} {
		if err := outputs.Put(t.Context(), name, make([]byte, inlineBlob+1)); err != nil {
			t.Fatal(err)
		}
	}
	// An orphan is what a crash between file and name leaves.
	orphan := filepath.Join(home, outputDir, s.live.id, "99")
	if err := os.WriteFile(orphan, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := outputs.DeletePrefix(t.Context(), "w/", nil); err != nil {
		t.Fatal(err)
	}
	s.Kill()
	next := openIn(t, home)
	files, err := filepath.Glob(filepath.Join(home, outputDir, "*", "*"))
	if err != nil || len(files) != 1 {
		t.Errorf("files of outputs = %v, error %v, want that of keep alone", files, err)
	}
	if _, err := next.Port().Outputs.Get(t.Context(), "keep"); err != nil {
		t.Errorf("Get(keep) = error %v", err)
	}
}

func TestHomesWithOddNamesWork(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a b", "100%", "what?", "a#b", "日本", "a&b=c", "%41", "file:x", "a;b"} {
		home := filepath.Join(t.TempDir(), name)
		s := openIn(t, home)
		if _, err := s.Port().States.Create(t.Context(), "w", nil); err != nil {
			t.Errorf("Create in home %q = error %v", name, err)
		}
		if _, err := os.Stat(filepath.Join(home, databaseFile)); err != nil {
			t.Errorf("the database of home %q is elsewhere: %v", name, err)
		}
	}
}

// TestOnlyRelaxedWritesGoUnsynced asks the writing connection itself.
func TestOnlyRelaxedWritesGoUnsynced(t *testing.T) {
	t.Parallel()
	s := openIn(t, t.TempDir())
	const normal, full = 1, 2
	for _, relaxed := range []bool{false, true, true, false, true, false, false} {
		var got int
		err := s.write.do(t.Context(), relaxed, func(*tx) error {
			return s.write.conn.QueryRowContext(t.Context(), "PRAGMA synchronous").Scan(&got)
		})
		want := full
		if relaxed {
			want = normal
		}
		if err != nil || got != want {
			t.Errorf("synchronous in a transaction with relaxed %v = %d, error %v, want %d", relaxed, got, err, want)
		}
	}
}
