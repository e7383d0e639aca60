package sim

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"jobq/core/coord"
	"jobq/core/msg"
	"jobq/core/port"
	"jobq/core/state"
)

// judge holds the world to its promises once it is quiet.
func (w *World) judge() {
	l := w.ledger
	for _, id := range l.names {
		wf := l.workflows[id]
		if why := l.stuck(wf); why != "" {
			if wf.harmed && !w.o.Sweeps {
				continue
			}
			w.violate("everything ends", "workflow %s: %s", id, why)
			continue
		}
		if wf.s != nil {
			if w.Counts.Ended == nil {
				w.Counts.Ended = map[string]int64{}
			}
			w.Counts.Ended[wf.s.Status.String()]++
			l.judgeRow(wf)
			l.judgeOutputs(wf)
		}
	}
	w.judgeRepairs()
	l.judgeOrders()
	l.judgeQueues()
	l.judgePoison()
	l.judgeSends()
	for _, cp := range w.coordinators {
		if !cp.p.dead {
			w.harvest(cp.c)
			if cp.host != nil {
				w.harvest(cp.host.timer)
			}
		}
	}
}

// judgeRepairs allows the sweep to bring back a lost attempt only where a message
// can have been lost: everything else is the business of a redelivery.
func (w *World) judgeRepairs() {
	if w.o.Faults&deadly != 0 || w.o.Personality == ServiceBus {
		return
	}
	for _, cp := range w.coordinators {
		n := cp.c.Count()
		if repairs := n["repairs_lost_message"] + n["repairs_ended_record"]; !cp.p.dead && repairs > 0 {
			w.violate("no needless repair", "%s repaired %d attempts though no message was lost", cp.p.name, repairs)
		}
	}
}

// judgeQueues wants nothing left in queues that somebody serves.
func (l *ledger) judgeQueues() {
	if !l.w.o.Sweeps && slices.ContainsFunc(l.names, func(id string) bool { return l.workflows[id].harmed }) {
		return
	}
	for _, name := range l.queueNames() {
		if name != inbox && l.unserved(name) {
			continue
		}
		if n, err := l.w.admin.Queues.Queue(name).Count(context.Background()); err == nil && n > 0 {
			l.w.violate("queues end empty", "queue %s still has %d messages", name, n)
		}
	}
}

// poisoned is a message that a program moved to a poison queue: a verdict, never
// a count.
func (l *ledger) poisoned(p *process, queue string, d port.Delivery) {
	l.w.path(PathPoison)
	if queue != inbox {
		return
	}
	in, err := msg.DecodeInbox(d.Body)
	if err != nil {
		return
	}
	wf := l.workflows[workflowOf(in)]
	if wf != nil && wf.s != nil && wf.s.Status != state.WorkflowPurged && !d.Sent.Before(epoch.Add(wf.since)) {
		l.w.violate("poison is a verdict", "%s poisoned a message of %s, which exists", p.name, wf.id)
	}
}

// condemned is a message that was sent to the poison queue of the inbox: by a
// function as its verdict, or by a host for its count.
func (l *ledger) condemned(p *process, m port.Message) {
	if m.ID == countedByHost {
		p.copies[string(m.Body)]++ // the function of the poison queue puts it back
	} else {
		l.poisoned(p, inbox, port.Delivery{Body: m.Body, Sent: p.triggers[string(m.Body)]})
	}
}

// judgePoison wants nothing in the poison queue of the inbox that can be read and
// names a workflow that exists.
func (l *ledger) judgePoison() {
	ds, err := l.w.admin.Queues.Queue(inbox).PoisonQueue().Peek(context.Background(), 1000)
	if err != nil {
		return
	}
	for _, d := range ds {
		in, err := msg.DecodeInbox(d.Body)
		if err != nil {
			continue
		}
		wf := l.workflows[workflowOf(in)]
		if wf != nil && wf.s != nil && wf.s.Status != state.WorkflowPurged && !d.Sent.Before(epoch.Add(wf.since)) {
			l.w.violate("poison is a verdict", "a message of %s, which exists, is poison: %s", wf.id, d.Reason)
		}
	}
}

// judgeSends wants each attempt sent once where nothing crashed.
func (l *ledger) judgeSends() {
	const harmless = FaultSet(1<<Conflict | 1<<ClockSkew | 1<<ListLag | 1<<EmptyReceive | 1<<MachineFreeze | 1<<MachineLost | 1<<WorkerStop)
	if l.w.o.Hosted && l.w.o.Coordinators > 1 {
		return // every message of a host counts as the trace of a crash
	}
	if l.w.o.Faults&^harmless != 0 || l.w.o.Network == Ragged || l.w.o.script != nil {
		return
	}
	for _, k := range l.attemptKeys() {
		if n := l.attempts[k].sends; n > 1 {
			l.w.violate("sent once without a crash", "%s was sent %d times", recordKey(k), n)
		}
	}
}

// judgeOutputs wants every accepted reference to read back as it was accepted.
func (l *ledger) judgeOutputs(wf *workflow) {
	for _, t := range sortedTasks(wf.s.Outputs) {
		out := wf.s.Outputs[t]
		name, sum := msg.CanonicalOutput(wf.id, wf.plan.d.Tasks[t].Name), ""
		switch out.Kind {
		case state.CanonicalOutput:
			if out.HasMD5 {
				sum = hex.EncodeToString(out.MD5[:])
			}
		case state.OtherOutput:
			ref, err := msg.ParseOutputRef(out.Text)
			if err != nil {
				l.w.violate("outputs read back", "the reference of %s cannot be read: %v", name, err)
				continue
			}
			name, sum = ref.Blob, ref.MD5
		default:
			l.judgeAccepted(wf, t, []byte(out.Text))
			continue
		}
		body, err := l.w.admin.Outputs.Get(context.Background(), name)
		if err != nil {
			l.w.violate("outputs read back", "%s cannot be read: %v", name, err)
			continue
		}
		if found := md5.Sum(body); sum != "" && hex.EncodeToString(found[:]) != sum {
			l.w.violate("outputs read back", "%s is not what was accepted", name)
		}
		l.judgeAccepted(wf, t, body)
	}
}

// judgeAccepted wants an output to be one that its attempt reported.
func (l *ledger) judgeAccepted(wf *workflow, t int32, body []byte) {
	task := wf.plan.d.Tasks[t].Name
	a := l.attempt(port.RecordKey{Workflow: wf.id, Task: task, Attempt: wf.s.Attempt[t]})
	if len(a.reports) == 0 || wf.s.TaskStatus[t] != state.Completed {
		return
	}
	if !slices.ContainsFunc(a.reports, func(c msg.Completion) bool { return c.Success && bytes.Equal(l.outputOf(c), body) }) {
		l.w.violate("outputs read back", "the output of %s/%s is none that its attempt %d reported", wf.id, task, wf.s.Attempt[t])
	}
}

// judgePurged lets a day pass and wants nothing left of purged workflows.
func (w *World) judgePurged() {
	var purged []string
	for _, id := range w.ledger.names {
		if wf := w.ledger.workflows[id]; wf.s != nil && wf.s.Status == state.WorkflowPurged && !wf.harmed {
			purged = append(purged, id)
		}
	}
	if len(purged) == 0 || !w.o.Sweeps || len(w.Violations) > 0 {
		return
	}
	w.s.now += 25 * time.Hour
	w.ended = false
	p := w.process(coordinatorRole, "janitor")
	c := coord.New(p.store, clock{w.s, p}, w.options(p))
	w.s.start(p, p.name, func() {
		// Nothing depends on a single turn of the sweep.
		_, err := c.Sweep(p.ctx)
		for range 5 {
			if err != nil {
				_, err = c.Sweep(p.ctx)
			}
		}
		if err != nil {
			w.violate("nothing is left of a purged workflow", "the sweeps of the day after fail: %v", err)
		}
	}, nil)
	w.s.loop(w.s.now+time.Hour, func() bool { return p.actors == 0 })
	w.ended = true
	for _, id := range purged {
		w.ledger.judgeLeft(id)
	}
	w.kill(p, "")
}

func (l *ledger) judgeLeft(id string) {
	bg := context.Background()
	left := l.blobNames(id + "/")
	for _, log := range []port.Log{l.w.admin.Events, l.w.admin.TaskLogs} {
		for name, err := range log.Names(bg, "") {
			if err == nil && (strings.HasPrefix(name, id+".events/") || strings.HasPrefix(name, "logs/"+id+"/")) {
				left = append(left, name)
			}
		}
	}
	for _, k := range l.attemptKeys() {
		if k.Workflow == id {
			if _, err := l.w.admin.Records.Read(bg, k); err == nil {
				left = append(left, "record "+recordKey(k))
			}
		}
	}
	if _, err := l.w.admin.States.Definition(bg, state.DefinitionKey(id, l.workflows[id].s.BornEpoch)); err == nil {
		left = append(left, "definition")
	}
	if len(left) > 0 {
		l.w.violate("nothing is left of a purged workflow", "of %s: %s", id, strings.Join(left, ", "))
	}
}
