//go:build unix

// Package proctest has what tests of real processes share: a pipe that tells
// when the last process that holds it is gone, and a bounded poll for what the
// system sends no event for. It is for _test.go files only.
package proctest

import (
	"bytes"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Patience bounds every wait of this package; a sound test comes nowhere near it.
const Patience = time.Minute

// Fifo is a named pipe that commands hold open for writing (`exec 9>PATH`). Its
// reader sees what they write and, as its end, that none of them is alive.
// A Fifo is for one goroutine.
type Fifo struct {
	// Path is the name of the pipe.
	Path string

	read *os.File
	text bytes.Buffer
}

// NewFifo makes a pipe in a directory of the test.
func NewFifo(t testing.TB) *Fifo {
	t.Helper()
	f := &Fifo{Path: filepath.Join(t.TempDir(), "fifo")}
	if err := syscall.Mkfifo(f.Path, 0o600); err != nil {
		t.Fatal(err)
	}
	// Non-blocking, so that the open does not wait for a writer and reads have deadlines.
	fd, err := syscall.Open(f.Path, syscall.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.read = os.NewFile(uintptr(fd), f.Path)
	t.Cleanup(func() { f.read.Close() })
	return f
}

// Hold returns the shell text that opens the pipe as descriptor 9.
func (f *Fifo) Hold() string { return "exec 9>" + Quote(f.Path) + "; " }

// Quote returns a path as a word of shell text, also between single quotes: the folder
// for temporary files may have any name.
func Quote(path string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(path) + `"`
}

// Text returns what was read so far.
func (f *Fifo) Text() string { return f.text.String() }

// Await reads until want has been written, or fails the test.
func (f *Fifo) Await(t testing.TB, want string) {
	t.Helper()
	buf := make([]byte, 512)
	// A pipe without a writer reads as ended, hence the poll.
	Eventually(t, "a process to write "+want, func() bool {
		f.read.SetReadDeadline(time.Now().Add(Patience))
		n, _ := f.read.Read(buf)
		f.text.Write(buf[:n])
		return strings.Contains(f.Text(), want)
	})
}

// AwaitEnd returns when no process holds the pipe, or fails the test.
func (f *Fifo) AwaitEnd(t testing.TB) {
	t.Helper()
	buf := make([]byte, 512)
	f.read.SetReadDeadline(time.Now().Add(Patience))
	for {
		n, err := f.read.Read(buf)
		f.text.Write(buf[:n])
		switch {
		case n > 0:
		case os.IsTimeout(err):
			t.Fatalf("a process still holds %s after %v; written so far: %q", f.Path, Patience, f.Text())
		default:
			return
		}
	}
}

// Held reports whether a process holds the pipe now. It asks the system and not a
// deadline, which may pass before a busy machine has looked at all.
func (f *Fifo) Held(t testing.TB) (held bool) {
	t.Helper()
	f.read.SetReadDeadline(time.Time{})
	conn, err := f.read.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var failed error
	err = conn.Read(func(fd uintptr) bool {
		for buf := make([]byte, 512); ; {
			n, err := syscall.Read(int(fd), buf)
			switch {
			case n > 0:
				f.text.Write(buf[:n])
			case err == syscall.EINTR:
			case err == nil || err == syscall.EAGAIN:
				held = err != nil // without a writer the pipe is at its end
				return true
			default:
				failed = err
				return true
			}
		}
	})
	if err = errors.Join(err, failed); err != nil {
		t.Fatal(err)
	}
	return held
}

// RunID returns a run id that no other test has, and none of another run of the tests
// on this machine: whoever looks for a run id meets every process.
func RunID(t testing.TB) string { return t.Name() + "/" + rand.Text() }

// Eventually polls until done returns true, or fails the test.
func Eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for limit := time.After(Patience); !done(); {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("waited %v for %s", Patience, what)
		}
	}
}
