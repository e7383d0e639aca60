package state

import "fmt"

// TaskStatus is the status of a task, one printable character in the stored
// document. The zero value is invalid on purpose.
type TaskStatus byte

const (
	// Pending waits for its parents, or for its condition to be evaluated.
	Pending TaskStatus = 'p'
	// Parked is ready without an attempt number: it waits for a slot or for a
	// time, and is never sent. Shown as "ready".
	Parked TaskStatus = 'r'
	// Intent is ready with an attempt number in the saved state: its message is
	// to be sent, or may have been. Shown as "ready".
	Intent TaskStatus = 'i'
	// Running is sent: on its queue or in the hands of a worker.
	Running TaskStatus = 'x'
	// Completed ended with success.
	Completed TaskStatus = 'c'
	// Failed ended without success and without budget for another attempt.
	Failed TaskStatus = 'f'
	// UpstreamFailed can no longer meet its policy.
	UpstreamFailed TaskStatus = 'u'
	// Skipped had a false condition.
	Skipped TaskStatus = 's'
	// Cancelled was ended by a cancel of the workflow.
	Cancelled TaskStatus = 'k'
)

// TaskStatuses lists every status in the order in which people read them.
func TaskStatuses() []TaskStatus {
	return []TaskStatus{Pending, Parked, Intent, Running, Completed, Failed, UpstreamFailed, Skipped, Cancelled}
}

// Valid reports whether s is one of the listed statuses.
func (s TaskStatus) Valid() bool { return s.String() != "" }

// String returns the word that people and programs see. Parked and Intent share
// "ready". An invalid status is the empty string.
func (s TaskStatus) String() string {
	switch s {
	case Pending:
		return "pending"
	case Parked, Intent:
		return "ready"
	case Running:
		return "running"
	case Completed:
		return "completed"
	case Failed:
		return "failed"
	case UpstreamFailed:
		return "upstream_failed"
	case Skipped:
		return "skipped"
	case Cancelled:
		return "cancelled"
	default:
		return ""
	}
}

// Terminal reports whether only a command moves a task out of s.
func (s TaskStatus) Terminal() bool { return s.Succeeded() || s.Unsuccessful() }

// Succeeded reports whether s counts as a success for the children.
func (s TaskStatus) Succeeded() bool { return s == Completed || s == Skipped }

// Unsuccessful reports whether s counts as a failure for the children.
func (s TaskStatus) Unsuccessful() bool {
	return s == Failed || s == UpstreamFailed || s == Cancelled
}

// Numbered reports whether a task in s has an attempt that may be alive.
func (s TaskStatus) Numbered() bool { return s == Intent || s == Running }

// WorkflowStatus is the status of a whole workflow. The zero value is invalid.
type WorkflowStatus uint8

const (
	// WorkflowPending is new, or its failed tasks were just reset.
	WorkflowPending WorkflowStatus = iota + 1
	// WorkflowRunning has sent something.
	WorkflowRunning
	// WorkflowCompleted met its result policy.
	WorkflowCompleted
	// WorkflowFailed did not, and nothing can still run.
	WorkflowFailed
	// WorkflowCancelled ended by a cancel.
	WorkflowCancelled
	// WorkflowPurged is the tombstone of a workflow that was removed.
	WorkflowPurged
)

var workflowWords = [...]string{
	WorkflowPending:   "pending",
	WorkflowRunning:   "running",
	WorkflowCompleted: "completed",
	WorkflowFailed:    "failed",
	WorkflowCancelled: "cancelled",
	WorkflowPurged:    "purged",
}

// WorkflowStatuses lists every workflow status.
func WorkflowStatuses() []WorkflowStatus {
	return []WorkflowStatus{WorkflowPending, WorkflowRunning, WorkflowCompleted, WorkflowFailed, WorkflowCancelled, WorkflowPurged}
}

// String returns the word of s, empty for an invalid one.
func (s WorkflowStatus) String() string {
	if int(s) < len(workflowWords) {
		return workflowWords[s]
	}
	return ""
}

// Ended reports whether nothing moves the workflow but a command.
func (s WorkflowStatus) Ended() bool { return s >= WorkflowCompleted }

// MarshalText implements encoding.TextMarshaler.
func (s WorkflowStatus) MarshalText() ([]byte, error) {
	if s.String() == "" {
		return nil, fmt.Errorf("workflow status %d has no word", s)
	}
	return []byte(s.String()), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *WorkflowStatus) UnmarshalText(b []byte) error {
	for _, w := range WorkflowStatuses() {
		if w.String() == string(b) {
			*s = w
			return nil
		}
	}
	return fmt.Errorf("unknown workflow status %q", b)
}
