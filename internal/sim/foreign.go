package sim

import (
	"context"
	"fmt"
	"time"

	"jobq/core/msg"
	"jobq/core/port"
	"jobq/worker/protocol"
)

// foreignWorker deals with messages as a worker of ai4s-jobq does: it knows no
// attempt record, writes outputs to the canonical name, and reports a cancelled
// command as a failed one.
type foreignWorker struct {
	wp *workerProcess
	p  *process
}

func (f *foreignWorker) handle(ctx context.Context, q port.Queue, d port.Delivery, _ int) {
	w := f.wp.w
	c := clock{w.s, f.p}
	task, err := msg.DecodeTask(d.Body)
	if err != nil {
		w.violate("messages decode", "a task message cannot be read: %v", err)
		return
	}
	run := f.wp.begin(f.p, protocol.Start{
		Task: task, Attempt: max(task.Attempt, 1), Start: 1, RunID: fmt.Sprintf("foreign/%d", f.p.random.Uint64()),
	})
	cancelled := false
	for run.how == running && ctx.Err() == nil {
		w.s.wait(f.wp.lock/3, ctx, func() bool { return run.how != running })
		if run.how != running || ctx.Err() != nil {
			break
		}
		if err := q.Extend(context.WithoutCancel(ctx), &d, f.wp.lock); err != nil {
			w.tell(f.p, "lost its lock and goes on", recordKey(run.key))
		}
		if row, err := f.p.store.Index.Get(ctx, task.Workflow); err == nil && row.Cancel.Requested {
			cancelled = true
			run.end(killedByWorker)
		}
	}
	if ctx.Err() != nil && run.how == running {
		run.end(killedByWorker)
		_ = q.Release(context.WithoutCancel(ctx), d, 0)
		return
	}
	f.report(context.WithoutCancel(ctx), c, q, d, run, cancelled)
}

func (f *foreignWorker) report(ctx context.Context, c clock, q port.Queue, d port.Delivery, run *command, cancelled bool) {
	done := msg.Completion{
		Workflow: run.key.Workflow, Task: run.key.Task, Attempt: run.key.Attempt,
		Success: run.how == byItself && run.ending.Code == 0,
	}
	switch {
	case cancelled:
		done.Error = "cancelled"
	case !done.Success:
		done.Error = "exit code 1"
	case len(run.ending.Output) > msg.MaxInlineOutput:
		name := msg.CanonicalOutput(run.key.Workflow, run.key.Task)
		if err := f.p.store.Outputs.Put(ctx, name, []byte(run.ending.Output)); err == nil {
			done.OutputRef = msg.FormatBlobRef(name, "")
		}
	default:
		done.OutputRef = run.ending.Output
	}
	body, err := msg.EncodeCompletion(done)
	if err != nil {
		return
	}
	for range 5 {
		m := port.Message{ID: fmt.Sprintf("%016x", f.p.random.Uint64()), Body: body}
		if first(f.p.store.Queues.Queue(inbox).Send(ctx, []port.Message{m})) == nil {
			_ = first(q.Acknowledge(ctx, []port.Delivery{d}))
			return
		}
		if c.Sleep(ctx, 5*time.Second) != nil {
			return
		}
	}
}
