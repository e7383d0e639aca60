package proc

import (
	"errors"
	"io"
	"strings"
	"syscall"
	"time"

	"jobq/core/fault"
)

// RunIDVariable is the environment variable that marks every process of one
// start of an attempt. FindByRunID and KillByRunID look for it.
const RunIDVariable = "JOBQ_RUN_ID"

// DefaultDrain is the bound of a drain where Spec.Drain is zero.
const DefaultDrain = 2 * time.Second

// ErrKilled is the cause of a command that was stopped through Spec.Kill while
// its context still stood.
var ErrKilled = errors.New("killed at once by its owner")

// Spec says what Run starts and how it is stopped.
type Spec struct {
	// Command is handed whole to one `sh -c`.
	Command string
	// Env is the complete environment; nothing of the caller's is added.
	// Values may be any bytes but NUL. Where a name is given twice the shell
	// decides.
	Env []string
	// Dir is the working directory; empty means the caller's.
	Dir string
	// Stdout and Stderr receive the output, byte for byte, by one goroutine
	// each; nil discards it. Where both are the same comparable value they
	// share one pipe: the order is the command's, and no two writes overlap.
	// A Write that fails does not stop the command: the rest is read and
	// dropped, see Result.OutputErr. Run waits for a Write that has begun.
	Stdout, Stderr io.Writer
	// Grace is the time between SIGTERM and SIGKILL. Zero means that SIGTERM
	// is never followed by SIGKILL (Kill still is).
	Grace time.Duration
	// Drain bounds, once the leader has ended and its group was killed, first
	// the wait for the end of the output, then the wait for the group to be
	// gone. Zero means DefaultDrain.
	Drain time.Duration
	// Started, if set, is called with the number of the process group as soon
	// as the command runs and before Run waits for anything. It should not
	// block. If this process dies before the call, the parent-death signal
	// (Linux) ends the leader; what the leader had started by then carries the
	// run id and is found by it.
	Started func(pgid int)
	// Kill, once closed, sends SIGKILL to the group at once.
	Kill <-chan struct{}
}

// Reason says how a Run came to its end. The list is closed: retry decisions
// are made on it.
type Reason uint8

const (
	// Exited is a command that ended without being asked to.
	Exited Reason = iota + 1
	// Cancelled is a command that was asked to stop before it had ended, or
	// was never started because its context had ended; see Result.Cause. It
	// may still have ended with exit code 0.
	Cancelled
	// Refused is a command that could not be started for a reason of its own
	// (no such directory, arguments too long): it would fail anywhere.
	Refused
	// Unstartable is a command that this machine could not start (no process,
	// memory or file descriptor left): it may start elsewhere or later.
	Unstartable
)

// String returns the stable lower-case name of r.
func (r Reason) String() string {
	switch r {
	case Exited:
		return "exited"
	case Cancelled:
		return "cancelled"
	case Refused:
		return "refused"
	case Unstartable:
		return "unstartable"
	default:
		return "unknown"
	}
}

// Result says how a command ended.
type Result struct {
	Reason Reason
	// ExitCode is the exit code of the leader, or -1 if it was not started or
	// ended by a signal.
	ExitCode int
	// Signal is what ended the leader, or 0.
	Signal syscall.Signal
	// Cause is the cause of the context's end, or ErrKilled, where Reason is
	// Cancelled.
	Cause error
	// Err says why the command did not start, where Reason is Refused
	// (fault.Invalid) or Unstartable (fault.Unavailable).
	Err error
	// PGID is the process group, or 0 if the command was not started.
	PGID int
	// Started and Ended are the start and the end of the leader; zero if the
	// command was not started.
	Started, Ended time.Time
	// LeakedPipe says that a process outside the group kept the output open
	// past the drain. What had been written by then was delivered, what came
	// later was not; worth a warning, not a failure.
	LeakedPipe bool
	// StillAlive says that a process of the group could not be killed within
	// the drain: await WaitGone before giving up what protects the task.
	StillAlive bool
	// OutputErr is the first error of Stdout and of Stderr.
	OutputErr error
}

// Success reports whether the leader was started and exited with code 0.
func (r Result) Success() bool { return !r.Started.IsZero() && r.ExitCode == 0 }

// check refuses what no machine could start, before anything is opened.
func (s *Spec) check() error {
	if strings.IndexByte(s.Command, 0) >= 0 {
		return fault.New(fault.Invalid, "the command contains a NUL byte").
			WithRemedy("remove the NUL byte; put binary data into a file")
	}
	for _, entry := range s.Env {
		if strings.IndexByte(entry, 0) >= 0 {
			name, _, _ := strings.Cut(entry, "=")
			return fault.Newf(fault.Invalid, "the environment variable %q contains a NUL byte", name).
				WithRemedy("remove the NUL byte; put binary data into a file")
		}
	}
	if s.Dir == "" {
		return nil
	}
	return checkDir(s.Dir)
}

// shellArgs returns the arguments of the shell. A command that begins like an
// option needs the separator; it is left out elsewhere so that what people see
// in a process list is the plain form.
func shellArgs(command string) []string {
	if strings.HasPrefix(command, "-") || strings.HasPrefix(command, "+") {
		return []string{"sh", "-c", "--", command}
	}
	return []string{"sh", "-c", command}
}
