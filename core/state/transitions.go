package state

// Cause is why a task moves from one status to another.
type Cause string

// The closed list of causes.
const (
	CauseActivated      Cause = "activated"       // policy met, condition true or absent
	CauseNumbered       Cause = "numbered"        // a free slot: the attempt got its number
	CauseDispatched     Cause = "dispatched"      // the queue accepted the message
	CauseSucceeded      Cause = "succeeded"       // the attempt reported success
	CauseExhausted      Cause = "exhausted"       // the attempt failed, no budget left
	CauseRetrying       Cause = "retrying"        // the attempt failed, budget left
	CauseGivenBack      Cause = "given back"      // the attempt ended through no fault of its own
	CauseUpstream       Cause = "upstream"        // the policy can no longer be met
	CauseConditionFalse Cause = "condition false" // evaluated to false, or hung on a parent that did not complete
	CauseConditionError Cause = "condition error" // could not be evaluated
	CauseCancelled      Cause = "cancelled"       // command cancel
	CauseRetried        Cause = "retry"           // command retry
	CauseRerun          Cause = "rerun"           // command rerun
	CauseMarked         Cause = "mark"            // command mark
	CauseUnblocked      Cause = "unblocked"       // a parent was marked or runs again, the policy can be met again
)

// Transition is one legal move of a task.
type Transition struct {
	From, To TaskStatus
	Cause    Cause
}

// Transitions returns the only table of legal moves, in reading order. The
// engine refuses every other move; docs/states.md is rendered from it.
func Transitions() []Transition {
	table := []Transition{
		{Pending, Parked, CauseActivated},
		{Pending, Skipped, CauseConditionFalse},
		{Pending, Failed, CauseConditionError},
		{Pending, UpstreamFailed, CauseUpstream},
		{Pending, Cancelled, CauseCancelled},
		{Parked, Intent, CauseNumbered},
		{Parked, Cancelled, CauseCancelled},
		{Intent, Running, CauseDispatched},
	}
	for _, from := range []TaskStatus{Intent, Running} {
		table = append(table,
			Transition{from, Completed, CauseSucceeded},
			Transition{from, Failed, CauseExhausted},
			Transition{from, Parked, CauseRetrying},
			Transition{from, Parked, CauseGivenBack},
			Transition{from, Cancelled, CauseCancelled},
		)
	}
	for _, from := range []TaskStatus{Failed, UpstreamFailed, Cancelled} {
		table = append(table, Transition{from, Pending, CauseRetried})
	}
	for _, from := range []TaskStatus{Parked, Completed, Failed, UpstreamFailed, Skipped, Cancelled} {
		table = append(table, Transition{from, Pending, CauseRerun})
	}
	for _, from := range []TaskStatus{Pending, Parked, Completed, Failed, UpstreamFailed, Skipped, Cancelled} {
		for _, to := range []TaskStatus{Completed, Skipped} {
			if from != to {
				table = append(table, Transition{from, to, CauseMarked})
			}
		}
	}
	return append(table, Transition{UpstreamFailed, Pending, CauseUnblocked})
}
