package local

import (
	"os"
	"path/filepath"
	"testing"
)

func TestScratchDirectoriesThatAreReadOnlyAreRemoved(t *testing.T) {
	t.Parallel()
	if !asSomebody(t) {
		return
	}
	home := t.TempDir()
	_, scratch := openKilled(t, home)
	inner := filepath.Join(scratch, "jobq-1", "outputs", "not\xfftext")
	if err := os.MkdirAll(filepath.Join(inner, "deep"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{inner, filepath.Dir(inner)} {
		if err := os.Chmod(dir, 0o100); err != nil {
			t.Fatal(err)
		}
	}
	openOnce(t, home)
	if exists(t, scratch) {
		t.Errorf("%s is still there", scratch)
	}
}
