package coord

import (
	"cmp"
	"context"
	"slices"
	"time"

	"jobq/core/fault"
)

// latestTrailing is the age at which marks are saved though a job of this process
// is at the workflow and may save them any moment.
const latestTrailing = 3 * time.Second

// noteTrailing remembers that the marks or the rows of wf are to be stored soon.
func (c *Coordinator) noteTrailing(wf string) {
	at := c.sched.Now().Add(c.o.TrailingSave)
	c.note(wf, func(n *note) {
		if n.trailing.IsZero() {
			n.trailing = at
		}
	})
}

// noteMarks is noteTrailing for marks of sends, which do not wait for rows that could
// not be written.
func (c *Coordinator) noteMarks(wf string) {
	at := c.sched.Now().Add(c.o.TrailingSave)
	c.note(wf, func(n *note) {
		if n.trailing.IsZero() || at.Before(n.trailing) {
			n.trailing = at
		}
	})
}

// longestTrailing bounds the pause after which marks and rows that could not be
// stored are stored again; a service may ask for more.
const longestTrailing = 5 * time.Second

// FlushTrailing saves the marks of accepted sends and writes the index rows that
// are due, or all of them.
func (c *Coordinator) FlushTrailing(ctx context.Context, all bool) {
	due := c.dueTrailing(all)
	c.sched.Parallel(ctx, len(due), c.o.Parallel, func(ctx context.Context, i int) {
		wf := due[i]
		j := &job{wf: wf, keep: true, direct: all}
		err := c.run(ctx, j)
		if err != nil {
			c.log.Warn("marks not saved", "workflow", wf, "error", err)
		}
		c.note(wf, func(n *note) {
			if len(n.accepted) == 0 { // marks that came meanwhile do not wait for the rows
				err = cmp.Or(err, j.rows)
			}
			n.trailingPause = min(max(2*n.trailingPause, c.o.TrailingSave), longestTrailing)
			if err == nil {
				n.trailingPause = 0
			}
			if n.stale || len(n.accepted) > 0 {
				pause := max(c.o.TrailingSave, n.trailingPause, min(fault.RetryAfter(err), lastWake))
				n.trailing = c.sched.Now().Add(pause)
			}
		})
	})
}

// dueTrailing takes the workflows that are due off the list.
func (c *Coordinator) dueTrailing(all bool) []string {
	now := c.sched.Now()
	c.notes.mu.Lock()
	defer c.notes.mu.Unlock()
	var due []string
	for wf, n := range c.notes.byID {
		busy := n.working > 0 && now.Sub(n.trailing) < latestTrailing
		if !n.trailing.IsZero() && (all || !now.Before(n.trailing) && !busy) {
			n.trailing = time.Time{}
			due = append(due, wf)
		}
	}
	slices.Sort(due)
	return due
}
