package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"jobq/core/coord"
	"jobq/core/fault"
	"jobq/core/msg"
	"jobq/core/port"
	"jobq/core/state"
)

// order is a command that somebody wants to be carried out.
type order struct {
	at   time.Duration
	kind string // submit, cancel, retry, rerun, mark or purge
	wf   string
	id   string
	// args of rerun and mark.
	tasks      []string
	downstream bool
	to         state.TaskStatus
	workload   *Workload

	acknowledged bool
	// applied says that a stored state remembers it.
	applied bool
	// began says that one of its processes wrote what obliges to more.
	began   bool
	refused bool
}

func (o *order) String() string {
	return fmt.Sprintf("%s %s %v", o.kind, o.wf, o.tasks)
}

// place lets a caller give an order when its time comes.
func (w *World) place(o *order) {
	w.ledger.orders = append(w.ledger.orders, o)
	w.callers++
	w.s.after(o.at-w.s.now, nil, func() { w.call(o, 0) })
}

// call begins a caller's process. One that is stopped comes back twice, with the
// same id, or never.
func (w *World) call(o *order, times int) {
	p := w.process(callerRole, fmt.Sprintf("caller-%s.%d", o.id, times+1))
	c := coord.New(p.store, clock{w.s, p}, w.options(p))
	p.onStop = func() {
		w.harvest(c)
		o.began = o.began || p.began
		if times < 2 && (w.o.steady || w.draw.IntN(3) > 0) {
			w.s.after(w.soon(time.Minute), nil, func() { w.call(o, times+1) })
			return
		}
		w.callers--
		if o.began {
			w.ledger.harm(o.wf)
		}
		w.tell(p, "never comes back", "")
	}
	w.s.start(p, p.name, func() {
		switch o.kind {
		case "flag":
			p.raiseFlag(o.wf)
		case "rubbish":
			p.postRubbish(o.wf)
		default:
			w.insist(p, c, o)
		}
		p.onStop = nil
		w.harvest(c)
		w.kill(p, "has its answer")
		w.callers--
	}, nil)
}

// insist repeats an order until its answer is definite or patience ends.
func (w *World) insist(p *process, c *coord.Coordinator, o *order) {
	for range 8 {
		err := o.give(p.ctx, c)
		switch {
		case err == nil:
			o.acknowledged = true
			w.tell(p, "acknowledged", o.String())
			if o.kind == "submit" {
				w.ledger.workflow(o.wf).acknowledged = true
			}
			return
		case !w.again(err):
			o.refused = true
			w.tell(p, "refused", o.String()+": "+err.Error())
			return
		}
		w.tell(p, "without an answer", o.String()+": "+err.Error())
		if (clock{w.s, p}).Sleep(p.ctx, time.Duration(1+p.random.IntN(30))*time.Second) != nil {
			return
		}
	}
	if o.began || p.began {
		w.ledger.harm(o.wf)
	}
}

func (w *World) again(err error) bool {
	return slices.Contains([]fault.Code{fault.Unavailable, fault.Throttled, fault.Canceled, fault.Exists, fault.LeaseLost, fault.TooNew}, fault.CodeOf(err))
}

// give carries o out once.
func (o *order) give(ctx context.Context, c *coord.Coordinator) error {
	cmd := coord.Command{ID: o.id, By: "caller"}
	var err error
	switch o.kind {
	case "submit":
		_, err = c.Submit(ctx, coord.Submission{ID: o.wf, Definition: o.workload.Definition, By: "caller"})
	case "cancel":
		_, err = c.Cancel(ctx, o.wf, cmd)
	case "retry":
		_, err = c.Retry(ctx, o.wf, cmd)
	case "rerun":
		_, err = c.Rerun(ctx, o.wf, o.tasks, o.downstream, cmd)
	case "mark":
		_, err = c.Mark(ctx, o.wf, o.tasks[0], o.to, "", cmd)
	case "purge":
		_, err = c.Purge(ctx, o.wf, cmd)
	}
	return err
}

// raiseFlag asks for a cancel as a script of ai4s-jobq does: it writes the column
// and nothing else.
func (p *process) raiseFlag(wf string) {
	row, err := p.store.Index.Get(p.ctx, wf)
	if err == nil && !row.Cancel.Requested {
		_, _ = p.store.Index.SetCancel(p.ctx, wf, port.CancelRequest{Requested: true}, row.Tag)
	}
}

// postRubbish puts what nobody can use into the inbox: a text that is no message,
// a report about a workflow that does not exist, and one about an attempt that
// was never made.
func (p *process) postRubbish(wf string) {
	bodies := [][]byte{[]byte("no message")}
	for _, c := range []msg.Completion{
		{Workflow: "stranger", Task: "t0", Attempt: 1, Success: true},
		{Workflow: wf, Task: "t0", Attempt: 99, Success: true},
		{Workflow: wf, Task: "nobody", Attempt: 1},
	} {
		if body, err := msg.EncodeCompletion(c); err == nil {
			bodies = append(bodies, body)
		}
	}
	for i, body := range bodies {
		m := port.Message{ID: fmt.Sprintf("rubbish-%s-%d", p.name, i), Body: body}
		_ = first(p.store.Queues.Queue(inbox).Send(p.ctx, []port.Message{m}))
	}
}
