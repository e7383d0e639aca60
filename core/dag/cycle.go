package dag

import (
	"fmt"
	"strings"
)

// maxCycleNames bounds how many tasks of a cycle a message names.
const maxCycleNames = 100

// reportCycle names one cycle of g, task by task. The choice is deterministic:
// from the first task of the file that is on or behind a cycle, back to a task
// on one, and the shortest cycle through it.
func reportCycle(d *Definition, g *Graph, c *collector) {
	placed := make([]bool, len(g.level))
	for _, i := range g.order {
		placed[i] = true
	}
	cycle := shortestCycle(g, taskOnCycle(g, placed))
	names := make([]string, 0, min(len(cycle), maxCycleNames)+2)
	for i, t := range cycle {
		if i == maxCycleNames {
			names = append(names, fmt.Sprintf("(%d more)", len(cycle)-i))
			break
		}
		names = append(names, Quote(d.Tasks[t].Name))
	}
	names = append(names, Quote(d.Tasks[cycle[0]].Name))
	first := int(cycle[0])
	element := 0
	for e, name := range d.Tasks[first].DependsOn {
		if name == d.Tasks[cycle[1%len(cycle)]].Name {
			element = e
		}
	}
	c.add(AtElement(first, FieldDependsOn, element),
		fmt.Sprintf("%d tasks wait for each other: %s", len(cycle), strings.Join(names, " -> ")),
		"an arrow points from a task to one it depends on; remove one of these dependencies")
}

// taskOnCycle walks from the first task without a place from parent to parent
// until a task repeats. Every task without a place has a parent without one.
func taskOnCycle(g *Graph, placed []bool) int32 {
	at := int32(0)
	for placed[at] {
		at++
	}
	visited := make([]bool, len(placed))
	for !visited[at] {
		visited[at] = true
		at = firstUnplaced(g.parents.of(at), placed)
	}
	return at
}

func firstUnplaced(tasks []int32, placed []bool) int32 {
	for _, t := range tasks {
		if !placed[t] {
			return t
		}
	}
	return tasks[0]
}

// shortestCycle returns the tasks of a shortest cycle through start, each
// depending on the next and the last on the first. It begins with the task
// that comes first in the file. start must be on a cycle.
func shortestCycle(g *Graph, start int32) []int32 {
	// from[t] is the task from which the search came to t, plus one.
	from := make([]int32, len(g.level))
	queue := []int32{start}
	for done := 0; from[start] == 0 && done < len(queue); done++ {
		for _, parent := range g.parents.of(queue[done]) {
			if from[parent] == 0 {
				from[parent] = queue[done] + 1
				queue = append(queue, parent)
			}
		}
	}
	var back []int32 // against the direction of the search
	for t := from[start] - 1; ; t = from[t] - 1 {
		back = append(back, t)
		if t == start {
			break
		}
	}
	return fromFirst(back)
}

// fromFirst reverses back and turns it so that its smallest element leads.
func fromFirst(back []int32) []int32 {
	lead := 0
	for i, t := range back {
		if t < back[lead] {
			lead = i
		}
	}
	n := len(back)
	cycle := make([]int32, n)
	for i := range cycle {
		cycle[i] = back[((lead-i)%n+n)%n]
	}
	return cycle
}
