package testkit

import (
	"fmt"
	"slices"
	"sync"

	"jobq/core/coord"
	"jobq/store/wrap/faults"
)

// Node is one coordinator process.
type Node struct {
	*coord.Coordinator
	Process *faults.Process

	mu    sync.Mutex
	plans []faults.Decide
}

// Plan adds a fault to those that wait to happen.
func (n *Node) Plan(d faults.Decide) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.plans = append(n.plans, d)
}

func (n *Node) decide(c faults.Call) faults.Fate {
	n.mu.Lock()
	defer n.mu.Unlock()
	return faults.First(n.plans...)(c)
}

// Start returns a coordinator process with a cold cache and the faults of plans.
func (w *World) Start(name string, plans ...faults.Decide) *Node {
	n := &Node{plans: slices.Clone(plans)}
	n.Process = faults.New(w.open(name), w.Scheduler, n.decide)
	o := w.Options
	o.Logger = w.Logger.With("process", name)
	o.Random = w.random
	n.Coordinator = coord.New(n.Process.Port(), w.Scheduler, o)
	return n
}

// random is different for every call in one world and the same in every run.
func (w *World) random() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.draws++
	return w.draws * 0x9E3779B97F4A7C15
}

func attemptName(task string, attempt uint32) string { return fmt.Sprintf("%s#%d", task, attempt) }
