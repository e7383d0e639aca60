package dag

import (
	"iter"
	"slices"
)

// Graph is the shape of a definition: who depends on whom, by task index. It
// is immutable and safe for concurrent use; the slices that it returns belong
// to it and must not be changed.
type Graph struct {
	index    map[string]int32
	parents  adjacency
	children adjacency
	order    []int32
	level    []int32
	depth    int
}

// adjacency is a list of lists in two slices: the list of i is
// to[start[i]:start[i+1]].
type adjacency struct {
	start []int32
	to    []int32
}

func (a adjacency) of(i int32) []int32 {
	return a.to[a.start[i]:a.start[i+1]:a.start[i+1]]
}

// reversed returns the adjacency with every edge turned round. The lists come
// out in ascending order.
func (a adjacency) reversed() adjacency {
	n := len(a.start) - 1
	r := adjacency{start: make([]int32, n+1), to: make([]int32, len(a.to))}
	for _, v := range a.to {
		r.start[v+1]++
	}
	for i := range n {
		r.start[i+1] += r.start[i]
	}
	next := slices.Clone(r.start[:n])
	for u := range int32(n) {
		for _, v := range a.of(u) {
			r.to[next[v]] = u
			next[v]++
		}
	}
	return r
}

// NewGraph builds the graph of d in time linear in tasks plus dependencies. If
// names repeat, dependencies are unknown, repeated or on the task itself, or
// dependencies form a cycle, it returns no graph and all of these problems (of
// cycles, the first).
func NewGraph(d *Definition) (*Graph, []Problem) {
	var c collector
	g := newGraph(d, &c)
	if problems := c.result(); len(problems) > 0 {
		return nil, problems
	}
	return g, nil
}

// newGraph builds what can be built and reports the problems to c.
func newGraph(d *Definition, c *collector) *Graph {
	g := &Graph{index: make(map[string]int32, len(d.Tasks))}
	g.indexNames(d, c)
	g.linkParents(d, c)
	g.children = g.parents.reversed()
	if !g.sort() {
		reportCycle(d, g, c)
	}
	return g
}

func (g *Graph) indexNames(d *Definition, c *collector) {
	for i := range d.Tasks {
		name := d.Tasks[i].Name
		first, repeated := g.index[name]
		if !repeated {
			g.index[name] = int32(i)
			continue
		}
		if name == "" {
			continue // an empty name is a fault of its own
		}
		earlier := At(int(first), FieldName)
		c.addProblem(Problem{
			Path:    At(i, FieldName),
			Message: "the task name " + Quote(name) + " is used twice",
			Remedy:  "give every task a name of its own",
			Earlier: &earlier,
		})
	}
}

func (g *Graph) linkParents(d *Definition, c *collector) {
	edges := 0
	for i := range d.Tasks {
		edges += len(d.Tasks[i].DependsOn)
	}
	g.parents = adjacency{start: make([]int32, len(d.Tasks)+1), to: make([]int32, 0, edges)}
	near := suggester{names: d.Tasks}
	// seen[p] is the last task that named p, plus one, so that a repetition is
	// found without a set per task.
	seen := make([]int32, len(d.Tasks))
	for i := range d.Tasks {
		for e, name := range d.Tasks[i].DependsOn {
			at := AtElement(i, FieldDependsOn, e)
			parent, known := g.index[name]
			switch {
			case name == "":
				c.add(at, "the name of a dependency is empty", "name a task, or remove the entry")
			case !known:
				c.add(at, "there is no task "+Quote(name), near.remedy(name))
			case int(parent) == i || d.Tasks[i].Name == name:
				c.add(at, "the task depends on itself", "remove the entry")
			case seen[parent] == int32(i)+1:
				earlier := AtElement(i, FieldDependsOn, slices.Index(d.Tasks[i].DependsOn, name))
				c.addProblem(Problem{
					Path:    at,
					Message: "the dependency on " + Quote(name) + " is named twice",
					Remedy:  "remove one of the entries",
					Earlier: &earlier,
				})
			default:
				seen[parent] = int32(i) + 1
				g.parents.to = append(g.parents.to, parent)
			}
		}
		g.parents.start[i+1] = int32(len(g.parents.to))
	}
}

// sort fills order and level and reports whether every task has a place.
func (g *Graph) sort() bool {
	n := len(g.parents.start) - 1
	g.order = make([]int32, 0, n)
	g.level = make([]int32, n)
	open := make([]int32, n)
	for i := range int32(n) {
		open[i] = int32(len(g.parents.of(i)))
		if open[i] == 0 {
			g.order = append(g.order, i)
		}
	}
	for done := 0; done < len(g.order); done++ {
		u := g.order[done]
		g.depth = max(g.depth, int(g.level[u])+1)
		for _, v := range g.children.of(u) {
			g.level[v] = max(g.level[v], g.level[u]+1)
			if open[v]--; open[v] == 0 {
				g.order = append(g.order, v)
			}
		}
	}
	return len(g.order) == n
}

// Len returns the number of tasks.
func (g *Graph) Len() int { return len(g.level) }

// Edges returns the number of dependencies.
func (g *Graph) Edges() int { return len(g.parents.to) }

// Index returns the index of the task called name.
func (g *Graph) Index(name string) (int, bool) {
	i, ok := g.index[name]
	return int(i), ok
}

// Parents returns the tasks that task i depends on, in the order of depends_on.
func (g *Graph) Parents(i int) []int32 { return g.parents.of(int32(i)) }

// Children returns the tasks that depend on task i, in the order of the file.
func (g *Graph) Children(i int) []int32 { return g.children.of(int32(i)) }

// Order returns all tasks so that every task comes after its parents. The same
// definition always gives the same order.
func (g *Graph) Order() []int32 { return g.order }

// Level returns the length of the longest way from a root to task i; roots are
// on level 0.
func (g *Graph) Level(i int) int { return int(g.level[i]) }

// Levels returns the tasks of every level, in the order of the file.
func (g *Graph) Levels() [][]int32 {
	widths := g.LevelWidths()
	all := make([]int32, 0, g.Len())
	levels := make([][]int32, len(widths))
	for l, w := range widths {
		levels[l] = all[len(all) : len(all) : len(all)+w]
		all = all[:len(all)+w]
	}
	for i := range g.level {
		l := g.level[i]
		levels[l] = append(levels[l], int32(i))
	}
	return levels
}

// LevelWidths returns how many tasks every level has.
func (g *Graph) LevelWidths() []int {
	widths := make([]int, g.depth)
	for _, l := range g.level {
		widths[l]++
	}
	return widths
}

// Descendants yields every task that depends on one of starts, directly or
// not, once each and nearest first. A start is yielded only if it depends on
// another start.
func (g *Graph) Descendants(starts ...int) iter.Seq[int] {
	return func(yield func(int) bool) {
		seen := make([]bool, g.Len())
		var queue []int32
		visit := func(from int32) bool {
			for _, v := range g.children.of(from) {
				if !seen[v] {
					seen[v] = true
					queue = append(queue, v)
					if !yield(int(v)) {
						return false
					}
				}
			}
			return true
		}
		for _, s := range starts {
			if !visit(int32(s)) {
				return
			}
		}
		for done := 0; done < len(queue); done++ {
			if !visit(queue[done]) {
				return
			}
		}
	}
}
