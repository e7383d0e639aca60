package sim

import (
	"context"
	"encoding/json"
	"strings"

	"jobq/core/msg"
	"jobq/core/port"
	"jobq/core/state"
)

// explain looks for an order of what is known to have happened (reports, ends
// by a coordinator, commands) by which the rules lead from the state before to
// this one. There must be one: then every state is a prefix of a history that
// the rules allow.
func (l *ledger) explain(p *process, wf *workflow, before, s *state.Workflow) {
	x := &explanation{l: l, wf: wf, s: s}
	if before != nil {
		x.collect(before)
	}
	for _, c := range x.commands {
		if c == nil {
			l.w.violate("commands are known", "%s stored a command in %s that nobody gave", p.name, wf.id)
			return
		}
	}
	m := x.search()
	if m == nil {
		l.w.violate("the rules explain it", "%s stored version %d of %s, which nothing that happened explains: %s", p.name, s.Version, wf.id, x.closest)
		return
	}
	m.adopt(s)
	wf.model = m
	for _, o := range l.orders {
		l.consider(wf, o)
	}
}

// explanation is the search for one.
type explanation struct {
	l        *ledger
	wf       *workflow
	s        *state.Workflow
	ends     []possibleEnd
	commands []*order
	tries    int
	closest  string
}

// possibleEnd is an attempt that is over, and how it may have ended.
type possibleEnd struct {
	task int
	ways []modelEnding
	way  int
	slot int
}

// collect finds what is different from before.
func (x *explanation) collect(before *state.Workflow) {
	for t, status := range before.TaskStatus {
		n := before.Attempt[t]
		if !status.Numbered() || x.s.TaskStatus[t].Numbered() && x.s.Attempt[t] == n {
			continue
		}
		key := port.RecordKey{Workflow: x.wf.id, Task: x.wf.plan.d.Tasks[t].Name, Attempt: n}
		x.ends = append(x.ends, possibleEnd{task: t, ways: x.l.ways(key)})
	}
	known := map[string]bool{}
	for _, c := range before.Commands {
		known[c.ID] = true
	}
	for _, c := range x.s.Commands {
		o := x.l.remembered(c)
		if known[c.ID] || o != nil && refusal(c) {
			continue // a refusal is kept so that no copy of the command does anything
		}
		x.commands = append(x.commands, o)
	}
}

// ways lists the ends of an attempt that were reported or written.
func (l *ledger) ways(key port.RecordKey) []modelEnding {
	a := l.attempt(key)
	var ways []modelEnding
	for _, c := range a.reports {
		switch {
		case c.Success:
			ways = append(ways, modelEnding{"success", l.outputOf(c)})
		case c.Reason == msg.Cancelled:
			ways = append(ways, modelEnding{how: "stopped"})
		case c.Reason == msg.Undeliverable:
			ways = append(ways, modelEnding{how: "final"})
		default:
			ways = append(ways, modelEnding{how: "failure"})
		}
	}
	if a.fenced {
		ways = append(ways, modelEnding{how: "stopped"})
	}
	return ways
}

// outputOf reads the output that a completion refers to.
func (l *ledger) outputOf(c msg.Completion) []byte {
	ref, err := msg.ParseOutputRef(c.OutputRef)
	switch {
	case err != nil || c.OutputRef == "":
		return nil
	case ref.Blob == "":
		return json.RawMessage(ref.Inline)
	}
	body, err := l.w.admin.Outputs.Get(context.Background(), ref.Blob)
	if err != nil {
		return nil
	}
	return body
}

// remembered returns the order of a command that a stored state remembers, nil for
// one that nobody gave.
func (l *ledger) remembered(c state.CommandResult) *order {
	o := l.order(c.ID)
	if o == nil {
		return nil
	}
	o.kept = true
	if !refusal(c) {
		o.applied, o.epoch = true, c.Epoch
	}
	return o
}

// refusal reports whether a remembered command was refused.
func refusal(c state.CommandResult) bool {
	var answer struct{ Done bool }
	return json.Unmarshal(c.Answer, &answer) == nil && !answer.Done
}

func (l *ledger) order(id string) *order {
	if strings.HasPrefix(id, "flag-") {
		return &order{kind: "cancel", id: id}
	}
	for _, o := range l.orders {
		if o.id == id {
			return o
		}
	}
	return nil
}

// maxTries bounds a search; a batch that large is not judged.
const maxTries = 20_000

// search tries every placement of the ends between the commands.
func (x *explanation) search() *model {
	var found *model
	var place func(i int) bool
	place = func(i int) bool {
		if i == len(x.ends) {
			x.tries++
			if found = x.try(false); found == nil && len(x.commands) > 0 {
				found = x.try(true)
			}
			return found != nil || x.tries > maxTries
		}
		e := &x.ends[i]
		for e.slot = 0; e.slot <= len(x.commands); e.slot++ {
			for e.way = range e.ways {
				if place(i + 1) {
					return true
				}
			}
		}
		if len(e.ways) == 0 && x.closest == "" {
			x.closest = "attempt " + x.wf.plan.d.Tasks[e.task].Name + " is over, and nobody reported or wrote its end"
		}
		return false
	}
	place(0)
	if found == nil && x.tries > maxTries {
		found = x.wf.model
	}
	return found
}

// try plays one placement. With held, a condition whose outputs could not be read
// is not evaluated before the last command.
func (x *explanation) try(held bool) *model {
	m := x.wf.model.clone()
	last := !held
	open := func(t int) bool { return !last || x.s.TaskStatus[t] == state.Pending }
	cancelledNow := func(t int) bool { return x.s.TaskStatus[t] == state.Cancelled }
	for slot := 0; ; slot++ {
		for _, e := range x.ends {
			if e.slot == slot {
				m.end(e.task, e.ways[e.way])
			}
		}
		m.follow(open)
		if slot == len(x.commands) {
			break
		}
		last = last || slot == len(x.commands)-1
		if err := m.command(x.commands[slot], cancelledNow); err != nil {
			x.closest = err.Error()
			return nil
		}
		m.follow(open)
	}
	if x.closest = m.differs(x.s); x.closest != "" {
		return nil
	}
	return m
}
