package engine

import (
	"container/heap"
	"slices"
)

// indexSet is a set of task positions with constant-time add and remove. Its
// order of iteration is sorted where it matters.
type indexSet struct {
	members []int32
	// place is the position in members plus one, 0 for absent.
	place []int32
}

func newIndexSet(n int) indexSet { return indexSet{place: make([]int32, n)} }

func (s *indexSet) len() int { return len(s.members) }

// has is false for what lies outside of the set's range, too.
func (s *indexSet) has(i int32) bool { return i >= 0 && int(i) < len(s.place) && s.place[i] != 0 }

func (s *indexSet) add(i int32) {
	if s.place[i] == 0 {
		s.members = append(s.members, i)
		s.place[i] = int32(len(s.members))
	}
}

func (s *indexSet) remove(i int32) {
	at := s.place[i]
	if at == 0 {
		return
	}
	last := s.members[len(s.members)-1]
	s.members[at-1] = last
	s.place[last] = at
	s.members = s.members[:len(s.members)-1]
	s.place[i] = 0
}

func (s *indexSet) sorted() []int32 {
	out := slices.Clone(s.members)
	slices.Sort(out)
	return out
}

// waiting orders parked tasks by the time until which they wait, then by
// position. Entries may be out of date; whoever pops one looks at the state.
type waiting []parkedTask

type parkedTask struct {
	until int64
	task  int32
}

func (w waiting) Len() int { return len(w) }
func (w waiting) Less(i, j int) bool {
	if w[i].until != w[j].until {
		return w[i].until < w[j].until
	}
	return w[i].task < w[j].task
}
func (w waiting) Swap(i, j int) { w[i], w[j] = w[j], w[i] }
func (w *waiting) Push(x any)   { *w = append(*w, x.(parkedTask)) }
func (w *waiting) Pop() any {
	old := *w
	x := old[len(old)-1]
	*w = old[:len(old)-1]
	return x
}

func (w *waiting) add(p parkedTask) { heap.Push(w, p) }

func (w *waiting) next() parkedTask { return heap.Pop(w).(parkedTask) }
