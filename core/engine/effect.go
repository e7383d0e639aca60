package engine

import (
	"time"

	"jobq/core/state"
)

// Effects is what an event did and what the outside must do about it, in this
// order: answer every Need and Step the verdicts, save if Changed, then Send and
// Fence.
type Effects struct {
	// Changed says that the state differs from what it was.
	Changed bool
	// Send lists attempts that got their number, to be sent after the save.
	Send []Attempt
	// Need lists tasks whose condition waits for a verdict, ascending.
	Need []int32
	// Fence lists attempts to be ended through their record after the save.
	Fence []Attempt
	// Changes lists the moves in the order in which they happened.
	Changes []Change
	// Settled says that this event ended the workflow.
	Settled bool
	// Answer is the result of a command, nil for other events.
	Answer *Answer
	// Refusal says in a sentence why an event was dropped; empty when it counted.
	Refusal string
}

// Attempt names one attempt of one task.
type Attempt struct {
	Task    int32
	Attempt uint32
}

// Change is one move of one task, for the event log.
type Change struct {
	Task     int32
	From, To state.TaskStatus
	Cause    state.Cause
	Attempt  uint32
}

// Answer is the result of a command, kept in the state with its id.
type Answer struct {
	// Done is false when there was nothing to do or the command was refused.
	Done bool `json:"done"`
	// Text says what happened or why not.
	Text string `json:"text"`
	// Reset, NowReady and StillPending count tasks that the command moved.
	Reset        int `json:"reset,omitempty"`
	NowReady     int `json:"now_ready,omitempty"`
	StillPending int `json:"still_pending,omitempty"`
	// Tasks names what a dry run of rerun would reset, in the order of the
	// definition; Kept counts what rerun leaves as it is.
	Tasks []string `json:"tasks,omitempty"`
	Kept  int      `json:"kept,omitempty"`
	// Epoch is that of the state after the command.
	Epoch uint64 `json:"epoch,omitempty"`
	// Repeated says that the command had been applied before.
	Repeated bool `json:"-"`
}

// Outstanding is what a state still wants, whoever asks.
type Outstanding struct {
	Send  []Attempt
	Need  []int32
	Fence []Attempt
	// ParkedUntil is that of Run.
	ParkedUntil time.Time
}

// Empty reports whether nothing is wanted.
func (o Outstanding) Empty() bool {
	return len(o.Send) == 0 && len(o.Need) == 0 && len(o.Fence) == 0 && o.ParkedUntil.IsZero()
}
