//go:build unix

package proc

import (
	"context"
	"os"
	"runtime"
	"sync"
	"time"
)

// shell is the one that POSIX systems have at this place.
const shell = "/bin/sh"

// Run starts spec.Command and returns when it has ended, its output is
// delivered and no process of its group is alive (or Result.StillAlive says
// so). When ctx ends, the group gets SIGTERM (and SIGCONT, so that a stopped
// process can act on it) and, where processes are left after spec.Grace,
// SIGKILL; that holds for the whole group even when its leader is gone at once,
// because a shell dies of SIGTERM while its child still saves a checkpoint. A
// command that ends by itself takes what it left behind in its group with it.
//
// Run always returns a Reason. It may be called any number of times at once.
func Run(ctx context.Context, spec Spec) Result {
	if ctx.Err() != nil {
		return Result{Reason: Cancelled, Cause: context.Cause(ctx), ExitCode: -1}
	}
	if err := spec.check(); err != nil {
		return Result{Reason: Refused, Err: err, ExitCode: -1}
	}
	if spec.Drain <= 0 {
		spec.Drain = DefaultDrain
	}

	// The parent-death signal comes when the thread that made the child ends,
	// not only when the process does. A goroutine that is locked to its thread
	// keeps it, so the lock is held until the leader is reaped. It costs no
	// thread: this one waits for the leader anyway.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	out, err := openOutputs(&spec)
	if err != nil {
		reason, err := startFault(err)
		return Result{Reason: reason, Err: err, ExitCode: -1}
	}
	leader, err := startLeader(&spec, out)
	if err != nil {
		out.abandon()
		reason, err := startFault(err)
		return Result{Reason: reason, Err: err, ExitCode: -1}
	}
	res := Result{Reason: Exited, PGID: leader.Pid, Started: time.Now()}
	if spec.Started != nil {
		spec.Started(leader.Pid)
	}
	out.closeChild()
	out.start()
	attend(ctx, &spec, leader, &res)
	out.finish(spec.Drain)
	res.LeakedPipe, res.OutputErr = out.leaked(), out.err()
	res.StillAlive = !awaitGone(ctx, leader.Pid, spec.Drain)
	return res
}

// startLeader starts the shell. An empty environment must not be nil: nil means ours.
func startLeader(spec *Spec, out *outputs) (*os.Process, error) {
	env := spec.Env
	if env == nil {
		env = []string{}
	}
	return os.StartProcess(shell, shellArgs(spec.Command), &os.ProcAttr{
		Dir: spec.Dir, Env: env, Files: out.child[:], Sys: leaderAttr(),
	})
}

// attend waits for the leader, stops the group if it is told to, kills what is
// left of it, reaps the leader and fills in res.
func attend(ctx context.Context, spec *Spec, leader *os.Process, res *Result) {
	var stop sync.WaitGroup
	exited := make(chan struct{})
	stop.Go(func() {
		if cause := stopOnDemand(ctx, spec, leader.Pid, exited); cause != nil {
			res.Reason, res.Cause = Cancelled, cause
		}
	})
	waited := awaitExit(leader)
	res.Ended = time.Now()
	close(exited)
	stop.Wait()
	killGroup(leader.Pid)
	state, err := reap(leader, waited)
	if err != nil {
		// Only a caller who reaps foreign children gets here. The command
		// ended, and nobody can say how.
		res.ExitCode = -1
		return
	}
	res.ExitCode, res.Signal = state.ExitCode(), endSignal(state)
}

// stopOnDemand ends the group when ctx ends or spec.Kill is closed, and
// returns the cause, or nil if the leader exited first. After a SIGTERM it
// returns when the leader has exited and the rest of the group is gone or has
// had its grace.
func stopOnDemand(ctx context.Context, spec *Spec, pgid int, exited <-chan struct{}) error {
	select {
	case <-exited:
		return nil
	case <-spec.Kill:
		killGroup(pgid)
		return ErrKilled
	case <-ctx.Done():
	}
	select {
	case <-exited: // both were ready: the end came first
		return nil
	default:
	}
	cause := context.Cause(ctx)
	terminateGroup(pgid)
	var grace <-chan time.Time // never fires where the grace is unbounded
	if spec.Grace > 0 {
		timer := time.NewTimer(spec.Grace)
		defer timer.Stop()
		grace = timer.C
	}
	select {
	case <-exited:
		awaitGrace(pgid, grace, spec.Kill)
	case <-grace:
		killGroup(pgid)
	case <-spec.Kill:
		killGroup(pgid)
	}
	return cause
}

// awaitGrace returns when nothing of the group is alive, or the grace is over,
// or the owner wants the kill. The system reports no end of a group, so it looks.
func awaitGrace(pgid int, grace <-chan time.Time, kill <-chan struct{}) {
	for pause := firstPause; GroupAlive(pgid); pause = min(2*pause, longestPause) {
		select {
		case <-time.After(pause):
		case <-grace:
			return
		case <-kill:
			return
		}
	}
}
