package local

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jobq/core/fault"
)

// longer returns a path below dir of n bytes.
func longer(dir string, n int) string {
	for len(dir)+202 < n {
		dir += "/" + strings.Repeat("x", 200)
	}
	return dir + "/" + strings.Repeat("y", n-len(dir)-1)
}

func TestTheLongestHomeCanBeUsed(t *testing.T) {
	t.Parallel()
	openOnce(t, longer(t.TempDir(), maxHome))
}

func TestAHomeWithALongerPathIsRefusedInClearWords(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	long := longer(dir, maxHome+1)
	refusesToOpen(t, long, fault.Invalid, "496 bytes", "at most", long)
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("the refusal left %v, %v", left, err)
	}
	if err := os.MkdirAll(long, 0o700); err != nil {
		t.Fatal(err)
	}
	short := filepath.Join(dir, "short")
	if err := os.Symlink(long, short); err != nil {
		t.Fatal(err)
	}
	refusesToOpen(t, short, fault.Invalid, "at most", long)
}
