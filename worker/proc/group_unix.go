//go:build unix

package proc

import (
	"errors"
	"os"
	"syscall"
)

// KillGroup sends SIGKILL to every process of the group pgid. A group that does
// not exist is no error, and numbers that mean something else to the system
// (0, 1 and below) are left alone.
func KillGroup(pgid int) error { return signalGroup(pgid, syscall.SIGKILL) }

// killGroup is KillGroup for a group of our own making. It can fail only where
// the command has changed its user to one that we may not signal; then the
// group stays alive and Result.StillAlive says so.
func killGroup(pgid int) { _ = signalGroup(pgid, syscall.SIGKILL) }

// terminateGroup asks the group to end. A stopped process would not see the
// SIGTERM without the SIGCONT. It can fail as killGroup can.
func terminateGroup(pgid int) {
	_ = signalGroup(pgid, syscall.SIGTERM)
	_ = signalGroup(pgid, syscall.SIGCONT)
}

func signalGroup(pgid int, sig syscall.Signal) error {
	if pgid <= 1 {
		return nil
	}
	if err := syscall.Kill(-pgid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return os.NewSyscallError("kill", err)
	}
	return nil
}

// endSignal returns the signal that ended a process, or 0.
func endSignal(state *os.ProcessState) syscall.Signal {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return status.Signal()
	}
	return 0
}
