package sim

import (
	"slices"
	"time"

	"jobq/core/msg"
	"jobq/core/port"
)

// fewWakes is how many wakes that one process put may be on their way to one
// workflow. It puts none while one comes in time. More than one is there only where
// it wanted one sooner: each of the nine delays from a second to five minutes, for
// each of two coordinators in a process, and rounds that decide at the same time.
const fewWakes = 20

type wakeKey struct {
	p  *process
	wf string
}

// pendingWake is a wake that has not come yet.
type pendingWake struct {
	id  string
	due time.Duration
}

// woken notes a wake that the inbox took. What multiplies while a workflow cannot
// be read fills the inbox.
func (l *ledger) woken(p *process, wf string, m port.Message) {
	now := l.w.s.now
	key := wakeKey{p, wf}
	pending := slices.DeleteFunc(l.wakes[key], func(w pendingWake) bool { return w.due <= now })
	l.wakes[key] = append(pending, pendingWake{m.ID, now + m.Delay})
	if n := len(l.wakes[key]); n > fewWakes {
		l.w.violate("wakes are few", "%s has %d wakes for %s on their way", p.name, n, wf)
	}
}

// unanswered takes back m where it is a wake: its sender was not told that it was
// taken, and sends another.
func (l *ledger) unanswered(p *process, m port.Message) {
	if in, err := msg.DecodeInbox(m.Body); err == nil && in.Wake != nil {
		key := wakeKey{p, in.Wake.Workflow}
		l.wakes[key] = slices.DeleteFunc(l.wakes[key], func(w pendingWake) bool { return w.id == m.ID })
	}
}
