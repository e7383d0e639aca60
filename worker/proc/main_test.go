package proc_test

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"jobq/worker/proc"
)

// roleVariable makes this test binary play a program instead of running tests.
const roleVariable = "JOBQ_PROC_TEST_ROLE"

// patience bounds every wait of these tests; none of them comes near it.
const patience = 20 * time.Second

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "":
		os.Exit(m.Run())
	case "slow-term":
		playSlowTerm()
	case "dying-worker":
		playDyingWorker()
	case "idle":
		select {}
	default:
		fmt.Fprintln(os.Stderr, "unknown role")
		os.Exit(99)
	}
}

// playSlowTerm works on after SIGTERM until its standard output has taken one
// more line, then exits 7.
func playSlowTerm() {
	terms := make(chan os.Signal, 1)
	signal.Notify(terms, syscall.SIGTERM)
	fmt.Println("ready")
	<-terms
	fmt.Println("saving")
	<-time.After(50 * time.Millisecond)
	fmt.Println("saved")
	os.Exit(7)
}

// playDyingWorker runs one command and is killed by the test while it runs.
func playDyingWorker() {
	proc.Run(context.Background(), proc.Spec{
		Command: "exec 9>" + os.Getenv("FIFO") + "; echo ready >&9; exec sleep 600",
		Env:     os.Environ(),
		Grace:   time.Second,
	})
}

// asRole returns the environment in which this test binary plays role.
func asRole(role string, more ...string) []string {
	return append([]string{roleVariable + "=" + role, "PATH=" + os.Getenv("PATH")}, more...)
}

// self returns this test binary, quoted for a shell.
func self(t testing.TB) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return "'" + exe + "'"
}

// environment is what a plain command of these tests gets.
func environment(more ...string) []string {
	return append([]string{"PATH=" + os.Getenv("PATH")}, more...)
}

// holders is a named pipe that commands open for writing: its reader sees what
// they write and, as its end, that none of them is alive.
type holders struct {
	path string
	read *os.File
	text strings.Builder
}

// newHolders makes the pipe. It opens it for reading and writing until a
// holder has written, because a pipe without a writer reads as ended.
func newHolders(t *testing.T) *holders {
	t.Helper()
	h := &holders{path: filepath.Join(t.TempDir(), "fifo")}
	if err := syscall.Mkfifo(h.path, 0o600); err != nil {
		t.Fatal(err)
	}
	fd, err := syscall.Open(h.path, syscall.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	h.read = os.NewFile(uintptr(fd), h.path)
	t.Cleanup(func() { h.read.Close() })
	return h
}

// await reads until the text contains want, polling while the pipe has no
// writer yet.
func (h *holders) await(t *testing.T, want string) {
	t.Helper()
	buf := make([]byte, 512)
	eventually(t, "the holder to write "+want, func() bool {
		h.read.SetReadDeadline(time.Now().Add(patience))
		n, _ := h.read.Read(buf)
		h.text.Write(buf[:n])
		return strings.Contains(h.text.String(), want)
	})
}

// awaitEnd reads until no holder is alive.
func (h *holders) awaitEnd(t *testing.T) {
	t.Helper()
	buf := make([]byte, 512)
	h.read.SetReadDeadline(time.Now().Add(patience))
	for {
		n, err := h.read.Read(buf)
		h.text.Write(buf[:n])
		switch {
		case n == 0 && err != nil && os.IsTimeout(err):
			t.Fatalf("a process still holds %s after %v; it wrote %q", h.path, patience, h.text.String())
		case n == 0:
			return
		}
	}
}

// eventually polls until done returns true, for what the system sends no event for.
func eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for limit := time.After(patience); !done(); {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("waited %v for %s", patience, what)
		}
	}
}
