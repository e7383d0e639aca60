package coord

import (
	"context"
	"maps"
	"sync"
	"time"

	"jobq/core/engine"
	"jobq/core/port"
	"jobq/core/state"
)

// note is what this process knows of a workflow beside its state: what it did
// that no stored state shows. It outlives the entries that a lost save throws
// away.
type note struct {
	// working counts the jobs of this process on the workflow. One of a round has
	// the turn; the messages of other rounds wait for it.
	working int
	turn    bool
	waiting []*job
	// sending are attempts whose message is on its way to a queue, accepted those
	// that a queue took and that no stored state is known to have as running.
	sending  map[engine.Attempt]struct{}
	accepted []engine.Attempt
	// trailing is when accepted or a stale row must be stored, zero for never;
	// trailingPause is the last pause after a failure of that.
	trailing      time.Time
	trailingPause time.Duration

	// stale says that the index row is older than the saved state.
	stale  bool
	rowTag port.Tag
	// rowVersion is the state version of the row at rowTag, saved the newest that
	// this process saved: of two jobs the older may be the last to write its row.
	rowVersion uint64
	saved      uint64
	projected  time.Time
	// rowsAgain is until when the rows rest that could not be written.
	rowsAgain time.Time
	// dueAt is what this process last wrote as due, in the epoch dueEpoch.
	dueAt    time.Time
	dueEpoch uint64

	// eventsAgain is until when nothing is written to an event log that hung, resting
	// until when conditions rest, by task, whose outputs hang.
	eventsAgain time.Time
	resting     map[int32]time.Time
	// wakeAt is when the last wake of this process comes.
	wakeAt    time.Time
	wakeDelay time.Duration
	// putBack is the last pause of messages that a host had delivered, putBackAgain
	// when those that were put back with it may come.
	putBack      time.Duration
	putBackAgain time.Time
}

func (n *note) idle(now time.Time) bool {
	return n.working == 0 && !n.turn && len(n.sending) == 0 && len(n.accepted) == 0 && !n.stale && !now.Before(n.wakeAt)
}

// notes holds the note of each workflow that was met lately.
type notes struct {
	mu   sync.Mutex
	byID map[string]*note
}

// maxNotes is how many notes are kept that say nothing of weight.
const maxNotes = 10_000

// note calls f with the note of wf, alone.
func (c *Coordinator) note(wf string, f func(*note)) {
	c.notes.mu.Lock()
	defer c.notes.mu.Unlock()
	n := c.notes.byID[wf]
	if n == nil {
		if len(c.notes.byID) >= maxNotes {
			now := c.sched.Now()
			maps.DeleteFunc(c.notes.byID, func(_ string, n *note) bool { return n.idle(now) })
		}
		n = &note{sending: map[engine.Attempt]struct{}{}}
		c.notes.byID[wf] = n
	}
	f(n)
}

// takeTurn reports whether j may run now. Else the round that is at the workflow
// runs it later: two jobs of one process would only make each other's saves fail.
func (c *Coordinator) takeTurn(j *job) (mine bool) {
	c.note(j.wf, func(n *note) {
		if mine = !n.turn; mine {
			n.turn = true
			return
		}
		n.waiting = append(n.waiting, j)
	})
	return mine
}

// nextTurn returns what waits for the one who has the turn, as one job, or gives
// the turn back. A process that stood still has old messages and new ones: the
// old ones must not take the time of the others.
func (c *Coordinator) nextTurn(ctx context.Context, wf string) (next *job) {
	var late []*job
	c.note(wf, func(n *note) {
		for _, j := range n.waiting {
			switch {
			case c.late(j):
				late = append(late, j)
			case next == nil:
				next = j
			default:
				next.items = append(next.items, j.items...)
				if j.received.Before(next.received) {
					next.received = j.received
				}
			}
		}
		n.waiting, n.turn = nil, next != nil
	})
	for _, j := range late {
		c.leave(ctx, j)
	}
	return next
}

// beginSends returns those of all that no job of this process is sending already
// or has sent, and registers them: two jobs on one workflow must not both send.
func (c *Coordinator) beginSends(wf string, all []dispatch) []dispatch {
	mine := make([]dispatch, 0, len(all))
	c.note(wf, func(n *note) {
		sent := make(map[engine.Attempt]struct{}, len(n.accepted))
		for _, a := range n.accepted {
			sent[a] = struct{}{}
		}
		for _, d := range all {
			_, busy := n.sending[d.attempt]
			if _, ok := sent[d.attempt]; !ok && !busy {
				n.sending[d.attempt] = struct{}{}
				mine = append(mine, d)
			}
		}
	})
	return mine
}

// endSends turns accepted sends into marks and forgets the others.
func (c *Coordinator) endSends(wf string, all []dispatch, accepted []engine.Attempt) {
	c.note(wf, func(n *note) {
		for _, d := range all {
			delete(n.sending, d.attempt)
		}
		n.accepted = append(n.accepted, accepted...)
	})
}

// remark applies the marks of this process to e where e does not have them yet.
// What the passing time gave a number meanwhile is kept in e.unsaved.
func (c *Coordinator) remark(wf string, e *entry) error {
	var marks []engine.Attempt
	c.note(wf, func(n *note) { marks = append(marks, n.accepted...) })
	obsolete := map[engine.Attempt]struct{}{}
	for _, a := range marks {
		if _, ok := e.marked[a]; ok {
			continue
		}
		out, err := e.run.Step(engine.Dispatched{Task: a.Task, Attempt: a.Attempt}, c.sched.Now())
		if err != nil {
			return err
		}
		e.unsaved = append(e.unsaved, out.Send...)
		for _, change := range out.Changes {
			if change.Cause != state.CauseDispatched { // that is told when the mark is saved
				e.unsavedMoves = append(e.unsavedMoves, change)
			}
		}
		if e.run.Ahead(a) {
			continue // another job of this process was faster than this entry
		}
		if out.Refusal != "" {
			obsolete[a] = struct{}{}
			continue
		}
		if e.marked == nil {
			e.marked = map[engine.Attempt]struct{}{}
		}
		e.marked[a] = struct{}{}
	}
	c.dropMarks(wf, obsolete)
	return nil
}

// dropMarks forgets marks that a stored state has, or has no use for.
func (c *Coordinator) dropMarks(wf string, gone map[engine.Attempt]struct{}) {
	if len(gone) == 0 {
		return
	}
	c.note(wf, func(n *note) {
		kept := n.accepted[:0]
		for _, a := range n.accepted {
			if _, ok := gone[a]; !ok {
				kept = append(kept, a)
			}
		}
		n.accepted = kept
	})
}

// forget drops what was noted of a workflow that is no more.
func (c *Coordinator) forget(wf string) {
	c.note(wf, func(n *note) {
		n.accepted, n.stale, n.trailing, n.dueAt, n.resting = nil, false, time.Time{}, time.Time{}, nil
	})
}
