package port

import (
	"context"
	"time"
)

// Records holds the attempt records: one small value per attempt that decides
// who may run it and keeps how it ended. Every change is by tag.
type Records interface {
	// Create stores r if there is none under k, else fails with fault.Exists.
	Create(ctx context.Context, k RecordKey, r Record) (Tag, error)
	// Read returns the record under k, or fault.NotFound.
	Read(ctx context.Context, k RecordKey) (StoredRecord, error)
	// Change replaces the record under k if its tag is ifMatch. Fails with
	// fault.Conflict when it is not, or when the record is gone.
	Change(ctx context.Context, k RecordKey, r Record, ifMatch Tag) (Tag, error)
	// Delete removes the record under k if its tag is ifMatch; an absent one is
	// no error, another tag is fault.Conflict.
	Delete(ctx context.Context, k RecordKey, ifMatch Tag) error
	// DeleteAll removes the records of workflow wf of all attempts up to last.
	DeleteAll(ctx context.Context, wf string, last uint32) error
}

// RecordKey names one attempt of one task.
type RecordKey struct {
	Workflow string
	Task     string
	Attempt  uint32
}

// Record is what a writer stores. Owner is the Membership.ID of the process
// that holds the attempt, empty when nobody does; Body is opaque to drivers.
type Record struct {
	Owner string
	Body  []byte
}

// StoredRecord is a record as it was read.
type StoredRecord struct {
	Record
	Tag Tag
	// Age is the time since the last write by the store's own clock, read
	// together with the record: the clock of the reader plays no part.
	Age time.Duration
	// Owned says whether the store knows the owner to be alive or dead.
	// UnknownOwner leaves the decision to Age.
	Owned Liveness
}

// Liveness is what a store knows about the owner of a record.
type Liveness uint8

const (
	// UnknownOwner means that only Age can tell.
	UnknownOwner Liveness = iota
	// AliveOwner means that the owning process, or its guardian, still runs.
	AliveOwner
	// DeadOwner means that the owning process and its guardian are gone.
	DeadOwner
)

// Stale reports whether the owner of r lost it: it is known to be dead, or
// nothing was written for longer than ttl and nobody knows it to be alive.
func (r StoredRecord) Stale(ttl time.Duration) bool {
	switch r.Owned {
	case AliveOwner:
		return false
	case DeadOwner:
		return true
	default:
		return r.Age > ttl
	}
}
