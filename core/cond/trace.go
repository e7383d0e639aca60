package cond

// Bounds of a trace.
const (
	traceEntries = 32
	traceBytes   = 1024
)

// tracer collects the values that a condition read.
type tracer struct {
	entries []TraceEntry
	seen    map[string]bool
	bytes   int
	full    bool
}

// add keeps an entry if there is room for it; the first that does not fit ends
// the trace, so that what is kept is always the beginning.
func (t *tracer) add(entry TraceEntry) {
	if t.full || t.seen[entry.Reference] {
		return
	}
	t.seen[entry.Reference] = true
	entry.Reference = cut(entry.Reference, sourceLength)
	size := len(entry.Reference) + len(entry.Value) + len(entry.Problem)
	if len(t.entries) == traceEntries || t.bytes+size > traceBytes {
		t.full = true
		return
	}
	t.bytes += size
	t.entries = append(t.entries, entry)
}

// trace lists the values of the references that were evaluated, first those to
// one parent, then those of aggregates, and says how many it left out.
func (e *evaluation) trace() ([]TraceEntry, int) {
	t := &tracer{seen: map[string]bool{}}
	total := 0
	counted := map[string]bool{}
	for _, r := range e.expression.references {
		s := e.resolved[r.slot]
		evaluated := e.stamps[r.id] > 0
		if s.pattern {
			evaluated = e.tallies[r.within.slot] != nil
		}
		if spelling := r.String(); evaluated && !counted[spelling] {
			counted[spelling] = true
			total += len(s.members)
		}
		if evaluated && !s.pattern {
			t.add(e.entry(r, s.members[0], e.values[r.slot][0]))
		}
	}
	for _, a := range e.expression.aggregates {
		if e.tallies[a.slot] != nil {
			e.traceAggregate(t, a)
		}
	}
	return t.entries, total - len(t.entries)
}

// traceAggregate adds the inputs that decided an aggregate, then the others.
func (e *evaluation) traceAggregate(t *tracer, a *aggregate) {
	verdicts := e.tallies[a.slot].verdicts
	for _, deciding := range []bool{true, false} {
		for index, came := range verdicts {
			if t.full {
				return
			}
			if a.decides(came) != deciding {
				continue
			}
			for _, entry := range e.entries(a, index) {
				t.add(entry)
			}
		}
	}
}

// decides reports whether an input with this verdict is one that explains the
// value of the aggregate: one that fails where all should not, one that does not
// fail where they are looked for.
func (a *aggregate) decides(came verdict) bool {
	lookedFor := a.function == anyOf || a.function == count
	return (came == satisfied) == lookedFor
}

// entries are the values that the patterns of an aggregate read from one input.
func (e *evaluation) entries(a *aggregate, index int) []TraceEntry {
	var entries []TraceEntry
	for _, r := range a.references {
		if s := e.resolved[r.slot]; s.pattern {
			entries = append(entries, e.entry(r, s.members[index], e.values[r.slot][index]))
		}
	}
	return entries
}

// entry is the value of one reference for one parent. The reference is not cut
// yet: cut ones can't be told apart.
func (e *evaluation) entry(r *reference, parent int, value any) TraceEntry {
	entry := TraceEntry{Parent: e.names[parent], Reference: r.String()}
	if e.resolved[r.slot].pattern {
		entry.Reference = r.spell(entry.Parent, false)
	}
	if problem, ok := value.(*failure); ok {
		entry.Problem = cut(problem.brief, sourceLength)
	} else {
		entry.Value = render(value, valueLength)
	}
	return entry
}
