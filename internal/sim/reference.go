package sim

import "jobq/core/dag"

// reference is a definition as the oracles see it.
type reference struct {
	d     *dag.Definition
	index map[string]int
}

func newReference(d *dag.Definition) *reference {
	r := &reference{d: d, index: map[string]int{}}
	for i := range d.Tasks {
		r.index[d.Tasks[i].Name] = i
	}
	return r
}

// task returns the position of a task, or -1.
func (r *reference) task(name string) int {
	if i, ok := r.index[name]; ok {
		return i
	}
	return -1
}
