package reaper

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// asProcessOne makes the test program do what Run does as process 1: a subreaper
// inherits the orphans of its descendants as process 1 does those of all.
const asProcessOne = "JOBQ_TEST_PROCESS_ONE"

func TestMain(m *testing.M) {
	script := os.Getenv(asProcessOne)
	if script == "" {
		inheritNothing()
		os.Exit(m.Run())
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(99)
	}
	code, err := serve("/bin/sh", []string{"sh", "-c", script})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(99)
	}
	os.Exit(code)
}

// inheritNothing makes the tests the same under nohup and in the background of a
// script: what is ignored there would be ignored by every child, what is caught is not.
func inheritNothing() {
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
}

func command(t *testing.T, script string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), asProcessOne+"="+script)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	return cmd, &out
}

func TestItEndsAsItsProgramEnds(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]int{"exit 0": 0, "exit 5": 5, "kill -9 $$": 137, "kill -TERM $$": 143} {
		cmd, out := command(t, script)
		_ = cmd.Run()
		if got := cmd.ProcessState.ExitCode(); got != want {
			t.Errorf("%q ended with %d, want %d\n%s", script, got, want, out)
		}
	}
}

// The program leaves ten processes behind, waits until they have ended, and counts
// what is left of them.
func TestItCollectsWhatItsProgramLeavesBehind(t *testing.T) {
	t.Parallel()
	const script = `
for i in 1 2 3 4 5 6 7 8 9 10; do (sh -c 'kill -STOP $$' & echo $!) ; done > pids
for p in $(cat pids); do
	until grep -q 'State:.T' /proc/$p/status; do :; done
	[ "$(awk '/^PPid/ {print $2}' /proc/$p/status)" = $PPID ] || echo "$p is not inherited"
	kill -KILL $p
	n=0
	while [ -e /proc/$p ] && [ $n -lt 100000 ]; do n=$((n+1)); done
	[ ! -e /proc/$p ] || echo "$p is left"
done
`
	cmd, out := command(t, script)
	cmd.Dir = t.TempDir()
	if err := cmd.Run(); err != nil || out.Len() > 0 {
		t.Errorf("the program ended with %v and said %q, want nothing", err, out)
	}
}

func TestItPassesSignalsOn(t *testing.T) {
	t.Parallel()
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR1} {
		dir := t.TempDir()
		name := strings.TrimPrefix(unix.SignalName(s), "SIG")
		cmd, out := command(t, "trap 'echo got "+name+"; exit 7' "+name+"; : > ready; for i in $(seq 1200); do sleep 0.05; done")
		cmd.Dir = dir
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		waitFor(t, filepath.Join(dir, "ready"))
		if err := cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != 7 || out.String() != "got "+name+"\n" {
			t.Errorf("after %v it ended with %d and said %q, want 7 and the name of the signal once", s, code, out)
		}
	}
}

// Whoever starts jobq may want a signal ignored, as nohup does.
func TestASignalThatIsIgnoredStaysSo(t *testing.T) {
	t.Parallel()
	cmd, out := command(t, "kill -HUP $$; kill -INT $$; echo went on")
	cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", `trap "" HUP INT; exec "$0"`, cmd.Path}
	if err := cmd.Run(); err != nil || out.String() != "went on\n" {
		t.Errorf("the program ended with %v and said %q, want it to go on", err, out)
	}
}

// Ctrl-Z stops what is in front of the terminal, and here no shell could let it go
// on: process 1 itself cannot be stopped, and its program is no worse off.
func TestItsProgramGoesOnAfterCtrlZ(t *testing.T) {
	t.Parallel()
	cmd, out := command(t, "kill -TSTP 0; echo went on")
	stuck := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer stuck.Stop()
	if err := cmd.Run(); err != nil || out.String() != "went on\n" {
		t.Errorf("the program ended with %v and said %q, want it to go on", err, out)
	}
}

// A terminal that is not ours to be in front of, as after setsid, is no reason not to
// start.
func TestItRunsAtATerminalOfOthers(t *testing.T) {
	t.Parallel()
	control, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer control.Close()
	if err := unix.IoctlSetPointerInt(int(control.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(control.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	cmd, out := command(t, "echo ran")
	cmd.Stdin = terminal
	if err := cmd.Run(); err != nil || out.String() != "ran\n" {
		t.Errorf("the program ended with %v and said %q, want it to run", err, out)
	}
}

func waitFor(t *testing.T, file string) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); <-tick.C {
		if _, err := os.Stat(file); err == nil {
			return
		}
	}
	t.Fatalf("%s did not come", file)
}

func TestOtherProcessesRunAsTheyAre(t *testing.T) {
	t.Parallel()
	if code, ran := Run(t.Output()); ran {
		t.Errorf("Run = %d, true in process %d, want nothing done", code, os.Getpid())
	}
}
