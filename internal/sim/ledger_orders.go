package sim

import (
	"fmt"
	"strings"
)

// give notes that a caller gives o.
func (l *ledger) give(o *order) {
	if o.given == 0 {
		o.given = l.moment()
	}
}

// leave notes that nobody will give o again, whatever became of it.
func (l *ledger) leave(o *order) {
	o.left = l.moment()
	if o.began {
		l.harm(o.wf)
	}
}

// moment returns a number above all that it returned before.
func (l *ledger) moment() uint64 {
	l.moments++
	return l.moments
}

// acknowledge notes that the caller of o was told of success. A submission has no id
// in the state: it stands at the epoch of the life that it began or found.
func (l *ledger) acknowledge(o *order) {
	o.acknowledged = true
	if o.kind != "submit" {
		return
	}
	wf := l.workflow(o.wf)
	wf.acknowledged = true
	if wf.s != nil {
		o.applied, o.epoch, o.joined = true, wf.s.Epoch, wf.born < o.given
	}
}

// nextID returns an id for what the caller of o gives next.
func (l *ledger) nextID(o *order) string {
	first, _, _ := strings.Cut(o.id, "~")
	return fmt.Sprintf("%s~%d", first, len(l.orders))
}

// queued notes that the inbox took the command of this id.
func (l *ledger) queued(id string) {
	l.w.path(PathQueued)
	if o := l.order(id); o != nil {
		o.queued = true
		l.consider(l.workflow(o.wf), o)
	}
}

// consider notes that o, whose copy is in the inbox, would be refused now: of that
// no state keeps a trace.
func (l *ledger) consider(wf *workflow, o *order) {
	if o.wf == wf.id && o.queued && wf.model != nil {
		o.refusable = o.refusable || wf.model.refuses(o)
	}
}

// unqueue notes that the copy of a command of this id is lost, or every copy where
// id is empty.
func (l *ledger) unqueue(id string) {
	for _, o := range l.orders {
		o.lost = o.lost || o.queued && (id == "" || o.id == id)
	}
}

// judgeOrders holds answers to what the states remember.
func (l *ledger) judgeOrders() {
	for _, o := range l.orders {
		if o.kind == "submit" || o.kind == "flag" || o.kind == "rubbish" {
			continue
		}
		if o.acknowledged && !o.applied {
			l.w.violate("answers are true", "%s was acknowledged and no state has it", o)
		}
		if o.refused && o.applied {
			l.w.violate("answers are true", "%s was refused and a state has it", o)
		}
		if o.queued && !o.lost && !o.kept && !o.refusable && !l.purged(o.wf) {
			l.w.violate("what is queued is done", "the inbox took %s, which could be done at any time since, and no state has it", o)
		}
		l.judgeLater(o)
	}
}

// judgeLater wants an order that its caller left without an answer not to be carried
// out after one that was given later and acknowledged. The copy in the inbox is not
// bound: its caller was told of it. A submission that found its workflow is no command,
// but no purge may take that away.
func (l *ledger) judgeLater(left *order) {
	if left.left == 0 || !left.applied || left.queued {
		return
	}
	for _, o := range l.orders {
		if o.joined && left.kind != "purge" {
			continue
		}
		if o.wf == left.wf && o.given > left.left && o.acknowledged && o.applied && o.epoch < left.epoch {
			l.w.violate("what was left is not done later", "%s, which its caller had left, began epoch %d after %s had begun epoch %d", left, left.epoch, o, o.epoch)
		}
	}
}
