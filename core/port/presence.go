package port

import (
	"context"
	"os"
	"time"
)

// Leases hands out named leases that end by themselves.
type Leases interface {
	// Acquire takes the lease called name for holder. A holder that has it
	// renews it. Fails with fault.Conflict while somebody else holds it.
	Acquire(ctx context.Context, name, holder string, ttl time.Duration) error
	// Release gives the lease back if holder has it; else it does nothing.
	Release(ctx context.Context, name, holder string) error
	// Holder returns who holds the lease, empty for nobody.
	Holder(ctx context.Context, name string) (string, error)
}

// Presence knows which processes take part.
type Presence interface {
	// Join announces this process. The caller calls Leave at the end.
	Join(ctx context.Context, m Member) (Membership, error)
	// Members returns those who joined and are not known to be gone.
	Members(ctx context.Context) ([]Member, error)
}

// Membership is the own entry of a process.
type Membership interface {
	// ID names the process for Record.Owner, unique for all time.
	ID() string
	// Beat refreshes the entry.
	Beat(ctx context.Context, busy int) error
	// Inherit returns files that a guardian must keep open for as long as
	// commands of this process may run, because they prove that it is alive.
	// Empty where the store judges by age.
	Inherit() []*os.File
	// Leave removes the entry.
	Leave(ctx context.Context) error
}

// Member describes a process to people.
type Member struct {
	ID      string    `json:"id"`
	Kind    string    `json:"kind"` // worker, coordinator or run
	Host    string    `json:"host,omitempty"`
	PID     int       `json:"pid,omitempty"`
	Queues  []string  `json:"queues,omitempty"`
	Slots   int       `json:"slots,omitempty"`
	Busy    int       `json:"busy,omitempty"`
	Version string    `json:"version,omitempty"`
	Started time.Time `json:"started,omitzero"`
	Seen    time.Time `json:"seen,omitzero"`
}
