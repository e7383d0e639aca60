package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"jobq/core/dag"
)

// Crash is one part of the exhaustive campaign: one process of a kind is struck
// at its k-th store call, for every k.
type Crash struct {
	Name string
	// Tasks bounds the graphs.
	Tasks int
	role  role
	// name is how the name of the process begins.
	name string
	// order is a command that is given in the middle, "" for none.
	order string
	// hosted lets a function host call the coordinator for two workflows at once.
	hosted bool
}

// Crashes lists the parts, for graphs of up to most tasks.
func Crashes(most int) []Crash {
	return []Crash{
		{Name: "coordinator", Tasks: most, role: coordinatorRole, name: "coordinator-1.1"},
		{Name: "worker", Tasks: most, role: workerRole, name: "worker-1.1"},
		{Name: "submit", Tasks: most, role: callerRole, name: "caller-submit-w.1"},
		{Name: "cancel", Tasks: most, role: callerRole, name: "caller-cancel.1", order: "cancel"},
		{Name: "coordinator during a cancel", Tasks: most, role: coordinatorRole, name: "coordinator-1.1", order: "cancel"},
		{Name: "retry", Tasks: most, role: callerRole, name: "caller-retry.1", order: "retry"},
		{Name: "coordinator during a retry", Tasks: most, role: coordinatorRole, name: "coordinator-1.1", order: "retry"},
		{Name: "coordinator during the cancel of a script", Tasks: min(most, 3), role: coordinatorRole, name: "coordinator-1.1", order: "flag"},
		{Name: "purge", Tasks: min(most, 3), role: callerRole, name: "caller-purge.1", order: "again"},
		{Name: "submit after a purge", Tasks: min(most, 3), role: callerRole, name: "caller-again.1", order: "again"},
		{Name: "function host", Tasks: min(most, 2), role: coordinatorRole, name: "coordinator-1.1", hosted: true},
	}
}

// struck are the faults that each call meets. A stop before a call is one after
// the call before it. A function that stands still has more in its hands than the
// message that it is at.
func (c Crash) struck() []Fault {
	if c.hosted {
		return []Fault{StopAfter, AnswerLost, Pause}
	}
	return []Fault{StopAfter, AnswerLost}
}

// Run plays every history of the part.
func (c Crash) Run(personality Personality, now func() time.Time, progress func(Summary)) Summary {
	var sum Summary
	p := &pool{}
	defer p.close()
	began := now()
	for n := 1; n <= c.Tasks; n++ {
		for _, g := range graphsOf(n) {
			for _, policy := range g.policies() {
				for pattern := range 1 << n {
					c.everyCall(personality, g.small(n, policy, pattern), p, &sum)
					sum.Took = now().Sub(began)
					if progress != nil {
						progress(sum)
					}
					if len(sum.Failures) > 0 {
						return sum
					}
				}
			}
		}
	}
	return sum
}

// policies are those that make a difference for g.
func (g edges) policies() []dag.DepPolicy {
	switch all := smallPolicies(); {
	case g == 0:
		return all[:1]
	case g.joins(3):
		return all
	case g.joins(2):
		return all[:3]
	default:
		return []dag.DepPolicy{all[0], all[2]}
	}
}

// everyCall strikes at every call of one workload.
func (c Crash) everyCall(personality Personality, wl Workload, p *pool, sum *Summary) {
	for k := 1; ; k++ {
		for _, f := range c.struck() {
			reached, calls := false, 0
			config := c.config(personality, wl)
			config.What = fmt.Sprintf("%s of %s at call %d", f, c.name, k)
			config.script = func(p *process, _ op, _ string, empty bool) Fault {
				if p.name != c.name || empty {
					return none
				}
				if calls++; calls != k {
					return none
				}
				reached = true
				return f
			}
			sum.add(run(config, p))
			if !reached {
				return
			}
			if len(sum.Failures) > 0 {
				return
			}
		}
	}
}

// config is a world in which nothing but the script goes wrong and nothing is
// drawn but identifiers.
func (c Crash) config(personality Personality, wl Workload) Config {
	config := Config{
		Personality: personality, Network: Instant, Coordinators: 1, Workers: 1, Slots: 2,
		Storm: 20 * time.Second, Workloads: []Workload{wl}, steady: true,
		choose: func([]*actor) int { return 0 },
	}
	if c.hosted {
		twin := wl
		twin.ID = "v"
		config.Hosted, config.Workloads = true, []Workload{wl, twin}
	}
	if c.order != "" {
		at := 3 * time.Second
		switch c.order {
		case "retry":
			at = 12 * time.Second
		case "flag": // the sweep alone sees what scripts write
			config.Sweeps, config.sweepEvery = true, 3*time.Second
		case "again":
			config.orders = []order{{at: 12 * time.Second, kind: "purge", wf: wl.ID, id: "purge"}, {at: 14 * time.Second, kind: "submit", wf: wl.ID, id: "again"}}
			return config
		}
		config.orders = []order{{at: at, kind: c.order, wf: wl.ID, id: c.order}}
	}
	return config
}

// Race is the other part: two coordinators with warm caches, and every way to
// let one go on for a while, then the other, with up to three changes.
type Race struct {
	Name     string
	Workload Workload
	orders   []order
	// again delivers the completion of a task once more.
	again string
}

// Races lists the cases.
func Races() []Race {
	diamond := edges(1<<1 | 1<<2 | 1<<(4+3) | 1<<(8+3))
	join := edges(1<<3 | 1<<(4+3) | 1<<(8+3))
	chain := edges(1 << 1)
	return []Race{
		{Name: "diamond", Workload: diamond.small(4, dag.DepPolicy{}, 0)},
		{Name: "join of three parents", Workload: join.small(4, dag.DepPolicy{}, 0)},
		{Name: "chain with a retry", Workload: chain.small(2, dag.DepPolicy{}, 2), orders: []order{{at: 8 * time.Second, kind: "retry", wf: "w", id: "retry"}}},
		{Name: "chain with a cancel", Workload: chain.small(2, dag.DepPolicy{}, 0), orders: []order{{at: 2 * time.Second, kind: "cancel", wf: "w", id: "cancel"}}},
		{Name: "chain purged and submitted again", Workload: chain.small(2, dag.DepPolicy{}, 0), orders: []order{
			{at: 7 * time.Second, kind: "purge", wf: "w", id: "purge"}, {at: 9 * time.Second, kind: "submit", wf: "w", id: "again"},
		}},
		{Name: "chain with a repeated completion", Workload: chain.small(2, dag.DepPolicy{}, 0), again: "A"},
	}
}

// Run plays every interleaving.
func (r Race) Run(personality Personality, now func() time.Time, progress func(Summary)) Summary {
	var sum Summary
	p := &pool{}
	defer p.close()
	began := now()
	calls := r.play(personality, nil, p, &sum)
	for a := 0; a < calls; a++ {
		for b := a; b < calls; b++ {
			for c := b; c < calls; c++ {
				// Equal places are fewer changes.
				r.play(personality, slices.Compact([]int{a, b, c}), p, &sum)
				if sum.Took = now().Sub(began); progress != nil {
					progress(sum)
				}
				if len(sum.Failures) > 0 {
					return sum
				}
			}
		}
	}
	return sum
}

// play lets the favour change at the given calls of the racing processes, and
// returns how many calls they made.
func (r Race) play(personality Personality, changes []int, p *pool, sum *Summary) int {
	calls := 0
	config := Config{
		Personality: personality, Network: Instant, Coordinators: 2, Workers: 1, Slots: 4, Seed: 16, // a batch of one message
		Storm: 20 * time.Second, Workloads: []Workload{r.Workload}, steady: true, orders: slices.Clone(r.orders),
		again: r.again, What: fmt.Sprintf("%s, changes at %v", r.Name, changes),
	}
	config.script = func(p *process, o op, _ string, _ bool) Fault {
		if racing(p) && o != opReceive && o != opAcquire {
			calls++
		}
		return none
	}
	config.choose = func(ready []*actor) int { return favoured(ready, changes, calls) }
	sum.add(run(config, p))
	return calls
}

// racing reports whether p is one of those whose calls are interleaved.
func racing(p *process) bool {
	return p.role == coordinatorRole || p.role == callerRole && !strings.HasPrefix(p.name, "caller-submit-")
}

// favoured picks the next actor: everybody else first, then the process whose
// turn it is.
func favoured(ready []*actor, changes []int, calls int) int {
	turn := 0
	for _, at := range changes {
		if calls > at {
			turn++
		}
	}
	best := -1
	for i, a := range ready {
		switch {
		case !racing(a.proc):
			return i
		case best < 0 || a.proc.id%2 == turn%2 && ready[best].proc.id%2 != turn%2:
			best = i
		}
	}
	return best
}
