package guard

import "time"

// entry is what the guardian knows of one run.
type entry struct {
	Group
	// doomed is a run that is being killed, for good: a beat does not save it.
	doomed bool
}

// ledger holds the runs of one worker by run id. It decides who has to die; it
// reads no clock and kills nobody.
type ledger map[string]*entry

// apply takes one message at the moment now.
func (l ledger) apply(m message, now Moment) {
	g := m.group
	g.Sent = min(g.Sent, now) // a beat from the future would guard nothing
	known := l[g.RunID]
	switch m.kind {
	case add:
		l[g.RunID] = &entry{Group: g, doomed: known != nil && known.doomed}
	case beat:
		if known != nil {
			known.Sent = max(known.Sent, g.Sent)
		}
	case remove:
		delete(l, g.RunID)
	}
}

// expire dooms every run whose deadline has come and calls report for each.
func (l ledger) expire(now Moment, report func(Group)) {
	for _, e := range l {
		if at, ok := e.deadline(); ok && !e.doomed && now >= at {
			e.doomed = true
			report(e.Group)
		}
	}
}

// expireAll dooms every run.
func (l ledger) expireAll() {
	for _, e := range l {
		e.doomed = true
	}
}

// doomed returns the runs that are to be killed.
func (l ledger) doomed() []Group {
	var all []Group
	for _, e := range l {
		if e.doomed {
			all = append(all, e.Group)
		}
	}
	return all
}

// wait returns the time until the next deadline, if there is one.
func (l ledger) wait(now Moment) (time.Duration, bool) {
	var next Moment
	found := false
	for _, e := range l {
		if at, ok := e.deadline(); ok && !e.doomed && (!found || at < next) {
			next, found = at, true
		}
	}
	return max(time.Duration(next-now), 0), found
}
