package local

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestASecondStoreOfAProcessLeavesTheLocksOfTheFirst holds that nothing but SQLite
// closes the database: with POSIX locks, whoever closes any descriptor of a file
// gives up all locks that his process has on it, and another process would take
// the file for unused and remove its log.
func TestASecondStoreOfAProcessLeavesTheLocksOfTheFirst(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	open := func(prefix string) *Store {
		s, err := Open(t.Context(), Options{Home: home, Prefix: prefix})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	open("first")
	before := locksOn(t, filepath.Join(home, "store.db"))
	if before == 0 {
		t.Fatal("an open store has no lock on its database")
	}
	second := open("second")
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	if after := locksOn(t, filepath.Join(home, "store.db")); after != before {
		t.Errorf("the first store has %d locks after a second was opened and closed, %d before", after, before)
	}
}

// locksOn returns how many locks this process holds on a file.
func locksOn(t *testing.T, path string) int {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	all, err := os.ReadFile("/proc/locks")
	if err != nil {
		t.Fatal(err)
	}
	owner, inode := fmt.Sprintf(" %d ", os.Getpid()), fmt.Sprintf(":%d ", info.Sys().(*syscall.Stat_t).Ino)
	n := 0
	for line := range strings.Lines(string(all)) {
		if strings.Contains(line, "POSIX") && strings.Contains(line, owner) && strings.Contains(line, inode) {
			n++
		}
	}
	return n
}
