package port

import (
	"context"
	"time"
)

// Index holds one row a workflow for listings and for the cancel poll of
// workers, and one due row a workflow (and a claim) for the sweep. It is
// derived from the states and never the truth. Columns that this program does
// not know survive every write.
type Index interface {
	// Get returns the row of wf, or fault.NotFound.
	Get(ctx context.Context, wf string) (StoredRow, error)
	// Project writes every column of row but the cancel request. With an empty
	// ifMatch it creates the row (fault.Exists when there is one), else it
	// changes the row at ifMatch (fault.Conflict when it is not).
	Project(ctx context.Context, row Row, ifMatch Tag) (Tag, error)
	// SetCancel writes the two columns of the cancel request and nothing else,
	// under the rules of Project.
	SetCancel(ctx context.Context, wf string, c CancelRequest, ifMatch Tag) (Tag, error)
	// Delete removes the row of wf; an absent one is no error.
	Delete(ctx context.Context, wf string) error
	// List returns rows, newest Row.CreatedAt first, ties by descending
	// workflow id. next is empty at the end and otherwise continues the listing.
	List(ctx context.Context, f Filter) (rows []StoredRow, next string, err error)

	// PutDue writes a due row. One of a later state than d.StateVersion stays as it
	// is, which is no error. DueAt is advice.
	PutDue(ctx context.Context, d Due) error
	// DeleteDue removes the due row called key, unless it is of a later state than
	// last; that it stays, or was absent, is no error.
	DeleteDue(ctx context.Context, key string, last uint64) error
	// DueBefore returns up to most due rows with DueAt at or before t, oldest
	// first.
	DueBefore(ctx context.Context, t time.Time, most int) ([]Due, error)
	// CancelRequests returns up to most rows of workflows that have not ended
	// whose cancel flag is set without an epoch that a command wrote (0).
	CancelRequests(ctx context.Context, most int) ([]StoredRow, error)
}

// Row is what the index says of one workflow.
type Row struct {
	Workflow string
	Name     string
	// Status is the word of state.WorkflowStatus, or "purged".
	Status string
	// StateVersion and Epoch are those of the state that the row was made from;
	// rows are only ever written upward.
	StateVersion uint64
	Epoch        uint64
	// BornEpoch is the epoch at which the present life of this id began.
	BornEpoch    uint64
	Counts       Counts
	DefaultQueue string
	Queues       []string
	CreatedAt    time.Time
	UpdatedAt    time.Time
	Error        string
}

// Counts is how many tasks of a workflow are in each status.
type Counts struct {
	Total, Pending, Ready, Running, Completed, Failed, UpstreamFailed, Skipped, Cancelled int
}

// CancelRequest is what workers poll.
type CancelRequest struct {
	Requested bool
	// Epoch is that of the command that wrote the flag; 0 for a foreign script.
	Epoch uint64
}

// StoredRow is a row as it was read.
type StoredRow struct {
	Row
	Cancel CancelRequest
	Tag    Tag
}

// Filter selects rows of List. Zero fields select everything.
type Filter struct {
	Status []string
	// Prefix selects workflow ids that start with it.
	Prefix string
	// Limit bounds one page; 0 means 100.
	Limit int
	// After continues a listing: the next of the page before.
	After string
}

// Due says that something about a workflow may have to be looked at.
type Due struct {
	// Key is the workflow id, or "{workflow}!{command id}" for a claim.
	Key          string
	Workflow     string
	DueAt        time.Time
	StateVersion uint64
	// Note is opaque to the store (what a claim claims).
	Note string
}
