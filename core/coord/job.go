package coord

import (
	"context"
	"time"

	"jobq/core/engine"
	"jobq/core/msg"
	"jobq/core/port"
	"jobq/core/state"
)

// item is one thing to apply to one workflow: a message of the inbox, or an
// event of our own.
type item struct {
	// delivery is nil for what is not a message in our hands.
	delivery *port.Delivery
	inbox    msg.Inbox
	// event is set for what is not in inbox.
	event engine.Event
	// trace says that the item may be all that a crash left behind: if it is a wake,
	// or changes nothing, the state's unsent intents are sent.
	trace bool
	// settle asks for the refusal of a command to be kept; epoch is that of
	// engine.Command.
	settle bool
	epoch  uint64
	// output is where the output of the completion is, once that was decided;
	// refused is why it can never be accepted.
	output  *state.Output
	refused error
	// err says why this item cannot be applied now while the others were.
	err error
}

// job is the work of one workflow within one round.
type job struct {
	wf    string
	items []*item
	// first is the entry of a workflow that begins with this job.
	first *entry
	// by is who submitted it, born whether it was this job that began it.
	by   string
	born bool
	// repair are running attempts whose message is nowhere, resent those of them
	// that a queue took.
	repair []engine.Attempt
	resent []engine.Attempt
	// keep asks for the marks of accepted sends to be saved, whatever else there
	// is to save.
	keep bool
	// direct says that a caller waits for a definite answer, sweep that the due
	// row is to be moved, not after next where that is set.
	direct bool
	sweep  bool
	next   time.Time
	// patience is the shortest delay of a wake that the job leaves.
	patience time.Duration

	// received is when the messages were asked for, began when the job was.
	received time.Time
	began    time.Time
	// answer is the result of the last command among the items.
	answer *engine.Answer
	// unknown says that a save with an unknown outcome came before, contended
	// that somebody else saved while this job was at it.
	unknown   bool
	contended bool
	// left says that something stays to be done for which nobody else will be
	// called, helped that some of what had been left before was done; settled,
	// commanded and traced what happened on the way.
	left   bool
	helped bool
	// rival says that the request of a cancel for the same epoch stands, which has
	// lost when the job has saved.
	rival     bool
	settled   bool
	commanded bool
	traced    bool
	// came is when the last output came for a condition.
	came time.Time
	// rows is why the index rows could not be written, unsettled why messages of a
	// host could neither be applied nor put back.
	rows      error
	unsettled error
}

// batch is what one pass over items did.
type batch struct {
	changed bool
	// send are the intents that the pass created, resend older ones that a crash
	// may have left unsent, repair those of job.repair that are still to be sent.
	send   []engine.Attempt
	resend []engine.Attempt
	repair []engine.Attempt
	fence  []engine.Attempt
	moves  []engine.Change
	// lines are what the event log gets of commands; command says that one was
	// done which a caller may have to be told of by the workflow's row.
	lines   []Event
	command bool
	// revives says that the command was one of a workflow that had ended.
	revives bool
	// trace says that an item may be the trace of a crash.
	trace   bool
	settled bool
	purge   bool
}

const roundOperation = "a round of the coordinator"

// run applies a job within the time of a round. When it returns nil, everything
// that the items caused is durable and what could not be done has a wake: the
// messages may be acknowledged, but for items with an error of their own.
func (c *Coordinator) run(ctx context.Context, j *job) error {
	ctx, cancel := c.sched.WithTimeout(ctx, c.roundTime(), roundOperation)
	defer cancel()
	j.began = c.sched.Now()
	c.note(j.wf, func(n *note) { n.working++ })
	defer c.note(j.wf, func(n *note) { n.working-- })
	return c.update(ctx, j)
}

// share bounds a part of a job: it ends after that many quarters of the job's
// time, so that what must come after it (the save, the marks, the wake) has the
// rest. Where what came before took too long, it still has half of what is left:
// else a store that is slow enough would keep it from ever being done.
func (c *Coordinator) share(ctx context.Context, j *job, quarters int, operation string) (context.Context, context.CancelFunc) {
	used := c.sched.Now().Sub(j.began)
	whole := c.roundTime()
	part := whole*time.Duration(quarters)/4 - used
	return c.sched.WithTimeout(ctx, max(part, (whole-used)/2), operation)
}
