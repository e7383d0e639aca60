package local

import (
	"os"
	"testing"
)

// TestAProcessThatAnnouncesItselfKeepsItsFile: whoever found the file unlocked,
// in the moment before its owner had the lock, must not remove it afterwards.
func TestAProcessThatAnnouncesItselfKeepsItsFile(t *testing.T) {
	t.Parallel()
	s := openIn(t, t.TempDir())
	l := &liveFile{id: newProcessID(), root: s.root}
	file, err := s.root.OpenFile(l.name(), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	l.file = file
	if s.probes.alive(l.id) {
		t.Error("a file without a lock counts as a live process")
	}
	if !l.lock() {
		t.Fatal("the lock failed, though nobody holds one")
	}
	if removeLive(s.root, l.id) || !s.probes.alive(l.id) {
		t.Error("the file of a live process was removed")
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if !removeLive(s.root, l.id) {
		t.Error("the file of a dead process was not removed")
	}
	late := &liveFile{id: l.id, file: file, root: s.root}
	if late.lock() {
		t.Error("a file that was removed can still be locked")
	}
}
