package protocol

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"jobq/core/msg"
)

// ending says what becomes of an attempt after a start: it is reported where
// completion is set, else it is given back for another start.
type ending struct {
	completion *msg.Completion
	// because says why it is given back.
	because error
	// crashed counts towards the crash limit.
	crashed bool
	// keep leaves record and message alone, because processes are left.
	keep bool
	// rest is how long the message rests before the next start.
	rest time.Duration
}

// run runs the command while the record beats and cancel requests are looked
// for. When it returns nothing of them is left.
func (a *attempt) run(ctx context.Context) ending {
	live := context.WithoutCancel(ctx)
	command, stop := context.WithCancelCause(live)
	defer stop(nil)
	watch, finish := context.WithCancel(live)
	defer finish()
	waiting, release := context.WithCancel(ctx)
	defer release()
	killed := make(chan struct{})
	kill := sync.OnceFunc(func() { close(killed) })

	a.h.conf.Observe(a.event(Started, a.rec.Start, nil, nil))
	var result ending
	duties := []func(){
		func() {
			defer release()
			defer finish()
			result = a.execute(ctx, command, killed)
		},
		func() { a.stopWith(ctx, waiting, stop) },
		func() { a.keepAlive(watch, stop, kill) },
		func() { a.watchCancel(watch, stop) },
	}
	if !a.h.conf.HeldByLife {
		duties = append(duties, func() { a.fence(watch, stop, kill) })
	}
	if limit := a.timeLimit(); limit > 0 {
		duties = append(duties, func() {
			if a.h.conf.Scheduler.Sleep(watch, limit) == nil {
				stop(ErrTimedOut)
			}
		})
	}
	a.h.conf.Scheduler.Parallel(live, len(duties), len(duties), func(_ context.Context, i int) { duties[i]() })
	return result
}

// stopWith stops a command when ctx ends, and returns when waiting, which is
// derived from ctx, does.
func (a *attempt) stopWith(ctx, waiting context.Context, stop context.CancelCauseFunc) {
	for a.h.conf.Scheduler.Sleep(waiting, 24*time.Hour) == nil {
	}
	if ctx.Err() != nil {
		a.h.since(&a.stopped)
		stop(ErrStopping)
	}
}

// timeLimit returns the bound of one start, 0 for none.
func (a *attempt) timeLimit() time.Duration {
	const longest = float64(1<<63-1) / float64(time.Second)
	return time.Duration(min(a.task.TimeoutSeconds, longest/2) * float64(time.Second))
}

// execute runs the command and makes its ending. The record beats meanwhile, so
// the output is stored here too.
func (a *attempt) execute(ctx, command context.Context, kill <-chan struct{}) ending {
	task := a.task
	if err := a.fetchRefs(command, &task); err != nil {
		return a.ending(ctx, command, Unprepare(err))
	}
	start := Start{
		Task: task, Queue: a.queue.Name(), Attempt: a.key.Attempt, Start: a.rec.Start, RunID: a.rec.RunID,
		Claimed: Moment(a.sent.Load()), Survivor: a.survivor, Fetch: a.fetch,
		Log:  msg.LogName(a.key.Workflow, a.key.Task, a.key.Attempt, a.rec.Start),
		Kill: kill,
	}
	if !a.h.conf.HeldByLife {
		start.TTL = a.h.ttl
	}
	if a.silence() >= a.h.ttl/2 {
		// The worker stood still since the claim: by now the attempt may be another
		// start's, or over.
		return ending{because: ErrLockLost, crashed: true}
	}
	return a.ending(ctx, command, a.h.conf.Runner.Run(command, start))
}

// ending makes of an outcome what becomes of the attempt.
func (a *attempt) ending(ctx, command context.Context, out Outcome) ending {
	if e, stopped := a.interrupted(ctx, command, out); stopped {
		return e
	}
	return a.finished(ctx, command, out)
}

// interrupted tells the endings that are not the task's own.
func (a *attempt) interrupted(ctx, command context.Context, out Outcome) (ending, bool) {
	cause := context.Cause(command)
	switch {
	case out.Kind == Unstartable && (cause == nil || errors.Is(cause, ErrTimedOut)):
		return ending{because: errors.New(out.Error), crashed: true, rest: a.rest(a.rec.Crashes)}, true
	case out.Kind == Unprepared && cause == nil:
		return ending{because: errors.New(out.Error), rest: a.rest(1)}, true
	case out.success():
		return ending{}, false
	case errors.Is(cause, ErrLockLost), out.Kind == Exited && out.Signal != "" && a.silence() >= a.h.ttl/2:
		// The second is a guardian that was faster than a worker that stood still.
		return ending{because: ErrLockLost, crashed: true, keep: out.Remains}, true
	case out.Kind == Unprepared && errors.Is(cause, ErrTimedOut): // the limit bounds a whole start
		return ending{}, false
	case out.Kind == Unstartable, out.Kind == Unprepared: // what was stopped before it began
		return ending{because: cause}, true
	case out.Kind == Stopped && errors.Is(cause, ErrStopping), out.Kind == Exited && ctx.Err() != nil:
		// A machine that goes down signals its processes in any order. What fails
		// by itself while the worker stops is not booked as the task's failure.
		return ending{because: ErrStopping, keep: out.Remains}, true
	}
	return ending{}, false
}

// finished makes the completion of a command that ended for a reason of its
// own, or that was stopped for one.
func (a *attempt) finished(ctx, command context.Context, out Outcome) ending {
	c := a.completion(out)
	cause := context.Cause(command)
	switch {
	case out.Kind == Impossible:
		c.Reason = msg.SpawnFailed
	case out.Kind == Stopped && errors.Is(cause, ErrCancelled):
		c.Reason, c.Error = msg.Cancelled, sentence("stopped because the workflow was cancelled", c.Error)
	case (out.Kind == Stopped || out.Kind == Unprepared) && errors.Is(cause, ErrTimedOut):
		c.Reason = msg.TimedOut
		c.Error = sentence(fmt.Sprintf("stopped at its time limit of %v", a.timeLimit()), c.Error)
	case out.Kind == Stopped:
		return ending{because: cause, keep: out.Remains}
	case !out.success():
		c.Reason = msg.Exited
	case out.OutputError != "":
		c.Reason, c.Error = msg.OutputInvalid, out.OutputError
	default:
		c.Success = true
	}
	if err := a.placeOutput(ctx, &c, out.Output); err != nil {
		a.unwritten(ctx, err)
		return ending{because: err, rest: a.rest(1)}
	}
	c.Error = msg.TruncateText(c.Error, msg.MaxError)
	return ending{completion: &c}
}

// completion makes the common part of a report.
func (a *attempt) completion(out Outcome) msg.Completion {
	c := msg.Completion{
		Workflow: a.key.Workflow, Task: a.key.Task, Attempt: a.key.Attempt, Start: a.rec.Start,
		Worker: a.h.conf.Worker, Signal: out.Signal, Error: out.Error,
		StartedAt: milliseconds(out.StartedAt), EndedAt: milliseconds(out.EndedAt),
	}
	if out.Kind == 0 || out.StartedAt.IsZero() { // never began: there is no log
		c.EndedAt = a.now()
		return c
	}
	if out.ExitCode >= 0 {
		c.ExitCode = new(out.ExitCode)
	}
	c.Log = msg.LogName(a.key.Workflow, a.key.Task, a.key.Attempt, a.rec.Start)
	return c
}

func milliseconds(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC().Truncate(time.Millisecond)
}

// sentence joins two texts of which the second may be empty.
func sentence(head, tail string) string {
	if tail == "" {
		return head
	}
	return head + ": " + tail
}
