package engine

import (
	"time"

	"jobq/core/msg"
	"jobq/core/state"
)

// Event is something that happened, or a command.
type Event interface{ event() }

// Activated starts a new workflow: tasks without parents become ready.
type Activated struct{}

// Completion is a report that ends an attempt.
type Completion struct {
	Task string
	// Attempt is 0 in reports of workers that do not know it; such a report
	// counts only for the first attempt ever made of the task.
	Attempt   uint32
	Success   bool
	Reason    msg.Reason
	Output    state.Output
	Error     string
	Exit      state.Exit
	StartedAt time.Time
	EndedAt   time.Time
}

// Dispatched says that the queue accepted the message of an attempt.
type Dispatched struct {
	Task    int32
	Attempt uint32
}

// Verdict is the result of a condition that a Need asked for.
type Verdict struct {
	Task    int32
	Outcome Outcome
	// Reason is kept for people: the values that decided.
	Reason string
}

// Outcome is what a condition came to.
type Outcome uint8

const (
	// ConditionTrue makes the task ready.
	ConditionTrue Outcome = iota + 1
	// ConditionFalse skips the task.
	ConditionFalse
	// ConditionError fails the task.
	ConditionError
	// ConditionUpstream skips the task: the error hangs on a parent that did not
	// complete.
	ConditionUpstream
)

// Fenced says that the coordinator ended an attempt through its record, so
// that no worker runs it.
type Fenced struct {
	Task    int32
	Attempt uint32
}

// Cancel is the command that ends a workflow.
type Cancel struct{ Command }

// Retry is the command that resets every failed, upstream_failed and cancelled
// task.
type Retry struct{ Command }

// Rerun is the command that runs tasks again, whatever their result.
type Rerun struct {
	Command
	// Tasks are the tasks to begin with.
	Tasks []string
	// Downstream adds everything behind them.
	Downstream bool
	// DryRun answers what would happen and changes nothing.
	DryRun bool
}

// Mark is the command that gives a task a result by hand.
type Mark struct {
	Command
	Task   string
	To     state.TaskStatus // Completed or Skipped
	Output state.Output
}

// Purge is the command that asks whether the workflow may be removed; the
// caller turns the state into a tombstone.
type Purge struct{ Command }

// Wake asks whether time alone has something to do: the end of a back-off.
type Wake struct{}

// Command is what all commands carry.
type Command struct {
	// ID makes a command that arrives twice count once.
	ID string
	// By says who asked, for the event log.
	By string
	// Settle keeps a refusal in the state as the answer of ID, so that a copy of the
	// command that is still under way does nothing later.
	Settle bool
	// Epoch, where it is not 0, is the one that the command has to begin: where other
	// commands came since it was meant it is refused, unless it is in the state already.
	// It is for a command that its caller has left, and who may want other things now.
	Epoch uint64
}

func (Activated) event()  {}
func (Completion) event() {}
func (Dispatched) event() {}
func (Verdict) event()    {}
func (Fenced) event()     {}
func (Cancel) event()     {}
func (Retry) event()      {}
func (Rerun) event()      {}
func (Mark) event()       {}
func (Purge) event()      {}
func (Wake) event()       {}
