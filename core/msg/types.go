package msg

import (
	"encoding/json"
	"time"
)

// Task is what a task queue carries: one attempt of one task, or a plain shell
// task when Workflow is empty.
type Task struct {
	// ID is the message id of the envelope.
	ID string
	// Kwargs are the user's entries in order, without routing keys.
	Kwargs []Kwarg
	// NumRetries is the envelope's remaining retries, 0 for workflow tasks.
	NumRetries     int
	ReplyRequested bool

	Workflow string
	Name     string
	// Attempt is 1-based; 0 when the message carries none.
	Attempt uint32
	Epoch   uint64
	// Prefix is STORAGE/PREFIX of the installation, Queues its queue backend and
	// Inbox the name of its inbox where that is not derived from Prefix.
	Prefix string
	Queues string
	Inbox  string
	// TimeoutSeconds bounds one start; 0 for none.
	TimeoutSeconds float64
	// Upstream holds the outputs of the parents; nil for a task without parents.
	Upstream *Refs
	// UpstreamRef names the blob that holds the encoded Refs when they do not
	// fit; Upstream is nil then.
	UpstreamRef string
	// Statuses maps a status word to the parents that had it when the message was
	// made: all that did not complete, and those that did too late for their output
	// to be in Upstream.
	Statuses map[string][]string
}

// Kwarg is one keyword argument with its JSON value.
type Kwarg struct {
	Key   string
	Value json.RawMessage
}

// Refs are the compact references of the parents' outputs (jobq-wire §3.5).
type Refs struct {
	// Canonical lists parents whose output is at CanonicalOutput(workflow, parent).
	Canonical []string
	// Literal maps a parent to its reference: inline JSON text or "blob:...".
	Literal map[string]string
	// None lists parents without output.
	None []string
}

// Completion is a report that ends an attempt.
type Completion struct {
	Workflow string `json:"workflow_id"`
	Task     string `json:"task_name"`
	Success  bool   `json:"success"`
	// OutputRef is inline JSON text, "blob:{name}" or "blob:{name}:{md5}"; empty
	// for no output.
	OutputRef string `json:"output_ref,omitempty"`
	Error     string `json:"error,omitempty"`
	// Attempt is 0 in completions of workers that do not know it.
	Attempt uint32 `json:"attempt_no,omitempty"`

	ExitCode  *int      `json:"exit_code,omitempty"`
	Signal    string    `json:"signal,omitempty"`
	Reason    Reason    `json:"reason,omitempty"`
	Worker    string    `json:"worker,omitempty"`
	Start     uint32    `json:"start,omitempty"`
	StartedAt time.Time `json:"started_at,omitzero"`
	EndedAt   time.Time `json:"ended_at,omitzero"`
	Log       string    `json:"log,omitempty"`
}

// Reason is the closed list of why an attempt ended without success. Users key
// decisions on these words: do not add lightly.
type Reason string

const (
	// Exited is a command that ended with another code than 0, or by a signal
	// that jobq did not send.
	Exited Reason = "exited"
	// TimedOut is a command that jobq stopped at its time limit.
	TimedOut Reason = "timed_out"
	// OutputInvalid is a command whose output could not be accepted.
	OutputInvalid Reason = "output_invalid"
	// SpawnFailed is a command that could not be started by its own making.
	SpawnFailed Reason = "spawn_failed"
	// Lost is an attempt that reached the crash limit.
	Lost Reason = "lost"
	// Cancelled is a command that jobq stopped because its workflow was
	// cancelled. Outside a cancel it uses no budget.
	Cancelled Reason = "cancelled"
	// Undeliverable is a task whose message was refused for good.
	Undeliverable Reason = "undeliverable"
)

// AttemptRecord is the body of an attempt record (DESIGN §6).
type AttemptRecord struct {
	// Start counts the beginnings of the attempt's command, from 1.
	Start uint32 `json:"start"`
	// TTL is after how long without a write the record is stale.
	TTL time.Duration `json:"ttl"`
	// Free says that the holder gave the attempt back.
	Free bool `json:"free,omitempty"`
	// Crashes counts stale take-overs, lost locks and spawn errors of the machine.
	Crashes uint32 `json:"crashes,omitempty"`
	// Holder names the worker and slot for people.
	Holder string `json:"holder,omitempty"`
	// RunID is new for every start. The processes of the start carry it in
	// their environment, and a holder knows its own record by it.
	RunID string `json:"run_id,omitempty"`
	// StartedAt is when the present start began, by the worker's clock.
	StartedAt time.Time `json:"started_at,omitzero"`
	// Ended is set once and for all when the attempt is over.
	Ended *Ended `json:"ended,omitempty"`
}

// Ended is how an attempt ended.
type Ended struct {
	// ByCoordinator says that the coordinator fenced it: there is no completion.
	ByCoordinator bool `json:"by_coordinator,omitempty"`
	// Completion is what the worker reports, to be sent by whoever finds it.
	Completion *Completion `json:"completion,omitempty"`
}

// Inbox is what the completion queue carries: exactly one field is set.
type Inbox struct {
	Completion *Completion
	Wake       *Wake
	Command    *Command
}

// Wake asks a coordinator to look at a workflow.
type Wake struct {
	Workflow string `json:"workflow_id"`
	// Tries counts how often this wake was put back.
	Tries int `json:"tries,omitempty"`
}

// Command is a command that its caller could not apply directly.
type Command struct {
	ID       string          `json:"id"`
	Workflow string          `json:"workflow_id"`
	Kind     string          `json:"kind"`
	By       string          `json:"by,omitempty"`
	Args     json.RawMessage `json:"args,omitempty"`
}
