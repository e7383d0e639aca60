package cli

import (
	"strings"
)

// separators are what people put between the parts of a task name.
const separators = "-_./: "

// fewNames is how many groups are never too many.
const fewNames = 10

// grouping sorts tasks under few names, so that thousands of them fit a screen.
type grouping struct {
	// names are the groups in the order of their first task.
	names []string
	// of holds the group of every task.
	of []int32
}

// groupTasks sorts names into at most most groups: each name its own if they are
// few or unlike each other, else what they have in common in front of their number, else in front of
// their last separator, else of their first one, else all in one.
func groupTasks(names []string, most int) grouping {
	if g, ok := groupBy(names, beforeNumber, most); ok && len(names) > fewNames && len(g.names) <= len(names)/4 {
		return g // numbered alike, as t0000 to t0027
	}
	for _, key := range []func(string) string{whole, beforeNumber, beforeLast, beforeFirst, everything} {
		if g, ok := groupBy(names, key, most); ok {
			return g
		}
	}
	return grouping{}
}

func groupBy(names []string, key func(string) string, most int) (grouping, bool) {
	index := map[string]int32{}
	g := grouping{of: make([]int32, len(names))}
	var only []string
	for i, name := range names {
		k := key(name)
		at, known := index[k]
		if !known {
			at = int32(len(g.names))
			if len(g.names) == most {
				return grouping{}, false
			}
			index[k] = at
			g.names = append(g.names, k)
			only = append(only, name)
		} else if only[at] != name {
			only[at] = ""
		}
		g.of[i] = at
	}
	for i, name := range only {
		if name != "" {
			g.names[i] = name
		}
	}
	return g, true
}

func whole(name string) string { return name }

func everything(string) string { return "*" }

func beforeNumber(name string) string {
	head := strings.TrimRight(name, "0123456789")
	if head == name {
		return name
	}
	return head + "*"
}

func beforeLast(name string) string {
	name = strings.TrimRight(strings.TrimSuffix(beforeNumber(name), "*"), separators)
	if at := strings.LastIndexAny(name, separators); at > 0 {
		return name[:at+1] + "*"
	}
	return name + "*"
}

func beforeFirst(name string) string {
	at := strings.IndexAny(name, separators+"0123456789")
	switch {
	case at <= 0:
		return name + "*"
	case strings.IndexByte(separators, name[at]) >= 0:
		return name[:at+1] + "*"
	default:
		return name[:at] + "*"
	}
}
