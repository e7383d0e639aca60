package dag

import (
	"math"
	"strings"
)

// maxSuggestions bounds how many unknown names get a suggestion: each looks at
// every task.
const maxSuggestions = 10

// suggester proposes tasks whose names are near an unknown one.
type suggester struct {
	names []Task
	used  int
}

func (s *suggester) remedy(name string) string {
	const plain = "name a task of this file; names are compared exactly"
	if s.used == maxSuggestions {
		return plain
	}
	s.used++
	best, distance := "", math.MaxInt
	for i := range s.names {
		candidate := s.names[i].Name
		if d, near := Near(name, candidate); near && d < distance {
			best, distance = candidate, d
		}
	}
	if best == "" {
		return plain
	}
	return "did you mean " + Quote(best) + "?"
}

// Near reports whether a looks like a slip of b, and how many letters apart
// they are: at most a third of a's length, at most 3, and never all of it. A
// difference of case, of - and _, and of outer spaces counts as one.
func Near(a, b string) (distance int, near bool) {
	if a == b || b == "" {
		return 0, false
	}
	if fold(a) == fold(b) {
		return 1, true
	}
	most := min(3, (len(a)+1)/3)
	if most == 0 || abs(len(a)-len(b)) > most {
		return 0, false
	}
	d := editDistance(a, b, most)
	return d, d <= most
}

func fold(s string) string {
	return strings.ToLower(strings.ReplaceAll(strings.TrimSpace(s), "_", "-"))
}

func abs(n int) int { return max(n, -n) }

// editDistance returns how many bytes must be inserted, removed, replaced or
// swapped with their neighbour to turn a into b, or most+1 if more than most.
func editDistance(a, b string, most int) int {
	two, one, now := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range one {
		one[j] = j
	}
	for i := 1; i <= len(a); i++ {
		now[0] = i
		least := i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			now[j] = min(one[j]+1, now[j-1]+1, one[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				now[j] = min(now[j], two[j-2]+1)
			}
			least = min(least, now[j])
		}
		if least > most {
			return most + 1
		}
		two, one, now = one, now, two
	}
	return min(one[len(b)], most+1)
}
