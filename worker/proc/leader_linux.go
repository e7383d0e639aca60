package proc

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// leaderAttr puts the command into a session of its own, hence into a group of
// its own. The session keeps it from the terminal: a password prompt fails with
// a clear error instead of stopping the task for ever, Ctrl-C reaches the
// worker alone, and no process of a task can move into the group of another.
func leaderAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

// awaitExit returns when the leader has exited, and leaves it unreaped: its
// number, which is the group's too, stays taken. The result is for reap.
func awaitExit(leader *os.Process) *os.ProcessState {
	for {
		err := unix.Waitid(unix.P_PID, leader.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return nil // an error here means that the leader is no longer ours; reap says so
		}
	}
}

// reap takes the leader's exit status and frees its number.
func reap(leader *os.Process, _ *os.ProcessState) (*os.ProcessState, error) { return leader.Wait() }
