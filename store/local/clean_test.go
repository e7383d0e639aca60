package local

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// openKilled opens the home as a process that then dies, with a directory for its
// scratch files.
func openKilled(t *testing.T, home string) (id, scratch string) {
	t.Helper()
	s, err := Open(t.Context(), Options{Home: home, Prefix: "main"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	s.Kill()
	return s.live.id, s.Port().Scratch
}

// openOnce opens the home and closes it again.
func openOnce(t *testing.T, home string) (id string) {
	t.Helper()
	s, err := Open(t.Context(), Options{Home: home, Prefix: "main"})
	if err != nil {
		t.Fatalf("Open = %v", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
	return s.live.id
}

func exists(t *testing.T, path ...string) bool {
	t.Helper()
	_, err := os.Lstat(filepath.Join(path...))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return err == nil
}

// TestScratchThatCannotBeRemovedKeepsNobodyOut: it is removed by whoever opens the
// home once that is possible.
func TestScratchThatCannotBeRemovedKeepsNobodyOut(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	killed, scratch := openKilled(t, home)
	// Nothing is removed through a link that leads out of the home.
	all := filepath.Dir(scratch)
	if err := os.Symlink(t.TempDir(), all); err != nil {
		t.Fatal(err)
	}
	closed := openOnce(t, home)
	openOnce(t, home)
	for _, id := range []string{killed, closed} {
		if !exists(t, home, liveDir, id) {
			t.Errorf("nothing tells that %s may have left scratch files", id)
		}
	}
	if err := os.Remove(all); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{killed, closed} {
		if err := os.MkdirAll(filepath.Join(all, id, "jobq-1"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	openOnce(t, home)
	for _, id := range []string{killed, closed} {
		if exists(t, all, id) || exists(t, home, liveDir, id) {
			t.Errorf("what %s left is still there", id)
		}
	}
}
