package sim

import (
	"jobq/core/dag"
	"jobq/core/state"
)

// saved is a state that was stored: the oracles of what a state may become.
func (l *ledger) saved(p *process, id string, doc, stored []byte) {
	w := l.w
	s, err := state.Decode(doc)
	if err != nil {
		w.violate("states decode", "%s stored a state of %s that cannot be read: %v", p.name, id, err)
		return
	}
	wf := l.workflow(id)
	if w.recording() {
		w.tellState(p, wf, s)
	}
	before := wf.s
	wf.s, p.began = s, true
	if before == nil || !looksLike(before, s) {
		wf.shown = s.Version
	}
	if s.Status == state.WorkflowPurged {
		for _, c := range s.Commands {
			l.remembered(c)
		}
		if before != nil && (s.Epoch < before.Epoch || s.HighestAttempt < before.HighestAttempt) {
			w.violate("lives are apart", "the tombstone of %s has epoch %d and attempt %d, its state had %d and %d",
				id, s.Epoch, s.HighestAttempt, before.Epoch, before.HighestAttempt)
		}
		wf.cancelled, wf.column = -1, false
		return
	}
	l.columns(p, wf, stored)
	if before == nil || before.Status == state.WorkflowPurged {
		l.begun(wf, before, s)
		before = nil
	}
	if len(doc) > stateBound(s) {
		w.violate("states stay small", "the state of %s has %d bytes", id, len(doc))
	}
	for t, out := range s.Outputs {
		if out.Kind == state.InlineOutput && len(out.Text) > state.MaxInlineOutput {
			w.violate("states stay small", "the state of %s keeps %d bytes of output of task %d", id, len(out.Text), t)
		}
	}
	switch {
	case !s.CancelRequested:
		wf.cancelled = -1
	case wf.cancelled < 0:
		wf.cancelled = w.s.now
	}
	if before != nil {
		l.moved(p, wf, before, s)
	}
	l.owes(p, wf, before, s)
	if wf.endedAt = 0; s.Status.Ended() {
		wf.endedAt = w.s.now
	}
	if len(w.Violations) == 0 {
		l.explain(p, wf, before, s)
	}
}

// stateBound is what a state may have in bytes.
func stateBound(s *state.Workflow) int {
	return 8<<10 + 120*len(s.TaskStatus) + state.MaxInlineTotal + state.MaxTextTotal + 512*len(s.Commands)
}

// begun is the first state of a life.
func (l *ledger) begun(wf *workflow, before, s *state.Workflow) {
	wf.life++
	wf.since, wf.born = l.w.s.now, l.moment()
	d := l.definitions[s.Definition]
	if d == nil {
		l.w.violate("states fit their definition", "the state of %s names a definition that nobody submitted", wf.id)
		d = &dag.Definition{}
	}
	wf.plan, wf.model = newReference(d), newModel(d)
	if before != nil && (s.Epoch <= before.Epoch || s.BornEpoch != s.Epoch && s.BornEpoch <= before.BornEpoch) {
		l.w.violate("lives are apart", "%s begins life %d at epoch %d, the one before had %d", wf.id, wf.life, s.Epoch, before.Epoch)
	}
	for t, n := range s.Attempt {
		if before != nil && n > 0 && n < before.HighestAttempt {
			l.w.violate("attempts increase", "%s begins a life with attempt %d of task %d, the highest was %d", wf.id, n, t, before.HighestAttempt)
		}
	}
}

// moved compares a state with the one that it replaces.
func (l *ledger) moved(p *process, wf *workflow, before, s *state.Workflow) {
	w := l.w
	if s.Version != before.Version+1 {
		w.violate("versions count", "%s stored version %d of %s over version %d", p.name, s.Version, wf.id, before.Version)
	}
	if s.Epoch < before.Epoch {
		w.violate("versions count", "%s stored epoch %d of %s over epoch %d", p.name, s.Epoch, wf.id, before.Epoch)
	}
	l.active(wf, s)
	for t := range s.TaskStatus {
		name := wf.plan.d.Tasks[t].Name
		if s.Attempt[t] < before.Attempt[t] || s.Attempt[t] > before.Attempt[t]+1 && s.Epoch == before.Epoch {
			w.violate("attempts increase", "%s/%s went from attempt %d to %d", wf.id, name, before.Attempt[t], s.Attempt[t])
		}
		if before.TaskStatus[t].Terminal() && s.TaskStatus[t] != before.TaskStatus[t] && s.Epoch == before.Epoch {
			w.violate("an end is final", "%s/%s went from %s to %s without a command", wf.id, name, before.TaskStatus[t], s.TaskStatus[t])
		}
		if before.TaskStatus[t] == state.Completed && s.TaskStatus[t] == state.Completed && s.Epoch == before.Epoch &&
			before.Outputs[int32(t)] != s.Outputs[int32(t)] {
			w.violate("an end is final", "the output of %s/%s changed", wf.id, name)
		}
	}
}

// active holds a state to its limits: slots, and a cancel that leaves nobody
// waiting.
func (l *ledger) active(wf *workflow, s *state.Workflow) {
	active, parked := 0, 0
	for t, status := range s.TaskStatus {
		switch {
		case status.Numbered():
			active++
		case status == state.Parked && s.NotBefore[int32(t)] == 0:
			parked++
		}
		if s.CancelRequested && (status == state.Pending || status == state.Parked) {
			l.w.violate("a cancel leaves nobody waiting", "%s is being cancelled and %s waits", wf.id, wf.plan.d.Tasks[t].Name)
		}
	}
	limit := wf.plan.d.MaxParallelism
	if limit > 0 && active > limit {
		l.w.violate("slots are kept", "%s has %d tasks under way, the limit is %d", wf.id, active, limit)
	}
	if parked > 0 && (limit == 0 || active < limit) {
		l.w.violate("slots are used", "%s has %d tasks waiting and a free slot", wf.id, parked)
	}
}
