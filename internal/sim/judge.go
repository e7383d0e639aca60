package sim

import (
	"context"

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
			if w.o.Sweeps {
				l.judgeRow(wf)
			}
		}
	}
	l.judgeOrders()
	for _, cp := range w.coordinators {
		if !cp.p.dead {
			w.harvest(cp.c)
		}
	}
}

// judgeRow compares the index with the state.
func (l *ledger) judgeRow(wf *workflow) {
	row, err := l.w.admin.Index.Get(context.Background(), wf.id)
	switch {
	case err != nil:
		l.w.violate("the index agrees", "workflow %s is %s and has no row: %v", wf.id, wf.s.Status, err)
	case row.Status != wf.s.Status.String():
		l.w.violate("the index agrees", "workflow %s is %s, its row says %s (version %d, state %d)", wf.id, wf.s.Status, row.Status, row.StateVersion, wf.s.Version)
	case wf.s.Status != state.WorkflowPurged && row.Epoch != wf.s.Epoch:
		l.w.violate("the index agrees", "workflow %s has epoch %d, its row %d", wf.id, wf.s.Epoch, row.Epoch)
	}
}

// judgeOrders holds answers to what the states remember.
func (l *ledger) judgeOrders() {
	for _, o := range l.orders {
		if o.kind == "submit" {
			continue
		}
		if o.acknowledged && !o.applied {
			l.w.violate("answers are true", "%s was acknowledged and no state has it", o)
		}
		if o.refused && o.applied {
			l.w.violate("answers are true", "%s was refused and a state has it", o)
		}
	}
}
