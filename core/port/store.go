package port

import "context"

// Store is everything that one prefix (the name space of one installation)
// keeps, as one driver or several drivers together provide it.
type Store struct {
	States   States
	Records  Records
	Index    Index
	Queues   Queues
	Outputs  Blobs
	Events   Log
	TaskLogs Log
	Leases   Leases
	Presence Presence
	// Finisher is nil where the store cannot make several writes one.
	Finisher Finisher
	Props    Props
	// Scratch is a directory, perhaps still absent, for files of this process on
	// this machine. It is removed when the process is gone, however it ended.
	// Empty where the store is not on this machine.
	Scratch string
	// Present, where set, fails when what was opened is no longer there for other
	// processes: whoever goes on serves nobody.
	Present func() error
	// Close releases what the store holds. It may be called once.
	Close func() error
}

// Props declares what a store can do. Sizes are bytes; 0 means no limit.
type Props struct {
	MaxState int
	MaxBlob  int
	// FileOutputs says that task files may be stored.
	FileOutputs bool
}

// Tag names one version of one stored thing. It is opaque and compared only
// for equality; the empty Tag names no version.
type Tag string

// Finisher makes the three writes that end a task one: all happen or none.
type Finisher interface {
	// Finish changes the attempt record under f.IfMatch, sends the completion
	// and acknowledges the task's message.
	//
	// Fails with fault.Conflict when the record is not at IfMatch and with
	// fault.LeaseLost when the receipt of the delivery is no longer the newest;
	// nothing was written then.
	Finish(ctx context.Context, f Finish) (Tag, error)
}

// Finish is one call of Finisher.
type Finish struct {
	Key        RecordKey
	Record     Record
	IfMatch    Tag
	Inbox      string
	Completion Message
	Queue      string
	Delivery   Delivery
}
