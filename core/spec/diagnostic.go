package spec

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"jobq/core/dag"
	"jobq/core/fault"
)

// Severity says how much a diagnostic matters. The zero value is Error.
type Severity uint8

const (
	// Error refuses the definition.
	Error Severity = iota
	// Warning points at something that is likely not meant.
	Warning
	// Note tells what was assumed.
	Note
)

// String returns the lower-case word for s.
func (s Severity) String() string {
	switch s {
	case Warning:
		return "warning"
	case Note:
		return "note"
	default:
		return "error"
	}
}

// MarshalText implements encoding.TextMarshaler.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Diagnostic is one thing to tell the author of a file.
type Diagnostic struct {
	Severity Severity `json:"severity"`
	// File is the name that Parse was given.
	File string `json:"file"`
	// Line and Column count from 1, Column in characters. Line 0 is the file
	// as a whole, column 0 a line as a whole.
	Line   int `json:"line,omitempty"`
	Column int `json:"column,omitempty"`
	// Task is the name of the task, empty outside tasks and where it has none.
	Task string `json:"task,omitempty"`
	// Path is the place in the definition, such as tasks[3].depends_on[0].
	Path string `json:"path,omitempty"`
	// Message says what is wrong, Remedy what to do about it.
	Message string `json:"message"`
	Remedy  string `json:"remedy,omitempty"`
	// Source is the text of the line, cut around Column where it is long.
	Source string `json:"source,omitempty"`

	// caret is the width of Source before Column, on a terminal.
	caret int
}

// Diagnostics are in the order of the file.
type Diagnostics []Diagnostic

// maxDiagnostics bounds what one file can make us say.
const maxDiagnostics = 1000

// HasErrors reports whether one of ds refuses the definition.
func (ds Diagnostics) HasErrors() bool { return ds.Count(Error) > 0 }

// Count returns how many of ds have severity s.
func (ds Diagnostics) Count(s Severity) int {
	n := 0
	for i := range ds {
		if ds[i].Severity == s {
			n++
		}
	}
	return n
}

// Err returns nil if ds has no errors, else one error of code Invalid that
// says how many there are and what the first one is.
func (ds Diagnostics) Err() error {
	first := slices.IndexFunc(ds, func(d Diagnostic) bool { return d.Severity == Error })
	if first < 0 {
		return nil
	}
	d, n := &ds[first], ds.Count(Error)
	text := fmt.Sprintf("%s%s", d.place(), d.text())
	if n > 1 {
		text += fmt.Sprintf(" (and %d more)", n-1)
	}
	return fault.New(fault.Invalid, text).WithRemedy(cmp.Or(d.Remedy, "correct the definition as the message says"))
}

// Render writes ds for people: place, severity and message, the line with a
// caret under the column, and the remedy.
func (ds Diagnostics) Render(w io.Writer) error {
	for i := range ds {
		if _, err := io.WriteString(w, ds[i].render()); err != nil {
			return err
		}
	}
	return nil
}

// String returns place, severity and message in one line.
func (d *Diagnostic) String() string {
	return d.place() + d.Severity.String() + ": " + d.text()
}

func (d *Diagnostic) place() string {
	switch {
	case d.Line == 0:
		return d.File + ": "
	case d.Column == 0:
		return fmt.Sprintf("%s:%d: ", d.File, d.Line)
	}
	return fmt.Sprintf("%s:%d:%d: ", d.File, d.Line, d.Column)
}

func (d *Diagnostic) text() string {
	if d.Task == "" {
		return d.Message
	}
	return "task " + dag.Quote(d.Task) + ": " + d.Message
}

func (d *Diagnostic) render() string {
	var b strings.Builder
	b.WriteString(d.String())
	b.WriteByte('\n')
	gutter := "   "
	if d.Source != "" {
		number := fmt.Sprintf("%5d", d.Line)
		gutter = strings.Repeat(" ", len(number))
		fmt.Fprintf(&b, "%s | %s\n", number, d.Source)
		if d.Column > 0 {
			fmt.Fprintf(&b, "%s | %s^\n", gutter, strings.Repeat(" ", d.caret))
		}
	}
	if d.Remedy != "" {
		fmt.Fprintf(&b, "%s = %s\n", gutter, d.Remedy)
	}
	return b.String()
}

// maxSource is how many characters of a line are shown.
const maxSource = 100

// firstShown returns how many characters of the line are left out before what
// is shown.
func (d *Diagnostic) firstShown() int {
	if d.Column > maxSource*3/4 {
		return d.Column - maxSource/2
	}
	return 0
}

// show sets Source and caret from the rest of the line after its first skipped
// characters.
func (d *Diagnostic) show(rest []byte, skipped int) {
	var b strings.Builder
	if d.caret = 0; skipped > 0 {
		b.WriteString("…")
		d.caret++
	}
	for shown := 0; len(rest) > 0; shown++ {
		if shown == maxSource {
			b.WriteString("…")
			break
		}
		r, size := utf8.DecodeRune(rest)
		rest = rest[size:]
		b.WriteRune(visible(r))
		if skipped+shown < d.Column-1 {
			d.caret += width(r)
		}
	}
	if d.Source = b.String(); strings.TrimSpace(d.Source) == "" {
		d.Source = ""
	}
}

// width returns how many cells of a terminal r takes, near enough for a caret.
func width(r rune) int {
	switch {
	case unicode.Is(unicode.Mn, r):
		return 0
	case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul),
		0xff01 <= r && r <= 0xff60, 0x1f300 <= r && r <= 0x1faff:
		return 2
	}
	return 1
}

// visible keeps control characters of a file away from terminals.
func visible(r rune) rune {
	switch {
	case r == '\t':
		return ' '
	case !unicode.IsPrint(r) && r != '\u3000' && r != '\u00a0':
		return utf8.RuneError
	}
	return r
}

// byPlace orders diagnostics as the file does.
func byPlace(a, b Diagnostic) int {
	return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Severity, b.Severity))
}
