package sim

import (
	"time"

	"jobq/core/state"
)

// guardianTime is how long after a thaw or a death a command may still run.
const guardianTime = time.Second

// started is the beginning of a command: the oracles of what may run.
func (l *ledger) started(c *command) {
	w := l.w
	w.tell(c.p, "command started", recordKey(c.key)+startText(c.start))
	a := l.attempt(c.key)
	if c.stale() {
		// Its worker stood still since the claim: the guardian ends it within a
		// second, whatever became of the attempt meanwhile.
		w.s.after(guardianTime+time.Millisecond, nil, func() {
			if c.how == running && c.wp.machine.frozenUntil < w.s.now-guardianTime {
				w.violate("one live run", "%s still runs %s, which it claimed too long ago", c.p.name, recordKey(c.key))
			}
		})
		return
	}
	for _, earlier := range a.starts {
		l.secondStart(a, earlier, c)
	}
	if len(a.starts) > 0 {
		w.path(PathTakeOver)
	}
	a.starts = append(a.starts, c)
	if limit := w.crashLimit(); a.crashes >= limit {
		w.violate("the crash limit holds", "%s starts %s after %d starts were lost, the limit is %d", c.p.name, recordKey(c.key), a.crashes, limit)
	}
	l.mayStart(c)
}

func startText(n uint32) string { return "." + string(rune('0'+n%10)) }

// secondStart judges a start of an attempt that was started before.
func (l *ledger) secondStart(a *attempt, earlier, c *command) {
	if earlier.wp.foreign || c.wp.foreign {
		return
	}
	w := l.w
	if earlier.how == running {
		if earlier.wp.machine.frozenUntil <= w.s.now && (!earlier.p.dead || w.s.now-earlier.endedAt > guardianTime) {
			w.violate("one live run", "%s starts %s while %s still runs it", c.p.name, recordKey(c.key), earlier.p.name)
			return
		}
		// It stands still with its machine and must end soon after the thaw.
		thaw := max(earlier.wp.machine.frozenUntil-w.s.now, 0)
		w.s.after(thaw+guardianTime+time.Millisecond, nil, func() {
			if earlier.how == running && earlier.wp.machine.frozenUntil < w.s.now-guardianTime {
				w.violate("one live run", "%s still runs %s after its thaw, which %s took over", earlier.p.name, recordKey(c.key), c.p.name)
			}
		})
		return
	}
	if earlier.start >= c.start {
		w.violate("starts increase", "start %d of %s comes after start %d", c.start, recordKey(c.key), earlier.start)
	}
	if a.ended != nil {
		w.violate("no second run", "%s starts %s, whose record says that it has ended", c.p.name, recordKey(c.key))
	}
	if earlier.how == byItself && !earlier.excused {
		w.violate("no second run", "%s starts %s again, which %s had finished without a crash", c.p.name, recordKey(c.key), earlier.p.name)
	}
}

// mayStart judges whether the policy lets a command start at all: the stored
// state must have its attempt.
func (l *ledger) mayStart(c *command) {
	wf := l.workflows[c.key.Workflow]
	if wf == nil || wf.s == nil {
		l.w.violate("started as planned", "%s starts %s of a workflow that has no state", c.p.name, recordKey(c.key))
		return
	}
	if wf.s.Status == state.WorkflowPurged || wf.life > 1 {
		return
	}
	t := wf.plan.task(c.key.Task)
	if t < 0 || wf.s.Attempt[t] < c.key.Attempt {
		l.w.violate("started as planned", "%s starts %s, which no state has", c.p.name, recordKey(c.key))
		return
	}
	if wf.cancelled < 0 || c.wp.foreign {
		return
	}
	read, ok := l.rows[rowKey{c.p, c.key.Workflow}]
	if !ok || read > wf.cancelled {
		l.w.violate("no start after a cancel", "%s starts %s at %v, the workflow was cancelled at %v and its row read at %v",
			c.p.name, recordKey(c.key), l.w.s.now, wf.cancelled, read)
	}
}

func (w *World) crashLimit() int {
	if w.o.CrashLimit > 0 {
		return w.o.CrashLimit
	}
	return 20
}

// cancelTime is how long a command of a healthy worker may go on after a cancel:
// one look at the row and the grace.
const cancelTime = 2 * time.Minute

// endedByItself judges a command that nobody stopped.
func (l *ledger) endedByItself(c *command) {
	const excuses = FaultSet(1<<Pause | 1<<MachineFreeze | 1<<Slow | 1<<Throttle | 1<<FailBefore | 1<<AnswerLost)
	wf := l.workflows[c.key.Workflow]
	if wf == nil || wf.s == nil || wf.cancelled < 0 || wf.life > 1 || l.w.o.Faults&excuses != 0 || c.wp.foreign || c.p.dead {
		return
	}
	if t := wf.plan.task(c.key.Task); t < 0 || wf.s.Attempt[t] != c.key.Attempt {
		return
	}
	if since := max(wf.cancelled, c.began); l.w.s.now-since > cancelTime {
		l.w.violate("a cancel reaches commands", "%s went on for %v after its workflow was cancelled", recordKey(c.key), l.w.s.now-since)
	}
}
