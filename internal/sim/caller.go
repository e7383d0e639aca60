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

	// given and left say when its caller first gave it, and when he left it without an
	// answer, 0 for never, by a count that tells moments of the same time apart.
	given, left uint64

	acknowledged bool
	// applied says that a stored state remembers it, kept that one has its answer, which
	// may be a refusal.
	applied, kept bool
	// joined says that a submission found its workflow.
	joined bool
	// epoch is the one that it began.
	epoch uint64
	// queued says that the inbox took a copy, lost that the copy was lost there, and
	// refusable that there was a state since by which it is refused.
	queued, lost, refusable bool
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

// caller is somebody who wants an order to be carried out, at one call of a program.
type caller struct {
	w *World
	p *process
	c *coord.Coordinator
	// o is the order that he is at: he may turn to another.
	o *order
}

// call begins a caller's process. One that is stopped comes back twice, or never.
func (w *World) call(o *order, times int) {
	p := w.process(callerRole, fmt.Sprintf("caller-%s.%d", o.id, times+1))
	k := &caller{w: w, p: p, c: coord.New(p.store, clock{w.s, p}, w.options(p)), o: o}
	p.onStop = func() {
		w.harvest(k.c)
		k.o.began = k.o.began || p.began
		if times < 2 && (w.o.steady || w.draw.IntN(3) > 0) {
			w.s.after(w.soon(time.Minute), nil, func() { w.call(w.instead(k.o), times+1) })
			return
		}
		w.callers--
		w.ledger.leave(k.o)
		w.tell(p, "never comes back", "")
	}
	w.s.start(p, p.name, func() {
		switch o.kind {
		case "flag":
			p.raiseFlag(o.wf)
		case "rubbish":
			p.postRubbish(o.wf)
		default:
			k.insist()
		}
		p.onStop = nil
		w.harvest(k.c)
		w.kill(p, "has its answer")
		w.callers--
	}, nil)
}

// insist gives orders until an answer is definite or patience ends.
func (k *caller) insist() {
	w := k.w
	for range 8 {
		w.ledger.give(k.o)
		err := k.o.give(k.p.ctx, k.c)
		switch {
		case err == nil:
			w.ledger.acknowledge(k.o)
			w.tell(k.p, "acknowledged", k.o.String())
			return
		case !w.again(err):
			k.o.refused = true
			w.tell(k.p, "refused", k.o.String()+": "+err.Error())
			return
		}
		w.tell(k.p, "without an answer", k.o.String()+": "+err.Error())
		k.o.began = k.o.began || k.p.began
		if (clock{w.s, k.p}).Sleep(k.p.ctx, time.Duration(1+k.p.random.IntN(30))*time.Second) != nil {
			return
		}
		k.o = w.instead(k.o)
	}
	w.ledger.leave(k.o)
}

// turns is what callers turn to when an order got no answer.
var turns = map[string]string{"cancel": "retry", "retry": "cancel", "rerun": "cancel", "mark": "retry", "purge": "submit"}

// instead is what the caller of o does who knows nothing of what came of it: he
// repeats it under its id, as programs do, or under another, as people do, or he
// leaves it and wants something else.
func (w *World) instead(o *order) *order {
	other, turns := turns[o.kind]
	if w.o.steady || !turns {
		return o
	}
	next := &order{
		kind: o.kind, wf: o.wf, id: w.ledger.nextID(o), tasks: o.tasks, downstream: o.downstream, to: o.to, workload: o.workload,
	}
	switch w.draw.IntN(4) {
	case 0:
		w.path(PathOtherID)
	case 1:
		w.path(PathTurned)
		next.kind = other
	default:
		return o
	}
	w.ledger.leave(o)
	w.ledger.orders = append(w.ledger.orders, next)
	return next
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
