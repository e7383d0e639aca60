package coord

import (
	"cmp"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"jobq/core/port"
	"jobq/core/sched"
)

// Options configure a Coordinator. Zero values stand for the defaults named
// with each field.
type Options struct {
	// Prefix is STORAGE/PREFIX as workers must know it, Queues the queue backend
	// if it differs; both travel in task messages.
	Prefix string
	Queues string
	// Inbox is the name of the completion queue; default "workflow-completions".
	Inbox string
	// Namespace is put in front of Inbox and of every queue that this
	// coordinator drains. Each run of one machine has its own; else it is empty.
	Namespace string
	// Holder names this process in the lease; empty drains without a lease.
	Holder string

	BatchSize       int           // completions a receive; 32
	Visibility      time.Duration // lock of a received message; 60 s
	IdleSleep       time.Duration // longest wait between empty receives; 0.5 s
	FlushRetryLimit int           // further tries after a lost save; 2
	SweepInterval   time.Duration // rhythm of the sweep; 60 s
	RepairThreshold time.Duration // default due time of a workflow; 300 s
	RunningRepair   time.Duration // age at which a running task is looked after; 1 h
	TrailingSave    time.Duration // longest life of an unsaved mark; 1 s, at most 5 s
	ProjectInterval time.Duration // rhythm of index rows of a busy workflow; 1 s
	Parallel        int           // store calls at a time; 64
	CacheBytes      int           // memory of cached states with their definitions, and once more of definitions alone; 256 MiB
	ConditionBytes  int           // outputs that one condition may name, in all; 128 MiB
	MaxReceives     int           // receives in a row; 64
	CommandPatience time.Duration // how long a command competes with a busy coordinator; 10 s
	ForeignWorkers  bool          // queues may be served by workers without attempt records
	NoEvents        bool          // keep no event log

	// Random returns unpredictable bits for message ids and jitter.
	Random func() uint64
	// OnChange is told of every saved change, on the goroutine that made it: of
	// one workflow in the order of the saves, unless two jobs on it meet. It must be
	// quick.
	OnChange func(Notice)
	Logger   *slog.Logger
}

func (o Options) withDefaults() Options {
	o.Inbox = cmp.Or(o.Inbox, "workflow-completions")
	o.BatchSize = cmp.Or(o.BatchSize, 32)
	o.Visibility = cmp.Or(o.Visibility, 60*time.Second)
	o.IdleSleep = cmp.Or(o.IdleSleep, 500*time.Millisecond)
	o.FlushRetryLimit = cmp.Or(o.FlushRetryLimit, 2)
	o.SweepInterval = cmp.Or(o.SweepInterval, time.Minute)
	o.RepairThreshold = cmp.Or(o.RepairThreshold, 5*time.Minute)
	o.RunningRepair = cmp.Or(o.RunningRepair, time.Hour)
	o.TrailingSave = min(cmp.Or(o.TrailingSave, time.Second), 5*time.Second)
	o.ProjectInterval = cmp.Or(o.ProjectInterval, time.Second)
	o.Parallel = cmp.Or(o.Parallel, 64)
	o.CacheBytes = cmp.Or(o.CacheBytes, 256<<20)
	o.ConditionBytes = cmp.Or(o.ConditionBytes, 128<<20)
	o.MaxReceives = cmp.Or(o.MaxReceives, 64)
	o.CommandPatience = cmp.Or(o.CommandPatience, 10*time.Second)
	if o.Random == nil {
		o.Random = randomBits
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Coordinator applies events to the workflows of one store. It is safe for
// concurrent use; several processes may run one each.
type Coordinator struct {
	store *port.Store
	sched sched.Scheduler
	o     Options
	log   *slog.Logger
	cache *cache
	plans *planCache
	stats Stats

	notes notes
	// rounds counts the rounds that Serve is at, flushes the stores of marks.
	rounds, flushes atomic.Int32

	mu         sync.Mutex
	leaseUntil time.Time
	leaseTry   time.Time
}

// New returns a coordinator over store. It does nothing until it is called.
func New(store *port.Store, s sched.Scheduler, o Options) *Coordinator {
	o = o.withDefaults()
	return &Coordinator{
		store: store, sched: s, o: o, log: o.Logger,
		cache: newCache(o.CacheBytes), plans: newPlanCache(o.CacheBytes), notes: notes{byID: map[string]*note{}},
	}
}

// roundTime bounds a round, so that every acknowledgement falls well within the
// lock of its message, which a queue may make shorter than it was asked to.
func (c *Coordinator) roundTime() time.Duration {
	lock := c.o.Visibility
	if most := c.inbox().Props().MaxLock; most > 0 {
		lock = min(lock, most)
	}
	return lock / 4
}

// inbox returns the queue that this coordinator drains.
func (c *Coordinator) inbox() port.Queue {
	return c.store.Queues.Queue(c.o.Namespace + c.o.Inbox)
}

// Notice tells of one saved change of a workflow.
type Notice struct {
	View Summary
	// Moves are the moves of tasks in the order in which they happened.
	Moves []Move
}
