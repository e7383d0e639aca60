package sim

import (
	"time"

	"jobq/core/msg"
	"jobq/core/port"
	"jobq/core/state"
)

// stepTime is how long the next step may take in quiet: from the delivery of a
// report to the state that has it, and from that state to the message of the
// next task.
const stepTime = 5 * time.Second

// calmFor is how long after the storm a call of its time may still be on its way:
// the longest travel and the longest pause that a throttled one was told.
const calmFor = 4 * time.Minute

// thawTime is how long after a pause what a process began before it may still be
// repeated: it counts the locks of its messages from then.
const thawTime = time.Minute

// prompt reports whether steps of p that began at since must be prompt: nothing
// of the storm is left, the network is even, p can read every state and did not
// stand still.
func (l *ledger) prompt(p *process, since time.Duration) bool {
	w := l.w
	const lasting = FaultSet(1<<Slow | 1<<Throttle | 1<<Pause | 1<<LateEffect | 1<<OutputsDown | 1<<Duplicate)
	quiet := w.o.Storm
	if w.o.Faults&lasting != 0 {
		quiet += calmFor
	}
	awake := p.frozenUntil == 0 || p.frozenUntil+thawTime <= since
	able := p.role == coordinatorRole && !p.dead && (p.newer || !w.o.Faults.Has(NewFormat))
	return since >= quiet && awake && able && w.o.Network != Ragged && w.o.script == nil
}

// due calls look once the time for a step of p is over, unless p ended or stood
// still meanwhile.
func (l *ledger) due(p *process, look func()) {
	l.w.Counts.Steps++
	began := l.w.s.now
	l.w.s.after(stepTime, nil, func() {
		if !p.dead && p.frozenUntil <= began {
			look()
		}
	})
}

// delivered is a message that a coordinator received with a call that it began
// at asked.
func (l *ledger) delivered(p *process, queue string, d port.Delivery, asked time.Duration) {
	if queue != inbox || !l.prompt(p, asked) {
		return
	}
	in, err := msg.DecodeInbox(d.Body)
	if err != nil || in.Completion == nil {
		return
	}
	c := in.Completion
	if !l.awaits(c) {
		return
	}
	l.due(p, func() {
		if l.awaits(c) {
			l.w.violate("steps are prompt", "%s received the report of %s/%s/%d %v ago and no state has it",
				p.name, c.Workflow, c.Task, c.Attempt, stepTime)
		}
	})
}

// awaits reports whether the stored state still has the attempt of c under way.
func (l *ledger) awaits(c *msg.Completion) bool {
	wf := l.workflows[c.Workflow]
	if wf == nil || wf.s == nil || wf.s.Status == state.WorkflowPurged {
		return false
	}
	t := wf.plan.task(c.Task)
	return t >= 0 && wf.s.TaskStatus[t].Numbered() && wf.s.Attempt[t] == max(c.Attempt, 1)
}

// owes notes the attempts that a stored state began: their messages must follow.
func (l *ledger) owes(p *process, wf *workflow, before, s *state.Workflow) {
	if !l.prompt(p, l.w.s.now) {
		return
	}
	for t, n := range s.Attempt {
		if !s.TaskStatus[t].Numbered() || before != nil && before.Attempt[t] == n {
			continue
		}
		key := port.RecordKey{Workflow: wf.id, Task: wf.plan.d.Tasks[t].Name, Attempt: n}
		l.due(p, func() {
			if wf.s == s && l.attempt(key).sends == 0 {
				l.w.violate("steps are prompt", "%s stored %s %v ago and nobody sent it", p.name, recordKey(key), stepTime)
			}
		})
	}
}
