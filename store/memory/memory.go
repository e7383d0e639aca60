package memory

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"jobq/core/fault"
	"jobq/core/port"
)

// Options says how the store behaves. The zero value is a store with every
// ability, no limits and no knowledge of processes.
type Options struct {
	// Now is the clock of the store; nil means time.Now. Receive waits on timers
	// of package time all the same: with another clock set CanWait to false, or
	// run in a testing/synctest bubble.
	Now func() time.Time
	// Queue is what every queue can do; nil means DefaultQueue.
	Queue *port.QueueProps
	// Props bounds states and blobs.
	Props port.Props
	// ProcessIdentity makes the store know whether the owner of a record, a
	// message lock or a lease still runs. Without it only time ends them.
	ProcessIdentity bool
	// NoFinisher leaves port.Store.Finisher nil.
	NoFinisher bool
}

// DefaultQueue returns the properties of a queue that can do everything and
// limits nothing.
func DefaultQueue() port.QueueProps {
	return port.QueueProps{NativeRelease: true, CountReadable: true, CanWait: true}
}

// Store is one set of data. Safe for concurrent use.
type Store struct {
	now            func() time.Time
	props          port.Props
	queueProps     port.QueueProps
	identity       bool
	withoutFinish  bool
	mu             sync.Mutex
	revision       uint64
	processes      int
	definitions    map[string][]byte
	states         map[string]document
	records        map[port.RecordKey]record
	rows           map[string]port.StoredRow
	dues           map[string]port.Due
	queues         map[string]*queueData
	outputs        map[string][]byte
	events, logs   map[string][]byte
	leases         map[string]lease
	members        []*membership
	initialProcess *Process
}

// New returns an empty store.
func New(o Options) *Store {
	s := &Store{
		now:           o.Now,
		props:         o.Props,
		queueProps:    DefaultQueue(),
		identity:      o.ProcessIdentity,
		withoutFinish: o.NoFinisher,
		definitions:   map[string][]byte{},
		states:        map[string]document{},
		records:       map[port.RecordKey]record{},
		rows:          map[string]port.StoredRow{},
		dues:          map[string]port.Due{},
		queues:        map[string]*queueData{},
		outputs:       map[string][]byte{},
		events:        map[string][]byte{},
		logs:          map[string][]byte{},
		leases:        map[string]lease{},
	}
	if s.now == nil {
		s.now = time.Now
	}
	if o.Queue != nil {
		s.queueProps = *o.Queue
	}
	s.initialProcess = s.Process("process")
	return s
}

// Port returns the store as its first process sees it.
func (s *Store) Port() *port.Store { return s.initialProcess.Port() }

// Process returns a further process on the same data. Its name is the start of
// the ids of its memberships.
func (s *Store) Process(name string) *Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.processes++
	return &Process{s: s, name: name + "-" + strconv.Itoa(s.processes)}
}

// nextTag names a new version. The mutex is held.
func (s *Store) nextTag() port.Tag {
	s.revision++
	return port.Tag(strconv.FormatUint(s.revision, 10))
}

// Process is one process's view of a Store. Safe for concurrent use.
type Process struct {
	s    *Store
	name string
	// joins numbers the memberships; gone is set by Kill and Close.
	joins int
	gone  bool
}

// Port returns the interfaces of core/port as p uses them.
func (p *Process) Port() *port.Store {
	store := &port.Store{
		States:   states{p},
		Records:  records{p},
		Index:    index{p},
		Queues:   queues{p},
		Outputs:  blobs{p},
		Events:   log{p, p.s.events},
		TaskLogs: log{p, p.s.logs},
		Leases:   leases{p},
		Presence: presence{p},
		Props:    p.s.props,
		Close:    p.close,
	}
	if !p.s.withoutFinish {
		store.Finisher = finisher{p}
	}
	return store
}

// Kill ends p as a crash would: its calls fail from now on with
// fault.Unavailable, it leaves nothing and releases nothing. Where the store
// has process identity, its locks, leases and records are known to be
// abandoned at once.
func (p *Process) Kill() {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	if p.gone {
		return
	}
	p.gone = true
	for _, q := range p.s.queues {
		if p.s.identity {
			q.free(p, p.s.now())
		}
		q.notify()
	}
}

func (p *Process) close() error {
	p.Kill()
	return nil
}

// enter takes the mutex. On an error the mutex is not held.
func (p *Process) enter(ctx context.Context) error {
	if ctx.Err() != nil {
		return canceled(ctx)
	}
	p.s.mu.Lock()
	if p.gone {
		p.s.mu.Unlock()
		return fault.Newf(fault.Unavailable, "the store was closed or process %s was killed", p.name)
	}
	return nil
}

func canceled(ctx context.Context) error {
	return fault.Wrap(fault.Canceled, context.Cause(ctx), "the call was stopped")
}

func tooLarge(what string, size, limit int) error {
	return fault.New(fault.TooLarge, fmt.Sprintf("%s has %d bytes, the limit is %d", what, size, limit))
}
