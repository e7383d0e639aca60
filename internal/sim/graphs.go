package sim

import (
	"encoding/json"
	"fmt"
	"math/bits"
	"slices"
	"time"

	"jobq/core/dag"
)

// edges is a graph of up to four tasks: bit 4*p+c is the edge from p to c, and
// p is below c.
type edges uint16

// graphsOf returns one graph of n tasks for each shape.
func graphsOf(n int) []edges {
	var places []edges
	for p := range n {
		for c := p + 1; c < n; c++ {
			places = append(places, 1<<(4*p+c))
		}
	}
	known := map[edges]bool{}
	var all []edges
	for subset := range 1 << len(places) {
		var g edges
		for i, place := range places {
			if subset>>i&1 == 1 {
				g |= place
			}
		}
		if shape := g.shape(n); !known[shape] {
			known[shape] = true
			all = append(all, g)
		}
	}
	return all
}

// shape is the same for graphs that differ in the order of their tasks alone.
func (g edges) shape(n int) edges {
	least := ^edges(0)
	order := make([]int, 0, n)
	var place func(used int)
	place = func(used int) {
		if len(order) == n {
			var moved edges
			for rest := uint16(g); rest != 0; rest &= rest - 1 {
				i := bits.TrailingZeros16(rest)
				moved |= 1 << (4*order[i/4] + order[i%4])
			}
			least = min(least, moved)
			return
		}
		for t := range n {
			if used>>t&1 == 0 {
				order = append(order, t)
				place(used | 1<<t)
				order = order[:len(order)-1]
			}
		}
	}
	place(0)
	return least
}

// smallPolicies are the policies that exhaustive campaigns give to every task.
func smallPolicies() []dag.DepPolicy {
	return []dag.DepPolicy{{}, {Kind: dag.Any}, {Kind: dag.AllSettled}, {Kind: dag.AtLeast, N: 2}}
}

// small makes the workload of a graph. Tasks of the pattern fail: those at even
// places once, with one retry, the others for good.
func (g edges) small(n int, policy dag.DepPolicy, pattern int) Workload {
	d := &dag.Definition{Name: fmt.Sprintf("g%d-%x", n, uint16(g)), DefaultQueue: "cpu"}
	for c := range n {
		t := dag.Task{
			Name: string(rune('A' + c)), Queue: "cpu", NumRetries: 1 - c%2,
			Kwargs: []dag.Kwarg{{Key: "cmd", Value: json.RawMessage(`"run"`)}},
		}
		for p := range c {
			if g>>(4*p+c)&1 == 1 {
				t.DependsOn = append(t.DependsOn, string(rune('A'+p)))
			}
		}
		if len(t.DependsOn) > 0 {
			t.DepPolicy = policy
			t.DepPolicy.N = min(policy.N, len(t.DependsOn))
		}
		d.Tasks = append(d.Tasks, t)
	}
	return Workload{ID: "w", Definition: d, Outcome: func(task string, attempt uint32) Ending {
		e := Ending{Lasts: 2 * time.Second, Output: `{"n": 1}`}
		if c := int(task[0] - 'A'); pattern>>c&1 == 1 && (c%2 == 1 || attempt == 1) {
			e = Ending{Lasts: 2 * time.Second, Code: 1}
		}
		return e
	}}
}

// joins reports whether some task has n parents or more.
func (g edges) joins(n int) bool {
	return slices.ContainsFunc([]int{0, 1, 2, 3}, func(c int) bool {
		parents := 0
		for p := range 4 {
			parents += int(g >> (4*p + c) & 1)
		}
		return parents >= n
	})
}
