package protocol

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"strings"
	"time"

	"jobq/core/fault"
	"jobq/core/msg"
	"jobq/core/port"
	"jobq/core/sched"
)

// MinTTL is the shortest time after which a record without a beat is stale.
const MinTTL = 5 * time.Minute

// Why a command is stopped. Each is the cause of the context that the Runner sees.
var (
	ErrCancelled = errors.New("the workflow was cancelled")
	ErrTimedOut  = errors.New("the time limit was reached")
	ErrStopping  = errors.New("the worker is stopping")
	ErrLockLost  = errors.New("the attempt is no longer held by this worker")
)

// Config says whom a Handler works for. Store, Scheduler, Runner and Owner are
// required; zero durations and numbers take the defaults named.
type Config struct {
	Store     *port.Store
	Scheduler sched.Scheduler
	Runner    Runner
	// Owner is the Membership.ID of this process.
	Owner string
	// Worker names this process to people.
	Worker string
	// Prefix is STORAGE/PREFIX of Store; empty accepts messages of any.
	Prefix string
	// Inbox is the queue for completions of messages that name none.
	Inbox string
	// Logger may be nil.
	Logger *slog.Logger
	// Lock is how long a message stays hidden without an extension (10 min).
	Lock time.Duration
	// HeldByLife says that the store knows whether this process lives, so that
	// what it holds never lapses by time.
	HeldByLife bool
	// CrashLimit is how many crashes of its starts end an attempt (20).
	CrashLimit int
	// CancelPoll is the pause between two looks for a cancel request (30 s).
	CancelPoll time.Duration
	// SendAttempts bounds the sends of one completion (5).
	SendAttempts int
	// Patience bounds each thing that is still tried once the worker stops (30 s).
	// How a command ended is no such thing: it is written whatever it takes, or where
	// EndPatience is set for so long after the stop.
	Patience    time.Duration
	EndPatience time.Duration
	// NewID returns a text that is new for all time, of at most 32 letters and
	// digits; nil means random.
	NewID func() string
	// Jitter returns a number from 0 to 1; nil means 0.5 always.
	Jitter func() float64
	// Observe, where set, hears what happens to attempts. It must not block and
	// is called by several goroutines.
	Observe func(Event)
}

// Event is something that happened to an attempt.
type Event struct {
	Kind     EventKind
	Queue    string
	Workflow string
	Task     string
	Attempt  uint32
	Start    uint32
	// Completion is set for Ended.
	Completion *msg.Completion
	// Err says why, for GivenBack, Refused and Unwritten.
	Err error
}

// EventKind is the closed list of what an Event says.
type EventKind uint8

const (
	// Started is a command about to begin.
	Started EventKind = iota + 1
	// Ended is an attempt whose end is in its record.
	Ended
	// GivenBack is an attempt that another start will go on with.
	GivenBack
	// Refused is a message that went to the poison queue.
	Refused
	// Unwritten is a command whose end could not be written down while the worker
	// was stopping: it begins again.
	Unwritten
)

// Result is what became of a message.
type Result uint8

const (
	// Done is a message that was acknowledged or poisoned.
	Done Result = iota + 1
	// Returned is a message that was given back.
	Returned
	// Kept is a message of which nothing could be said to its queue: it comes
	// again when its lock ends.
	Kept
)

// Handler deals with messages. Safe for concurrent use.
type Handler struct {
	conf Config
	// ttl is that of every record written here.
	ttl  time.Duration
	runs runs
}

// New returns a Handler.
func New(c Config) *Handler {
	c.Lock = defaultTo(c.Lock, 10*time.Minute)
	c.CancelPoll = defaultTo(c.CancelPoll, 30*time.Second)
	c.Patience = defaultTo(c.Patience, 30*time.Second)
	c.CrashLimit = defaultTo(c.CrashLimit, 20)
	c.SendAttempts = defaultTo(c.SendAttempts, 5)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.NewID == nil {
		c.NewID = rand.Text
	}
	if c.Jitter == nil {
		c.Jitter = func() float64 { return 0.5 }
	}
	if c.Observe == nil {
		c.Observe = func(Event) {}
	}
	return &Handler{conf: c, ttl: max(c.Lock, MinTTL), runs: runs{id: c.NewID()}}
}

func defaultTo[T int | time.Duration](v, otherwise T) T {
	if v <= 0 {
		return otherwise
	}
	return v
}

// Handle deals with d, which was received from q, and returns when nothing of
// it is left: the command has ended and its group is gone. When ctx ends, a
// command that runs is stopped and its attempt given back, with Patience for each
// write. A command that had ended is reported for as long as the store is away:
// only its record keeps it from running again. Slot numbers the caller among those
// of this process that call at the same time.
func (h *Handler) Handle(ctx context.Context, q port.Queue, d port.Delivery, slot int) Result {
	task, err := msg.DecodeTask(d.Body)
	if err != nil {
		return h.refuse(ctx, q, d, err)
	}
	if task.Workflow == "" {
		return h.plain(ctx, q, d, task)
	}
	a := newAttempt(h, q, d, task, slot)
	if err := a.check(); err != nil {
		h.conf.Logger.ErrorContext(ctx, "message cannot be answered and goes back", "queue", q.Name(), "id", d.ID, "error", err)
		return a.release(ctx, longRest)
	}
	return a.handle(ctx)
}

// refuse moves a message that nobody can ever read out of the way: left in
// place it would stop every worker that meets it.
func (h *Handler) refuse(ctx context.Context, q port.Queue, d port.Delivery, why error) Result {
	h.conf.Logger.ErrorContext(ctx, "message refused", "queue", q.Name(), "id", d.ID, "error", why)
	h.conf.Observe(Event{Kind: Refused, Queue: q.Name(), Err: why})
	call, cancel := h.call(ctx, "poison a message")
	defer cancel()
	if err := q.Poison(call, d, msg.TruncateText(why.Error(), msg.MaxError)); err != nil {
		h.conf.Logger.WarnContext(ctx, "message could not be moved to the poison queue", "queue", q.Name(), "id", d.ID, "error", err)
		return Kept
	}
	return Done
}

// check refuses a message whose completion would not reach its coordinator.
func (a *attempt) check() error {
	if a.inbox == "" || a.task.Prefix == "" && a.h.conf.Prefix == "" {
		return fault.Newf(fault.Invalid, "task %q names no installation to answer", a.task.Name).
			WithRemedy("set JOBQ_WORKFLOW_PREFIX for this worker")
	}
	if a.task.Prefix != "" && a.h.conf.Prefix != "" && !strings.EqualFold(a.task.Prefix, a.h.conf.Prefix) {
		return fault.Newf(fault.Invalid, "task %q belongs to %q; this worker serves %q", a.task.Name, a.task.Prefix, a.h.conf.Prefix)
	}
	return nil
}
