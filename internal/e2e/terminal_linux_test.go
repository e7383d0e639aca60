package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestAClosedTerminalLeavesTasksTheirTime closes the terminal of an interactive shell:
// bash tells its jobs, and the kernel what is in front.
func TestAClosedTerminalLeavesTasksTheirTime(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	leavesTime(t, func() stopped { return closeTerminal(t, bash) })
}

// closeTerminal closes the terminal of a run in a shell.
func closeTerminal(t *testing.T, bash string) stopped {
	t.Helper()
	h := newHome(t)
	window, shown := openTerminal(t)
	shell := h.command(t.Context())
	shell.Path, shell.Args = bash, []string{"bash", "--norc", "-i"}
	shell.Stdin, shell.Stdout, shell.Stderr = shown, shown, shown
	shell.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	h.start(shell)
	line := h.bin + " " + strings.Join(h.serving("run"), " ") + "\n"
	if _, err := window.WriteString(line); err != nil {
		t.Fatal(err)
	}
	h.wait("started")
	shown.Close()
	window.Close()
	h.waitGone("parent")
	// The shell took the code with it.
	return stopped{code: stopCodes["run"], want: stopCodes["run"], graced: h.has("graced")}
}

// waitGone waits for the end of the process whose number the file holds: what it still
// writes would come in the way of removing its home.
func (h *home) waitGone(file string) {
	h.t.Helper()
	pid := h.lines(file)[0]
	for deadline := time.Now().Add(patience); ; {
		// Of one that has ended, but was not collected, no program is known.
		if _, err := os.Readlink("/proc/" + pid + "/exe"); err != nil {
			return
		}
		if time.Now().After(deadline) {
			h.t.Fatalf("process %s of %s does not end", pid, file)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// openTerminal returns the two ends of a pseudo-terminal: the window, and the side that
// programs see.
func openTerminal(t *testing.T) (window, shown *os.File) {
	t.Helper()
	window, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { window.Close() })
	if err := unix.IoctlSetPointerInt(int(window.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(window.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	shown, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shown.Close() })
	return window, shown
}
