package cond

import (
	"slices"
	"strings"
)

// hasPattern reports whether name reads as a pattern.
func hasPattern(name string) bool { return strings.ContainsAny(name, "*?[") }

// glob is a pattern of Python's fnmatch.fnmatchcase: "*" matches any text with
// slashes and line breaks, "?" one character, "[...]" one of a set, "[!...]" one
// outside it; a "[" that is never closed stands for itself.
type glob []globPart

// globPart matches one character, or with star any number of them.
type globPart struct {
	star, any, negated bool
	ranges             [][2]rune
}

func (p globPart) matches(character rune) bool {
	if p.any {
		return true
	}
	inside := slices.ContainsFunc(p.ranges, func(r [2]rune) bool {
		return r[0] <= character && character <= r[1]
	})
	return inside != p.negated
}

// parseGlob never fails: whatever is no set stands for itself.
func parseGlob(pattern string) glob {
	var parsed glob
	characters := []rune(pattern)
	for i := 0; i < len(characters); i++ {
		switch c := characters[i]; c {
		case '*':
			if len(parsed) == 0 || !parsed[len(parsed)-1].star {
				parsed = append(parsed, globPart{star: true})
			}
		case '?':
			parsed = append(parsed, globPart{any: true})
		case '[':
			if end := setEnd(characters, i+1); end > 0 {
				parsed = append(parsed, parseSet(characters[i+1:end]))
				i = end
				continue
			}
			parsed = append(parsed, globPart{ranges: [][2]rune{{c, c}}})
		default:
			parsed = append(parsed, globPart{ranges: [][2]rune{{c, c}}})
		}
	}
	return parsed
}

// setEnd returns the index of the bracket that closes a set whose content
// begins at start, or 0. A bracket in first place belongs to the set.
func setEnd(characters []rune, start int) int {
	i := start
	if i < len(characters) && characters[i] == '!' {
		i++
	}
	if i < len(characters) && characters[i] == ']' {
		i++
	}
	for ; i < len(characters); i++ {
		if characters[i] == ']' {
			return i
		}
	}
	return 0
}

// parseSet reads the inside of a set. It follows fnmatch.translate step by step,
// because the odd cases (empty and reversed ranges, hyphens in a row) follow
// from its steps and from nothing simpler.
func parseSet(content []rune) globPart {
	chunks := setChunks(content)
	// A hyphen between chunks makes a range; one inside a chunk is itself.
	var members []setMember
	for i, chunk := range chunks {
		if i > 0 {
			members = append(members, setMember{character: '-', ranging: true})
		}
		for _, c := range chunk {
			members = append(members, setMember{character: c})
		}
	}
	part := globPart{}
	if len(members) > 0 && members[0].character == '!' {
		part.negated = true
		members = members[1:]
	}
	for i := 0; i < len(members); i++ {
		low, high := members[i].character, members[i].character
		if i+2 < len(members) && members[i+1].ranging {
			high = members[i+2].character
			i += 2
		}
		part.ranges = append(part.ranges, [2]rune{low, high})
	}
	return part
}

// setMember is a character of a set; ranging marks a hyphen that makes a range.
type setMember struct {
	character rune
	ranging   bool
}

// setChunks cuts the content of a set at the hyphens that make ranges and
// removes ranges that are empty because their ends are reversed.
func setChunks(content []rune) [][]rune {
	var chunks [][]rune
	begin, from := 0, 1
	if content[0] == '!' {
		from = 2
	}
	for from <= len(content) {
		offset := slices.Index(content[from:], '-')
		if offset < 0 {
			break
		}
		hyphen := from + offset
		chunks = append(chunks, slices.Clone(content[begin:hyphen]))
		begin, from = hyphen+1, hyphen+3
	}
	if rest := content[begin:]; len(rest) > 0 {
		chunks = append(chunks, slices.Clone(rest))
	} else {
		chunks[len(chunks)-1] = append(chunks[len(chunks)-1], '-')
	}
	for k := len(chunks) - 1; k > 0; k-- {
		last := len(chunks[k-1]) - 1
		if chunks[k-1][last] > chunks[k][0] {
			chunks[k-1] = append(chunks[k-1][:last], chunks[k][1:]...)
			chunks = slices.Delete(chunks, k, k+1)
		}
	}
	return chunks
}

// match reports whether the whole name matches. A star that was passed is never
// given back to an earlier one, so the work is at most pattern times name.
func (g glob) match(name string) bool {
	characters := []rune(name)
	part, position := 0, 0
	star, resume := -1, 0
	for position < len(characters) {
		switch {
		case part < len(g) && g[part].star:
			star, resume = part, position
			part++
		case part < len(g) && g[part].matches(characters[position]):
			part++
			position++
		case star >= 0:
			resume++
			part, position = star+1, resume
		default:
			return false
		}
	}
	for part < len(g) && g[part].star {
		part++
	}
	return part == len(g)
}
