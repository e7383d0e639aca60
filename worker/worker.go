package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"time"

	"jobq/core/fault"
	"jobq/core/port"
	"jobq/core/sched"
	"jobq/worker/guard"
	"jobq/worker/proc"
	"jobq/worker/protocol"
)

// DefaultKillTimeout is the time between SIGTERM and SIGKILL where Config names none.
const DefaultKillTimeout = 10 * time.Minute

// Config says what a Worker does. Store and Queues are required.
type Config struct {
	Store *port.Store
	// Prefix is STORAGE/PREFIX of the store, for messages that name none.
	Prefix string
	// Inbox is the name of the completion queue, for messages that name none.
	Inbox string
	// Queues are the names of the task queues to serve, in no order of precedence.
	Queues []string
	// Namespace is the beginning of those names that tasks do not see: a run of
	// one machine has its own queues, and JOBQ_QUEUE_NAME stays that of the file.
	Namespace string
	// Slots is how many commands run at once, as far as the limits of this process
	// allow; 0 means 1.
	Slots int
	// Scheduler is that of the protocol; nil means sched.Real.
	Scheduler sched.Scheduler
	// Logger may be nil.
	Logger *slog.Logger
	// Executable is our program, which becomes the guardian and the helper on
	// the PATH of tasks; empty means the running one, even where an upgrade has
	// replaced its file since.
	Executable string
	// Membership is the entry of this process; nil makes Run join and leave.
	Membership port.Membership
	// Name is what people read as the worker of a task; empty means host:pid.
	Name string

	// Visibility is how long a message stays hidden without a beat (10 min).
	Visibility time.Duration
	// KillTimeout is the time between SIGTERM and SIGKILL of a command: 0 means
	// DefaultKillTimeout, below 0 that SIGKILL never follows.
	KillTimeout time.Duration
	// CrashLimit is how many lost starts end an attempt (20).
	CrashLimit int
	// MaxIdleBackoff bounds the pause between two looks at a queue that cannot
	// wait (30 s).
	MaxIdleBackoff time.Duration
	// IdleTimeout ends Run when nothing was there to do for so long; 0 is never.
	IdleTimeout time.Duration
	// CancelPollInterval is the pause between two looks for a cancel request (30 s).
	CancelPollInterval time.Duration
	// CompletionSendMaxAttempts bounds the sends of one completion (5).
	CompletionSendMaxAttempts int
	// StopPatience bounds each thing that is still tried for the store after a stop
	// (30 s), but not writing down how a command ended: EndPatience bounds that, 0 is
	// not at all. What is given up then begins again, as after a crash.
	StopPatience time.Duration
	EndPatience  time.Duration

	// Cwd is the directory that a task's cwd is relative to; empty means ours.
	Cwd string
	// Scratch is where the worker makes its directory; empty means where the store
	// has one, else the system's.
	Scratch string
	// Environ is the environment that tasks start from; nil means ours.
	Environ []string

	// Output, where set, gets every line of every command. It is called by
	// several goroutines and should not block.
	Output func(OutputLine)
	// OnEvent, where set, hears what happens to attempts, under the same rules.
	OnEvent func(protocol.Event)
}

// OutputLine is one line that a command wrote, without its end.
type OutputLine struct {
	Workflow string
	Task     string
	Attempt  uint32
	// Stream is stdout or stderr.
	Stream string
	Line   string
}

// Worker runs tasks. Make it with New.
type Worker struct {
	conf Config
	host string
	// helper is the file of the program for the PATH of tasks.
	helper string
}

// New returns a Worker. Fails with fault.Invalid where Config lacks something.
func New(c Config) (*Worker, error) {
	if c.Store == nil || len(c.Queues) == 0 {
		return nil, fault.New(fault.Invalid, "a worker needs a store and at least one queue")
	}
	c.MaxIdleBackoff = orDefault(c.MaxIdleBackoff, 30*time.Second)
	c.Visibility = orDefault(c.Visibility, 10*time.Minute)
	if c.KillTimeout == 0 {
		c.KillTimeout = DefaultKillTimeout
	}
	c.Scratch = cmp.Or(c.Scratch, c.Store.Scratch)
	if c.Scheduler == nil {
		c.Scheduler = sched.Real{}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.Slots = max(c.Slots, 1)
	if most, limit := proc.MostCommands(); c.Slots > most {
		c.Logger.Warn("fewer tasks at a time than wished for", "wished", c.Slots, "slots", most, "needs_more", limit.On, "remedy", limit.Raise)
		c.Slots = most
	}
	if c.Environ == nil {
		c.Environ = os.Environ()
	}
	helper := c.Executable
	if helper == "" {
		program, err := os.Executable()
		if err != nil {
			return nil, fault.Wrap(fault.Unavailable, err, "the running program cannot be found").
				WithRemedy("mount /proc: by it the program finds itself")
		}
		helper = program
	}
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	c.Name = cmp.Or(c.Name, fmt.Sprintf("%s:%d", host, os.Getpid()))
	return &Worker{conf: c, host: host, helper: helper}, nil
}

func orDefault(d, otherwise time.Duration) time.Duration {
	if d <= 0 {
		return otherwise
	}
	return d
}

// Run serves the queues until ctx ends or the worker was idle for IdleTimeout,
// and returns when every command has ended and was reported or given back. A
// stop that was asked for is no error.
func (w *Worker) Run(ctx context.Context) error {
	err := w.serve(ctx)
	if ctx.Err() != nil && fault.Is(err, fault.Canceled) {
		return nil
	}
	return err
}

func (w *Worker) serve(ctx context.Context) (err error) {
	// What has to be tidied up is tidied up after the end of ctx.
	live := context.WithoutCancel(ctx)
	member, leave, err := w.join(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, leave(live)) }()
	if err := w.ensureQueues(ctx); err != nil {
		return err
	}
	inherit := member.Inherit()
	keeper, err := guard.NewKeeper(ctx, guard.Options{Executable: w.conf.Executable, Inherit: inherit, Logger: w.conf.Logger})
	if err != nil {
		return err
	}
	defer func() {
		bounded, cancel := context.WithTimeout(live, w.patience())
		defer cancel()
		err = errors.Join(err, keeper.Close(bounded))
	}()
	runner, err := newCommandRunner(w.conf, w.helper, keeper)
	if err != nil {
		return err
	}
	defer runner.close(live)

	handler := protocol.New(protocol.Config{
		Store: w.conf.Store, Scheduler: w.conf.Scheduler, Runner: runner,
		Owner: member.ID(), Worker: w.conf.Name, Prefix: w.conf.Prefix, Inbox: w.conf.Inbox,
		Logger: w.conf.Logger, Lock: w.conf.Visibility, HeldByLife: len(inherit) > 0,
		CrashLimit: w.conf.CrashLimit, CancelPoll: w.conf.CancelPollInterval,
		SendAttempts: w.conf.CompletionSendMaxAttempts, Patience: w.patience(), EndPatience: w.conf.EndPatience,
		Jitter: rand.Float64, Observe: w.conf.OnEvent,
	})
	p := newPump(w.conf, handler, member, runner.late.CatchUp)
	p.run(ctx)
	return nil
}

func (w *Worker) patience() time.Duration { return orDefault(w.conf.StopPatience, 30*time.Second) }

// join returns the membership of this process and how to end it.
func (w *Worker) join(ctx context.Context) (port.Membership, func(context.Context) error, error) {
	if w.conf.Membership != nil {
		return w.conf.Membership, func(context.Context) error { return nil }, nil
	}
	member, err := w.conf.Store.Presence.Join(ctx, port.Member{
		Kind: "worker", Host: w.host, PID: os.Getpid(),
		Queues: w.conf.Queues, Slots: w.conf.Slots, Started: time.Now().UTC(),
	})
	if err != nil {
		return nil, nil, err
	}
	return member, func(ctx context.Context) error {
		bounded, cancel := context.WithTimeout(ctx, w.patience())
		defer cancel()
		return member.Leave(bounded)
	}, nil
}

// ensureQueues creates what is missing where that is allowed.
func (w *Worker) ensureQueues(ctx context.Context) error {
	names := w.conf.Queues
	if w.conf.Inbox != "" {
		names = append([]string{w.conf.Inbox}, names...)
	}
	for _, name := range names {
		if err := w.conf.Store.Queues.Ensure(ctx, name); err != nil && !fault.Is(err, fault.Denied) {
			return err
		}
	}
	return nil
}
