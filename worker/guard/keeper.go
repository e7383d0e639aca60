package guard

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"jobq/core/fault"
)

const (
	// shortLife is how long a guardian must live for its successor to be
	// started without a pause.
	shortLife = time.Second
	// firstPause and longestPause bound the pause before a start that follows
	// a failed start or a short life.
	firstPause   = 20 * time.Millisecond
	longestPause = 500 * time.Millisecond
)

// errClosed is the cause of what a closed Keeper gives up.
var errClosed = errors.New("the keeper of the guardian is closed")

// Keeper keeps a guardian alive as long as a worker lives, and tells it what to
// guard. Safe for concurrent use.
//
// The Keeper's own list of runs is the truth. Each change of it is written to
// the present guardian under the same lock, and a new guardian is told the
// whole list under that lock before it becomes the present one: no order of
// events leaves a run on the list that the present guardian was not told of.
// Only while there is none (its death is noticed at once, a start takes some
// milliseconds) a worker that dies is not seen. Then the parent-death signal
// ends the leaders, the lock files are free, and whoever takes the attempts
// over finds the rest by their run ids.
type Keeper struct {
	opts   Options
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when supervise has returned

	mu      sync.Mutex
	runs    map[string]Group
	present *client       // nil while there is no guardian
	arrived chan struct{} // closed when present is set; renewed when it is lost
}

// NewKeeper starts a guardian and keeps one alive until Close. ctx bounds this
// first start only.
func NewKeeper(ctx context.Context, o Options) (*Keeper, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	first, err := startClient(ctx, o)
	if err != nil {
		return nil, err
	}
	// The guardian outlives the caller's context: it is needed most while a
	// worker that was told to stop waits for its commands.
	live, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	k := &Keeper{
		opts: o, cancel: cancel, done: make(chan struct{}),
		runs: map[string]Group{}, present: first, arrived: make(chan struct{}),
	}
	close(k.arrived)
	go k.supervise(live, first)
	return k, nil
}

// Add registers g, or replaces what is known of its run. Call it before the
// command is started, without a PGID, and Started afterwards: then there is no
// moment at which a command runs unknown to the guardian.
//
// When Add returns nil the guardian will act on g whatever happens to this
// process from now on. While there is no guardian, Add waits for the next one;
// if ctx ends or the Keeper is closed first, g is not registered and the error
// is fault.Unavailable: do not start the command.
func (k *Keeper) Add(ctx context.Context, g Group) error {
	if err := g.check(); err != nil {
		return err
	}
	k.mu.Lock()
	old, known := k.runs[g.RunID]
	k.runs[g.RunID] = g
	told := k.tell(message{add, g})
	arrived := k.arrived // renewed by a tell that failed
	k.mu.Unlock()
	if told {
		return nil
	}
	var cause error
	select {
	case <-arrived: // it was told the whole list, g with it
		return nil
	case <-ctx.Done():
		cause = context.Cause(ctx)
	case <-k.done:
		cause = errClosed
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.forget(g.RunID)
	if known {
		k.runs[g.RunID] = old
		k.tell(message{add, old})
	}
	return fault.Wrapf(fault.Unavailable, cause, "no guardian for run %q", g.RunID)
}

// Started tells the process group of a run that was added. A run that was not
// is ignored: it has been removed.
func (k *Keeper) Started(runID string, pgid int) {
	k.change(runID, func(g *Group) kind {
		g.PGID = pgid
		return add
	})
}

// Beat tells that a beat of the run succeeded which was sent at the moment
// sent. An older moment than the last one changes nothing.
func (k *Keeper) Beat(runID string, sent Moment) {
	k.change(runID, func(g *Group) kind {
		g.Sent = max(g.Sent, sent)
		return beat
	})
}

// change changes a run on the list and tells the guardian. Nothing has to be
// returned: a guardian that cannot be told is replaced by one that is told all.
func (k *Keeper) change(runID string, edit func(*Group) kind) {
	k.mu.Lock()
	defer k.mu.Unlock()
	g, known := k.runs[runID]
	if !known {
		return
	}
	what := edit(&g)
	k.runs[runID] = g
	k.tell(message{what, g})
}

// Remove forgets a run. Call it when its group is gone, and in any case before
// the number of the group can belong to somebody else.
func (k *Keeper) Remove(runID string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, known := k.runs[runID]; known {
		k.forget(runID)
	}
}

// forget takes a run off the list and tells the guardian. k.mu is held.
func (k *Keeper) forget(runID string) {
	delete(k.runs, runID)
	k.tell(message{remove, Group{RunID: runID}})
}

// tell writes m to the present guardian and reports whether that worked. k.mu is held.
func (k *Keeper) tell(m message) bool {
	if k.present == nil {
		return false
	}
	if k.present.send(m) != nil {
		k.lose()
		return false
	}
	return true
}

// lose notes that there is no guardian. The one that was there has died or was
// killed: it would take the end of its pipe for our death. k.mu is held.
func (k *Keeper) lose() {
	if k.present != nil {
		k.present.hangUp()
		k.present, k.arrived = nil, make(chan struct{})
	}
}

// Close ends the guardian and waits until it has exited, after it has killed
// the runs that were not removed. If ctx ends before, the error is
// fault.Canceled and the guardian goes on by itself. A repeat does nothing.
func (k *Keeper) Close(ctx context.Context) error {
	k.cancel(errClosed)
	<-k.done
	k.mu.Lock()
	last := k.present
	if last != nil {
		k.present, k.arrived = nil, make(chan struct{})
	}
	k.mu.Unlock()
	if last == nil {
		return nil
	}
	return last.close(ctx)
}

// supervise replaces each guardian that dies until ctx ends.
func (k *Keeper) supervise(ctx context.Context, c *client) {
	defer close(k.done)
	pause := firstPause
	for born := time.Now(); c != nil; born = time.Now() {
		select {
		case <-c.exited:
		case <-ctx.Done():
			return
		}
		k.mu.Lock()
		k.lose()
		k.mu.Unlock()
		lived := time.Since(born)
		k.opts.Logger.Warn("the guardian died; starting another", "state", c.cmd.ProcessState.String(), "lived", lived)
		if lived >= shortLife {
			pause = firstPause
		} else if pause = min(2*pause, longestPause); !rest(ctx, pause) {
			return
		}
		c = k.replace(ctx)
	}
}

// replace starts guardians until one has taken over the list, and returns it,
// or nil when ctx has ended.
func (k *Keeper) replace(ctx context.Context) *client {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		c, err := startClient(ctx, k.opts)
		if err == nil {
			if k.adopt(c) {
				return c
			}
			<-c.exited
		} else if ctx.Err() == nil {
			k.opts.Logger.Error("no guardian: commands of a killed worker would live on", "error", err)
		}
		if !rest(ctx, pause) {
			return nil
		}
	}
}

// adopt tells c the whole list and makes it the present guardian.
func (k *Keeper) adopt(c *client) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, g := range k.runs {
		if c.send(message{add, g}) != nil {
			c.hangUp()
			return false
		}
	}
	k.present = c
	close(k.arrived)
	return true
}

// rest pauses, and reports whether ctx still stands.
func rest(ctx context.Context, pause time.Duration) bool {
	select {
	case <-time.After(pause):
		return true
	case <-ctx.Done():
		return false
	}
}
