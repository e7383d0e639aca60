package testkit

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"jobq/core/coord"
	"jobq/core/engine"
	"jobq/core/fault"
	"jobq/core/msg"
	"jobq/core/port"
	"jobq/core/state"
	"jobq/store/wrap/faults"
)

// verbs are the commands of scenario files. as=NAME makes another coordinator
// than c1 do it; a coordinator that stopped is followed by one with a cold cache.
var verbs = map[string]func(*player, context.Context, args){
	// What callers do: submit W DEFINITION, and the commands with id= and by=.
	"submit": (*player).submit,
	"cancel": func(p *player, ctx context.Context, a args) {
		p.command(a, func(n *Node) (engine.Answer, error) { return n.Cancel(ctx, a.word(0), a.command()) })
	},
	"retry": func(p *player, ctx context.Context, a args) {
		p.command(a, func(n *Node) (engine.Answer, error) { return n.Retry(ctx, a.word(0), a.command()) })
	},
	"purge": func(p *player, ctx context.Context, a args) {
		p.command(a, func(n *Node) (engine.Answer, error) { return n.Purge(ctx, a.word(0), a.command()) })
	},
	"rerun": (*player).rerun, // rerun W TASK... downstream=yes
	"mark":  (*player).mark,  // mark W/TASK completed|skipped output=JSON

	// What workers do: take takes every task message; complete and fail end what
	// was taken (dup=N reports it N times, attempt=N another one); run goes on with
	// workers that always succeed until nothing moves.
	"take":     func(p *player, ctx context.Context, _ args) { p.w.Take(ctx) },
	"complete": func(p *player, ctx context.Context, a args) { p.end(ctx, a, true) },
	"fail":     func(p *player, ctx context.Context, a args) { p.end(ctx, a, false) },
	"run":      (*player).run,
	// claim W/TASK has a worker of ours hold the attempt record; end W/TASK writes
	// the end of a taken attempt into its record and reports nothing.
	"claim": func(p *player, ctx context.Context, a args) { p.record(ctx, a, msg.AttemptRecord{}) },
	"end":   (*player).endRecord,

	// What coordinators do.
	"drain": (*player).drain,
	"sweep": (*player).sweep,
	"wake": func(p *player, ctx context.Context, a args) {
		p.touch(a.word(0))
		p.answer("wake", p.node(a).Wake(ctx, a.word(0)))
	},

	// What goes wrong: the next call of an operation, or its answer. OP is save,
	// send, ack, fetch, or as package faults names it; OP@KEY is about one queue.
	"crash-before": func(p *player, _ context.Context, a args) { p.once(a, faults.Fate{Stop: true}) },
	"crash-after": func(p *player, _ context.Context, a args) {
		p.once(a, faults.Fate{Stop: true, After: fault.New(fault.Unavailable, "process stopped")})
	},
	"lose-answer": func(p *player, _ context.Context, a args) {
		p.once(a, faults.Fate{After: fault.New(fault.Unavailable, "the answer was lost")})
	},
	"fail-next": (*player).failNext, // fail-next OP CODE [TIMES]
	"down":      (*player).down,     // down OP [CODE]: fails until up OP
	"up":        func(p *player, _ context.Context, a args) { delete(p.downs, a.word(0)) },
	"crash":     func(p *player, _ context.Context, a args) { p.node(a).Process.Stop() },
	"drop":      (*player).drop,     // drop QUEUE loses its messages
	"corrupt":   (*player).corrupt,  // corrupt W [too-new] damages the state
	"post":      (*player).post,     // post TEXT puts any text into the inbox
	"duplicate": (*player).copyTask, // duplicate W/TASK sends a taken message again
	"poison":    (*player).poison,   // poison W/TASK moves a taken message to the poison queue
	"flag":      (*player).flag,     // flag W sets cancel_requested as a script does

	"tick": func(p *player, _ context.Context, a args) { time.Sleep(p.duration(a.word(0))) },

	// What people look at.
	"show":    func(p *player, _ context.Context, a args) { p.touch(a.word(0)) },
	"queue":   (*player).queue,   // queue NAME, or inbox, poison
	"taken":   (*player).taken,   // how often each attempt was sent
	"row":     (*player).row,     // row W: the row of the index
	"due":     (*player).due,     // what the sweep would find within a day
	"reason":  (*player).reason,  // reason W/TASK
	"history": (*player).history, // history W: commands and moves of the event log
	"count":   (*player).count,   // count NAME...: counters of the coordinator
}

func verbNames() []string { return slices.Sorted(maps.Keys(verbs)) }

func (p *player) submit(ctx context.Context, a args) {
	wf := a.word(0)
	d := p.defs[a.word(1)]
	if d == nil {
		p.t.Fatalf("no definition %q", a.word(1))
	}
	p.touch(wf)
	s, err := p.node(a).Submit(ctx, coord.Submission{ID: wf, Definition: d, By: a.get("by", "")})
	if p.answer("submit", err); s.Already {
		p.say("already submitted")
	}
}

func (p *player) command(a args, do func(*Node) (engine.Answer, error)) {
	wf, _ := a.task(0)
	p.touch(wf)
	answer, err := do(p.node(a))
	if err == nil {
		repeated := ""
		if answer.Repeated {
			repeated = " (as before)"
		}
		p.say("%s%s", answer.Text, repeated)
	}
	p.answer("refused", err)
}

func (p *player) rerun(ctx context.Context, a args) {
	p.command(a, func(n *Node) (engine.Answer, error) {
		return n.Rerun(ctx, a.word(0), a.words[1:], a.get("downstream", "") == "yes", a.command())
	})
}

func (p *player) mark(ctx context.Context, a args) {
	to := state.Completed
	if a.word(1) == "skipped" {
		to = state.Skipped
	}
	wf, task := a.task(0)
	p.command(a, func(n *Node) (engine.Answer, error) {
		return n.Mark(ctx, wf, task, to, a.get("output", ""), a.command())
	})
}

// end reports the end of a task, for the attempt that was taken last if none is
// given, and acknowledges its messages.
func (p *player) end(ctx context.Context, a args, success bool) {
	p.w.Take(ctx)
	c := a.completion(success)
	c.Workflow, c.Task = a.task(0)
	p.touch(c.Workflow)
	taken := p.w.letGo(ctx, c.Workflow, c.Task)
	c.Attempt = uint32(p.number(a.get("attempt", strconv.Itoa(int(taken)))))
	for range p.number(a.get("dup", "1")) {
		p.w.Report(ctx, c)
	}
}

// letGo acknowledges the messages of a task that were taken and returns the
// newest attempt among them, or that of the last message ever.
func (w *World) letGo(ctx context.Context, wf, task string) (attempt uint32) {
	w.held = slices.DeleteFunc(w.held, func(h heldTask) bool {
		if h.task.Workflow != wf || h.task.Name != task {
			return false
		}
		w.acknowledge(ctx, h)
		return true
	})
	for n := uint32(1); ; n++ {
		if w.Taken[wf+"/"+attemptName(task, n)] == 0 && attempt > 0 || n > 1000 {
			return max(attempt, 1)
		}
		if w.Taken[wf+"/"+attemptName(task, n)] > 0 {
			attempt = n
		}
	}
}

func (p *player) run(ctx context.Context, a args) {
	p.touch(a.word(0))
	for range 10_000 {
		n := p.w.Take(ctx)
		p.w.Finish(ctx)
		m, err := p.node(a).Drain(ctx, time.Minute, nil)
		if p.answer("drain", err); err != nil || n+m == 0 {
			return
		}
	}
	p.say("it goes on for ever")
}

func (p *player) record(ctx context.Context, a args, rec msg.AttemptRecord) {
	p.w.Take(ctx)
	wf, task := a.task(0)
	rec.Start, rec.TTL, rec.Holder = 1, 5*time.Minute, "worker"
	body, err := msg.EncodeRecord(rec)
	if err != nil {
		p.t.Fatal(err)
	}
	key := port.RecordKey{Workflow: wf, Task: task, Attempt: uint32(p.number(a.get("attempt", "1")))}
	_, err = p.w.Store.Records.Create(ctx, key, port.Record{Owner: "worker", Body: body})
	p.answer("claim", err)
}

func (p *player) endRecord(ctx context.Context, a args) {
	c := a.completion(a.get("reason", "") == "")
	c.Workflow, c.Task = a.task(0)
	c.Attempt = uint32(p.number(a.get("attempt", "1")))
	p.record(ctx, a, msg.AttemptRecord{Ended: &msg.Ended{Completion: &c}})
	p.w.letGo(ctx, c.Workflow, c.Task)
}

func (p *player) drain(ctx context.Context, a args) {
	_, err := p.node(a).Drain(ctx, time.Minute, nil)
	p.answer("drain", err)
}

func (p *player) sweep(ctx context.Context, a args) {
	n, err := p.node(a).Sweep(ctx)
	if p.answer("sweep", err); n > 0 {
		p.say("swept %d", n)
	}
}

// operations are the short names that files use.
var operations = map[string][]string{
	"save": {"States.Save", "States.Create"}, "send": {"Queue.Send"}, "ack": {"Queue.Acknowledge"}, "fetch": {"Outputs.Get"},
}

// meets reports whether c is a call of what a file names: an operation, or
// operation@key for those about one queue or workflow.
func meets(c faults.Call, name string) bool {
	op, key, keyed := strings.Cut(name, "@")
	ops, short := operations[op]
	if !short {
		ops = []string{op}
	}
	return slices.Contains(ops, c.Op) && (!keyed || c.Key == key)
}

// once lets fate meet the next call of an operation, or the one n= away.
func (p *player) once(a args, fate faults.Fate) { p.plan(a, p.number(a.get("n", "1")), 1, fate) }

// plan lets fate meet calls of an operation, from the n-th on, times times.
func (p *player) plan(a args, n, times int, fate faults.Fate) {
	p.node(a).Plan(func(c faults.Call) faults.Fate {
		if !meets(c, a.word(0)) || times == 0 {
			return faults.Fate{}
		}
		if n > 1 {
			n--
			return faults.Fate{}
		}
		times--
		return fate
	})
}

func (p *player) failNext(_ context.Context, a args) {
	times := 1
	if a.word(2) != "" {
		times = p.number(a.word(2))
	}
	code := p.code(a.word(1))
	p.plan(a, 1, times, faults.Fate{Before: fault.Newf(code, "%s fails on purpose", a.word(0))})
}

func (p *player) down(_ context.Context, a args) {
	code := fault.Unavailable
	if a.word(1) != "" {
		code = p.code(a.word(1))
	}
	p.downs[a.word(0)] = code
}

// outage fails the calls of all coordinators that are down.
func (p *player) outage(c faults.Call) faults.Fate {
	for _, name := range slices.Sorted(maps.Keys(p.downs)) {
		if meets(c, name) {
			return faults.Fate{Before: fault.Newf(p.downs[name], "%s is down", name)}
		}
	}
	return faults.Fate{}
}

func (p *player) code(name string) fault.Code {
	for _, c := range fault.Codes() {
		if c.String() == name {
			return c
		}
	}
	p.t.Fatalf("no fault code %q", name)
	return 0
}

func (p *player) number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		p.t.Fatalf("%q is not a number", s)
	}
	return n
}

func (p *player) duration(s string) time.Duration {
	d, err := time.ParseDuration(s)
	if err != nil {
		p.t.Fatalf("%q is not a duration", s)
	}
	return d
}

func (p *player) drop(ctx context.Context, a args) {
	if _, err := p.w.Store.Queues.Queue(a.word(0)).Clear(ctx); err != nil {
		p.t.Fatal(err)
	}
}

func (p *player) corrupt(ctx context.Context, a args) {
	doc, err := p.w.Store.States.Load(ctx, a.word(0), "")
	if err != nil {
		p.t.Fatal(err)
	}
	body := slices.Clone(doc.Body)
	if a.word(1) == "too-new" {
		body[5], body[6] = 99, 99
	} else {
		body[len(body)/2] ^= 0xff
	}
	if _, err := p.w.Store.States.Save(ctx, a.word(0), body, doc.Tag); err != nil {
		p.t.Fatal(err)
	}
}

func (p *player) post(ctx context.Context, a args) { p.w.Post(ctx, []byte(strings.Join(a.words, " "))) }

func (p *player) copyTask(ctx context.Context, a args) {
	p.w.Take(ctx)
	for _, h := range p.find(a) {
		m := port.Message{ID: fmt.Sprintf("copy-%d", len(p.w.Taken)), Body: h.delivery.Body}
		if errs := p.w.Store.Queues.Queue(h.queue).Send(ctx, []port.Message{m}); errs != nil {
			p.t.Fatal(errs[0])
		}
	}
}

// find returns the messages of a task that were taken.
func (p *player) find(a args) []heldTask {
	wf, task := a.task(0)
	var found []heldTask
	for _, h := range p.w.held {
		if h.task.Workflow == wf && h.task.Name == task {
			found = append(found, h)
		}
	}
	if len(found) == 0 {
		p.t.Fatalf("no message of %s/%s was taken", wf, task)
	}
	return found
}

func (p *player) poison(ctx context.Context, a args) {
	p.w.Take(ctx)
	for _, h := range p.find(a) {
		if err := p.w.Store.Queues.Queue(h.queue).Poison(ctx, h.delivery, "on purpose"); err != nil {
			p.t.Fatal(err)
		}
	}
	wf, task := a.task(0)
	p.w.held = slices.DeleteFunc(p.w.held, func(h heldTask) bool { return h.task.Workflow == wf && h.task.Name == task })
}

func (p *player) flag(ctx context.Context, a args) {
	row, err := p.w.Store.Index.Get(ctx, a.word(0))
	if err != nil {
		p.t.Fatal(err)
	}
	row.Cancel.Requested = true
	if _, err := p.w.Store.Index.SetCancel(ctx, a.word(0), row.Cancel, row.Tag); err != nil {
		p.t.Fatal(err)
	}
}
