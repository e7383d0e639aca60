package cond

import (
	"fmt"
	"unicode/utf8"
)

// Position is a place in the source of a condition. Line and Column start at 1;
// columns count characters, not bytes.
type Position struct {
	Line, Column int
}

// String returns the place in words.
func (p Position) String() string {
	return fmt.Sprintf("line %d, column %d", p.Line, p.Column)
}

// Fault is one thing that is wrong with a condition, at a place of its source.
type Fault struct {
	Position
	// Message says what is wrong.
	Message string
	// Hint says what to write instead. It may be empty.
	Hint string
}

// Error returns place, message and hint in one line.
func (f Fault) Error() string {
	text := f.Position.String() + ": " + f.Message
	if f.Hint != "" {
		text += "; " + f.Hint
	}
	return text
}

// String is Error: the embedded Position would else speak for the whole.
func (f Fault) String() string { return f.Error() }

// maximumFaults bounds how many faults of one condition are reported.
const maximumFaults = 20

// faultList collects the faults of one source.
type faultList struct {
	source string
	faults []Fault
}

// add records a fault at a byte offset of the source.
func (l *faultList) add(offset int, message, hint string) {
	if len(l.faults) < maximumFaults {
		l.faults = append(l.faults, Fault{position(l.source, offset), message, hint})
	}
}

// position converts a byte offset of source. A line ends as in Python: with
// "\n", "\r" or "\r\n".
func position(source string, offset int) Position {
	place := Position{Line: 1, Column: 1}
	for i := 0; i < min(offset, len(source)); {
		character, width := utf8.DecodeRuneInString(source[i:])
		i += width
		ends := character == '\n' ||
			character == '\r' && (i == len(source) || source[i] != '\n')
		if ends {
			place.Line, place.Column = place.Line+1, 1
		} else {
			place.Column++
		}
	}
	return place
}
