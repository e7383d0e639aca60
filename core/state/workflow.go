package state

import (
	"encoding/json"
	"strconv"
	"time"
)

// Limits of texts inside a state, in bytes.
const (
	// MaxInlineOutput is the largest output that may stay in the state.
	MaxInlineOutput = 512
	// MaxInlineTotal bounds all inline outputs of one state.
	MaxInlineTotal = 256 << 10
	// MaxExitText bounds each text of an Exit.
	MaxExitText = 256
	// MaxText bounds one error or reason.
	MaxText = 1 << 10
	// MaxTextTotal bounds all errors and reasons of one state.
	MaxTextTotal = 128 << 10
	// MaxCommands is how many command ids a state remembers.
	MaxCommands = 64
)

// Workflow is the runtime state of one workflow. Columns have one entry a task,
// by the task's position in the definition.
type Workflow struct {
	ID string
	// Definition is the hash of the definition that the columns belong to.
	Definition string
	// Version is raised by every save, Epoch by every command.
	Version uint64
	Epoch   uint64
	// BornEpoch is the epoch at which the present life of the id began.
	BornEpoch uint64
	// HighestAttempt is the highest attempt number ever given under this id; a
	// later life of the id goes on from it.
	HighestAttempt uint32
	// BornAttempt is HighestAttempt of the life before: the attempts of this one are
	// above it.
	BornAttempt uint32
	Status      WorkflowStatus
	// CancelRequested is set from the cancel command until retry, rerun or mark.
	CancelRequested bool
	// Namespace is put in front of every queue name and the inbox; empty but in
	// runs of one machine.
	Namespace string
	CreatedAt time.Time
	UpdatedAt time.Time
	Error     string
	Commands  []CommandResult

	TaskStatus []TaskStatus
	// Attempt is the newest attempt number that was given, 0 for none.
	Attempt []uint32
	// Failures is how much of the retry budget is used, reset by commands.
	Failures []uint32
	// StartedAt and EndedAt are Unix milliseconds, 0 for unknown. StartedAt of a
	// running task is when its message was accepted; EndedAt is of tasks that
	// ended, not of attempts that others follow.
	StartedAt []int64
	EndedAt   []int64

	// Outputs are of tasks that ended; one that runs again keeps its old output
	// until it ends again.
	Outputs map[int32]Output
	// Reasons says why a task failed, was skipped, or tries again.
	Reasons map[int32]string
	Exits   map[int32]Exit
	// NotBefore is until when a parked task waits, in Unix milliseconds.
	NotBefore map[int32]int64
	// GiveBacks counts attempts in a row that ended through no fault of the task.
	GiveBacks map[int32]uint32
	// Frozen holds, for a numbered task whose attempt does not get the outputs of
	// all parents, those that it gets: positions in its depends_on, ascending.
	Frozen map[int32][]int32

	unknown []section
}

// Output says where the output of a task is.
type Output struct {
	Kind OutputKind
	// MD5 is the hash of a canonical output, if HasMD5.
	MD5    [16]byte
	HasMD5 bool
	// Text is the inline JSON or the whole reference, by Kind.
	Text string
}

// OutputKind is where an output is.
type OutputKind uint8

const (
	// NoOutput is a task that wrote none.
	NoOutput OutputKind = iota
	// InlineOutput is JSON text in the state.
	InlineOutput
	// CanonicalOutput is the blob of the canonical name.
	CanonicalOutput
	// OtherOutput is a blob with a name of its own: Text is "blob:...".
	OtherOutput
)

// Exit is what is kept about how the last attempt of a task ended.
type Exit struct {
	Code   int    `json:"code,omitempty"`
	Known  bool   `json:"known,omitempty"`
	Signal string `json:"signal,omitempty"`
	Word   string `json:"word,omitempty"`
	Worker string `json:"worker,omitempty"`
	Start  uint32 `json:"start,omitempty"`
}

// CommandResult is a command that was applied, with its answer.
type CommandResult struct {
	ID     string          `json:"id"`
	Kind   string          `json:"kind"`
	Epoch  uint64          `json:"epoch"`
	Answer json.RawMessage `json:"answer,omitempty"`
}

// DefinitionKey is the key under which the definition of a life of workflow id is
// stored. Each life has one of its own, so that a purge of an earlier life that
// was held up cannot take the definition of a later one.
func DefinitionKey(id string, bornEpoch uint64) string {
	if bornEpoch == 0 {
		return id
	}
	return id + "~" + strconv.FormatUint(bornEpoch, 10)
}

// New returns the empty state of a workflow of n pending tasks.
func New(id string, n int) *Workflow {
	w := &Workflow{ID: id, Status: WorkflowPending}
	w.alloc(n)
	for i := range w.TaskStatus {
		w.TaskStatus[i] = Pending
	}
	return w
}

func (w *Workflow) alloc(n int) {
	w.TaskStatus = make([]TaskStatus, n)
	w.Attempt = make([]uint32, n)
	w.Failures = make([]uint32, n)
	w.StartedAt = make([]int64, n)
	w.EndedAt = make([]int64, n)
	w.Outputs = map[int32]Output{}
	w.Reasons = map[int32]string{}
	w.Exits = map[int32]Exit{}
	w.NotBefore = map[int32]int64{}
	w.GiveBacks = map[int32]uint32{}
	w.Frozen = map[int32][]int32{}
}

// Tombstone turns w into the few bytes that stay after a purge: the numbers
// from which a later life of the id must go on.
func (w *Workflow) Tombstone() *Workflow {
	t := New(w.ID, 0)
	t.Version, t.Epoch, t.BornEpoch, t.HighestAttempt = w.Version, w.Epoch, w.BornEpoch, w.HighestAttempt
	t.CreatedAt, t.UpdatedAt = w.CreatedAt, w.UpdatedAt
	t.Status, t.Commands, t.Namespace = WorkflowPurged, w.Commands, w.Namespace
	return t
}

// Command returns the result of the command with this id, if it is remembered.
func (w *Workflow) Command(id string) (CommandResult, bool) {
	for _, c := range w.Commands {
		if c.ID == id {
			return c, true
		}
	}
	return CommandResult{}, false
}

// Remember adds a command result and forgets the oldest above MaxCommands.
func (w *Workflow) Remember(c CommandResult) {
	w.Commands = append(w.Commands, c)
	if n := len(w.Commands) - MaxCommands; n > 0 {
		w.Commands = append([]CommandResult(nil), w.Commands[n:]...)
	}
}

// Counts returns how many tasks are in each status.
func (w *Workflow) Counts() Counts {
	var c Counts
	for _, s := range w.TaskStatus {
		c.Add(s, 1)
	}
	return c
}

// Counts is how many tasks are in each status, as people see it.
type Counts struct {
	Pending        int `json:"pending"`
	Ready          int `json:"ready"`
	Running        int `json:"running"`
	Completed      int `json:"completed"`
	Failed         int `json:"failed"`
	UpstreamFailed int `json:"upstream_failed"`
	Skipped        int `json:"skipped"`
	Cancelled      int `json:"cancelled"`
}

// Add changes the count of s by n.
func (c *Counts) Add(s TaskStatus, n int) {
	switch s {
	case Pending:
		c.Pending += n
	case Parked, Intent:
		c.Ready += n
	case Running:
		c.Running += n
	case Completed:
		c.Completed += n
	case Failed:
		c.Failed += n
	case UpstreamFailed:
		c.UpstreamFailed += n
	case Skipped:
		c.Skipped += n
	case Cancelled:
		c.Cancelled += n
	}
}

// Total returns the number of tasks.
func (c Counts) Total() int { return c.Open() + c.Ended() }

// Open returns how many tasks can still move by themselves.
func (c Counts) Open() int { return c.Pending + c.Ready + c.Running }

// Ended returns how many tasks only a command moves.
func (c Counts) Ended() int {
	return c.Completed + c.Failed + c.UpstreamFailed + c.Skipped + c.Cancelled
}

// Unsuccessful returns how many tasks ended without success.
func (c Counts) Unsuccessful() int { return c.Failed + c.UpstreamFailed + c.Cancelled }
