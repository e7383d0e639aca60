//go:build unix && !linux

package proc

import (
	"errors"
	"os"
	"syscall"
)

// leaderAttr puts the command into a session, hence a group, of its own. These
// systems have no parent-death signal: the guardian alone ends the command of a
// dead worker.
func leaderAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// awaitExit waits for the leader and reaps it: Go offers no portable way to
// wait without. Between this and the kill of the group its number is free, for
// microseconds, in case nothing else of the group is alive.
func awaitExit(leader *os.Process) *os.ProcessState {
	state, err := leader.Wait()
	if err != nil {
		return nil
	}
	return state
}

// reap returns what awaitExit found.
func reap(_ *os.Process, waited *os.ProcessState) (*os.ProcessState, error) {
	if waited == nil {
		return nil, errors.New("the leader was reaped by somebody else")
	}
	return waited, nil
}

// GroupAlive reports whether a process of the group pgid is alive. A group of
// zombies alone answers EPERM on Darwin and counts as gone.
func GroupAlive(pgid int) bool { return pgid > 1 && syscall.Kill(-pgid, 0) == nil }

// FindByRunID finds nothing here: these systems do not show the environment of
// a process in a file system.
func FindByRunID(...string) []int { return nil }
