package sim

import (
	"slices"
	"time"

	"jobq/core/dag"
)

// Shrink looks for a smaller history that breaks the same promise: fewer
// workflows, tasks, commands, faults and processes, a shorter storm. It plays at
// most tries histories and returns the smallest that it found.
func Shrink(f Failure, tries int) Failure {
	p := &pool{}
	defer p.close()
	best := f
	for shrunk := true; shrunk; {
		shrunk = false
		for _, c := range smaller(best.Config) {
			if tries--; tries < 0 {
				return best
			}
			w := run(c, p)
			at := slices.IndexFunc(w.Violations, func(v Violation) bool { return v.Oracle == best.Violation.Oracle })
			if at < 0 {
				continue
			}
			best = Failure{w.o, w.Violations[at]}
			shrunk = true
			break
		}
	}
	return best
}

// smaller lists what is one step smaller than c, the largest steps first.
func smaller(c Config) []Config {
	var all []Config
	add := func(change func(*Config)) {
		s := c
		s.orders = slices.Clone(c.orders)
		change(&s)
		all = append(all, s)
	}
	for i := range c.Workloads {
		if len(c.Workloads) > 1 {
			add(func(s *Config) { s.Workloads = slices.Delete(slices.Clone(c.Workloads), i, i+1) })
		}
	}
	for f := range faultKinds {
		if c.Faults.Has(f) {
			add(func(s *Config) { s.Faults = c.Faults.Without(f) })
		}
	}
	if c.Commands > 0 {
		add(func(s *Config) { s.Commands = 0 })
		add(func(s *Config) { s.Commands = c.Commands - 1 })
	}
	if c.Coordinators > 1 {
		add(func(s *Config) { s.Coordinators = 1 })
	}
	if c.Workers > 1 {
		add(func(s *Config) { s.Workers = 1 })
	}
	if c.Slots > 1 {
		add(func(s *Config) { s.Slots = 1 })
	}
	if c.Network != Instant {
		add(func(s *Config) { s.Network = c.Network - 1 })
	}
	if c.Storm > time.Minute {
		add(func(s *Config) { s.Storm = c.Storm / 2 })
	}
	for i := range c.Workloads {
		for t := len(c.Workloads[i].Definition.Tasks) - 1; t >= 0; t-- {
			if d := without(c.Workloads[i].Definition, t); d != nil {
				add(func(s *Config) {
					s.Workloads = slices.Clone(c.Workloads)
					s.Workloads[i].Definition = d
				})
			}
		}
	}
	return all
}

// without returns d less the task at place t, nil where another hangs on it.
func without(d *dag.Definition, t int) *dag.Definition {
	name := d.Tasks[t].Name
	used := slices.ContainsFunc(d.Tasks, func(o dag.Task) bool { return slices.Contains(o.DependsOn, name) })
	if used || len(d.Tasks) == 1 {
		return nil
	}
	c := *d
	c.Tasks = slices.Delete(slices.Clone(d.Tasks), t, t+1)
	return &c
}
