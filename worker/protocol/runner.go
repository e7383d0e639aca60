package protocol

import (
	"context"
	"time"

	"jobq/core/msg"
)

// Moment is a point of time on the Runner's clock, in nanoseconds. It is a
// clock that nobody sets and that counts the sleep of the machine, because
// records grow stale meanwhile.
type Moment int64

// Runner runs commands. Safe for concurrent use.
type Runner interface {
	// Moment returns the present moment.
	Moment() Moment
	// Run runs the command of s and returns when no process of its group is
	// left, or says that one remains. When ctx ends the command is asked to end
	// and, after a grace that the Runner knows, killed; when s.Kill is closed it
	// is killed at once.
	Run(ctx context.Context, s Start) Outcome
	// Beat says that a beat of a running start succeeded, and when it was sent.
	Beat(runID string, sent Moment)
}

// Start is one beginning of an attempt's command.
type Start struct {
	Task  msg.Task
	Queue string
	// Attempt and Start number the beginning; RunID is new for each.
	Attempt, Start uint32
	RunID          string
	// TTL is how long the record lasts without a beat, 0 for ever; Claimed is
	// when the write that counts as the first beat was sent.
	TTL     time.Duration
	Claimed Moment
	// Survivor is the RunID of a start that was lost, empty for none: its
	// processes are killed first if they are on this machine.
	Survivor string
	// Fetch returns the output that a reference of Task.Upstream points to.
	Fetch func(ctx context.Context, ref string) ([]byte, error)
	// Log names the stream of the command's output.
	Log string
	// Kill, once closed, ends the command at once.
	Kill <-chan struct{}
}

// Outcome is how a start ended.
type Outcome struct {
	Kind OutcomeKind
	// ExitCode is -1 for a command that did not run or was ended by Signal.
	ExitCode int
	Signal   string
	// Error says to people what went wrong; empty for success.
	Error              string
	StartedAt, EndedAt time.Time
	// Output is one JSON document, nil for none.
	Output []byte
	// OutputError says why what the command left could not be accepted.
	OutputError string
	// Remains says that a process of the group could not be killed.
	Remains bool
}

// OutcomeKind is the closed list of how a start can end.
type OutcomeKind uint8

const (
	// Exited is a command that ended without being asked to.
	Exited OutcomeKind = iota + 1
	// Stopped is a command that was asked to end, or was never begun, because
	// its context had ended.
	Stopped
	// Impossible is a command that cannot be started by its own making.
	Impossible
	// Unstartable is a command that this machine cannot start now.
	Unstartable
	// Unprepared is a start for which the store did not give what it needs.
	Unprepared
)

func (o Outcome) success() bool { return o.Kind == Exited && o.ExitCode == 0 && o.Signal == "" }
