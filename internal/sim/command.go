package sim

import (
	"context"
	"slices"
	"time"

	"jobq/core/port"
	"jobq/worker/protocol"
)

// command is a start of an attempt's command: the only part of a worker that is
// modelled. It is no actor of the worker's process but of its machine.
type command struct {
	wp      *workerProcess
	p       *process
	key     port.RecordKey
	start   uint32
	runID   string
	ending  Ending
	began   time.Duration
	endedAt time.Duration
	how     commandEnd
	asked   bool
	// excused says that its worker stood still, stopped or was hindered.
	excused bool
	ends    *event
	// guard fires when the guardian sees no newer beat.
	guard *event
	ttl   time.Duration
	// claimed is when the write that counts as the first beat was sent.
	claimed time.Duration
}

// stale reports whether c began when its claim was already too old.
func (c *command) stale() bool { return c.ttl > 0 && c.began-c.claimed >= c.ttl*8/10 }

// commandEnd says what ended a command.
type commandEnd uint8

const (
	running commandEnd = iota
	byItself
	terminated
	killedByWorker
	killedByGuardian
	killedByMachine
)

// runner is the protocol.Runner of a worker.
type runner struct {
	wp *workerProcess
	p  *process
}

var _ protocol.Runner = (*runner)(nil)

// Moment is a clock of the machine that nobody sets.
func (r *runner) Moment() protocol.Moment { return protocol.Moment(r.wp.w.s.now) }

func (r *runner) Run(ctx context.Context, s protocol.Start) protocol.Outcome {
	w := r.wp.w
	for _, c := range slices.Clone(r.wp.commands) {
		if s.Survivor != "" && c.runID == s.Survivor {
			c.end(killedByWorker)
		}
	}
	if out, ok := r.fetch(ctx, s); !ok {
		return out
	}
	if ctx.Err() != nil {
		return protocol.Outcome{Kind: protocol.Stopped, ExitCode: -1}
	}
	c := r.wp.begin(r.p, s)
	began := clock{w.s, r.p}.Now()
	asked := false
	closed := func() bool {
		select {
		case <-s.Kill:
			return true
		default:
			return false
		}
	}
	for c.how == running {
		switch {
		case closed():
			c.end(killedByWorker)
		case ctx.Err() != nil && !asked:
			asked = true
			c.terminate()
		case asked:
			w.s.wait(forever, nil, func() bool { return c.how != running || closed() })
		default:
			w.s.wait(forever, ctx, func() bool { return c.how != running || closed() })
		}
	}
	out := protocol.Outcome{StartedAt: began, EndedAt: clock{w.s, r.p}.Now(), Kind: protocol.Exited, ExitCode: -1}
	switch {
	case c.how == byItself:
		out.ExitCode = c.ending.Code
		if c.ending.Code != 0 {
			out.Error = "it failed"
		}
		if c.ending.Output != "" {
			out.Output = []byte(c.ending.Output)
		}
	case asked || c.how == killedByWorker:
		out.Kind, out.Signal = protocol.Stopped, "SIGTERM"
	default:
		out.Signal = "SIGKILL"
	}
	return out
}

// fetch reads the outputs of the parents, as the child's files need them.
func (r *runner) fetch(ctx context.Context, s protocol.Start) (protocol.Outcome, bool) {
	if s.Task.Upstream == nil {
		return protocol.Outcome{}, true
	}
	refs := make([]string, 0, 4)
	for _, name := range sortedKeys(s.Task.Upstream.Literal) {
		refs = append(refs, s.Task.Upstream.Literal[name])
	}
	for _, ref := range refs {
		if _, err := s.Fetch(ctx, ref); err != nil {
			r.wp.w.ledger.unfetched(r.p, s, ref, err)
			return protocol.Unprepare(err), false
		}
	}
	return protocol.Outcome{}, true
}

func (r *runner) Beat(runID string, sent protocol.Moment) {
	for _, c := range r.wp.commands {
		if c.runID == runID {
			c.beat(time.Duration(sent))
		}
	}
}

func (wp *workerProcess) begin(p *process, s protocol.Start) *command {
	w := wp.w
	c := &command{
		wp: wp, p: p, start: s.Start, runID: s.RunID, began: w.s.now, ttl: s.TTL, claimed: time.Duration(s.Claimed),
		key: port.RecordKey{Workflow: s.Task.Workflow, Task: s.Task.Name, Attempt: s.Attempt},
	}
	c.ending = w.endingOf(c.key)
	wp.commands = append(wp.commands, c)
	c.ends = w.s.after(c.ending.Lasts, wp.machine, func() {
		if c.ending.Kills && !p.dead {
			w.kill(p, "by its command")
			return
		}
		c.end(byItself)
	})
	if s.TTL > 0 {
		c.beat(time.Duration(s.Claimed))
	}
	w.ledger.started(c)
	return c
}

// beat tells the guardian of a beat that was sent at the moment sent.
func (c *command) beat(sent time.Duration) {
	if c.ttl == 0 || c.how != running {
		return
	}
	s := c.wp.w.s
	s.cancel(c.guard)
	c.guard = s.after(sent+c.ttl*8/10-s.now, c.wp.machine, func() { c.end(killedByGuardian) })
}

// terminate is SIGTERM: the command ends within its grace.
func (c *command) terminate() {
	if c.asked || c.how != running {
		return
	}
	c.asked = true
	s := c.wp.w.s
	left := c.ends.at - s.now
	grace := time.Duration(c.wp.w.draw.Int64N(int64(30 * time.Second)))
	if left <= grace {
		return // it ends by itself before
	}
	s.cancel(c.ends)
	c.ends = s.after(grace, c.wp.machine, func() { c.end(terminated) })
}

// shift moves the end of a command whose machine stands still for d.
func (c *command) shift(d time.Duration) {
	s := c.wp.w.s
	at := c.ends.at + d
	fire := c.ends.fire
	s.cancel(c.ends)
	c.ends = s.after(at-s.now, c.wp.machine, fire)
}

// end ends a command for the reason how.
func (c *command) end(how commandEnd) {
	if c.how != running {
		return
	}
	w := c.wp.w
	c.how, c.endedAt = how, w.s.now
	w.s.cancel(c.ends)
	w.s.cancel(c.guard)
	if i := slices.Index(c.wp.commands, c); i >= 0 {
		c.wp.commands = slices.Delete(c.wp.commands, i, i+1)
	}
	w.tell(c.p, "command ended", recordKey(c.key))
	if how == byItself {
		w.ledger.endedByItself(c)
	}
	w.s.poll(c.p)
}
