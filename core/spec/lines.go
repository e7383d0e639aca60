package spec

import (
	"bytes"
	"unicode/utf8"
)

// place is a line and a column of the file, both from 1. The zero value is no
// place.
type place struct{ line, column int32 }

// breaks are what ends a line in YAML, as its parser counts lines: beside the
// usual ones also a lone carriage return and three Unicode separators.
const (
	nextLine           = "\u0085"
	lineSeparator      = "\u2028"
	paragraphSeparator = "\u2029"
)

// hasUnusualBreaks reports whether counting "\n" alone would give other line
// numbers than the YAML parser has.
func hasUnusualBreaks(text []byte) bool {
	for rest := text; ; {
		i := bytes.IndexByte(rest, '\r')
		if i < 0 {
			break
		}
		if i+1 == len(rest) || rest[i+1] != '\n' {
			return true
		}
		rest = rest[i+1:]
	}
	return bytes.Contains(text, []byte(nextLine)) || bytes.Contains(text, []byte(lineSeparator)) || bytes.Contains(text, []byte(paragraphSeparator))
}

// nextBreak returns where the first line of text ends and where the next one
// begins; -1, len(text) if there is none. unusual also counts YAML's rare ones.
func nextBreak(text []byte, unusual bool) (end, next int) {
	if !unusual {
		i := bytes.IndexByte(text, '\n')
		if i < 0 {
			return -1, len(text)
		}
		end = i
		if i > 0 && text[i-1] == '\r' {
			end--
		}
		return end, i + 1
	}
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		switch r {
		case '\r':
			if i+1 < len(text) && text[i+1] == '\n' {
				size++
			}
			return i, i + size
		case '\n', '\u0085', '\u2028', '\u2029':
			return i, i + size
		}
		i += size
	}
	return -1, len(text)
}

// placeOf returns the place of the byte at offset. It is for the few faults
// that are known by offset alone: it counts from the start of text.
func placeOf(text []byte, offset int) place {
	offset = min(offset, len(text))
	head := text[:offset]
	line := bytes.Count(head, []byte("\n"))
	start := bytes.LastIndexByte(head, '\n') + 1
	return place{int32(line + 1), int32(utf8.RuneCount(head[start:]) + 1)}
}

// showLines gives every diagnostic the text of its line. ds is sorted. It goes
// through text once, however many diagnostics stand in one long line.
func showLines(ds Diagnostics, text []byte, unusual bool) {
	line, rest := 1, text
	end, _ := nextBreak(rest, unusual)
	offset, passed := 0, 0 // within the line, in bytes and characters
	for i := range ds {
		d := &ds[i]
		for line < d.Line && len(rest) > 0 {
			_, next := nextBreak(rest, unusual)
			rest = rest[next:]
			line++
			if line == d.Line {
				end, _ = nextBreak(rest, unusual)
				offset, passed = 0, 0
			}
		}
		if line != d.Line {
			continue
		}
		whole := rest
		if end >= 0 {
			whole = rest[:end]
		}
		start := d.firstShown()
		if start < passed {
			offset, passed = 0, 0
		}
		for passed < start && offset < len(whole) {
			_, size := utf8.DecodeRune(whole[offset:])
			offset += size
			passed++
		}
		d.show(whole[offset:], passed)
	}
}
