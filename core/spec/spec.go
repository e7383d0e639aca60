package spec

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"unicode/utf8"

	"jobq/core/dag"
	"jobq/core/fault"
)

// Limits bound what a text may ask for. A zero field means its default.
type Limits struct {
	// MaxBytes bounds the text itself; default 64 MiB.
	MaxBytes int64
	// MaxValues bounds the values (texts, numbers, lists, maps) that have to be
	// in memory at once: those of one task, or of the whole file if its layout
	// keeps us from reading it task by task. Default 1,000,000, about 200 MB.
	MaxValues int
	// MaxTasks bounds the tasks; default 250,000.
	MaxTasks int
	// MaxDependencies bounds the entries of depends_on of all tasks together;
	// default 4,000,000.
	MaxDependencies int
	// MaxDepth bounds how deep lists and maps may be nested; default 100.
	MaxDepth int
}

func (l Limits) withDefaults() Limits {
	return Limits{
		MaxBytes:        cmp.Or(l.MaxBytes, 64<<20),
		MaxValues:       cmp.Or(l.MaxValues, 1_000_000),
		MaxTasks:        cmp.Or(l.MaxTasks, 250_000),
		MaxDependencies: cmp.Or(l.MaxDependencies, 4_000_000),
		MaxDepth:        cmp.Or(l.MaxDepth, 100),
	}
}

// Format is the format of a text.
type Format uint8

const (
	// FormatAuto takes a name that ends in .json for JSON, and of other texts
	// those that are one JSON object; everything else is YAML.
	FormatAuto Format = iota
	// FormatYAML is YAML, whatever the name.
	FormatYAML
	// FormatJSON is JSON, whatever the name.
	FormatJSON
)

// ConditionFault is what a checker finds wrong with a condition. Line and
// Column count from 1 within its source; 0 is the condition as a whole.
type ConditionFault struct {
	Line, Column  int
	Message, Hint string
}

// Options change how Parse reads. The zero value is what `jobq validate` uses,
// less the checker of conditions.
type Options struct {
	Format Format
	Limits Limits
	// AllowMissingCommand accepts tasks without kwargs.cmd, for processors of
	// the user's own. Without it such a task is an error.
	AllowMissingCommand bool
	// CheckCondition looks into the condition of a task with these parents. It
	// returns nil if there is nothing wrong. Without it, a condition is an error.
	CheckCondition func(source string, parents []string) []ConditionFault
}

// Parse reads text into a definition with its defaults filled in. name is what
// diagnostics call the file; its ending chooses the format where o does not. o
// may be nil.
//
// The definition is nil if and only if the diagnostics have errors. Warnings
// and notes may come with a definition.
func Parse(name string, text []byte, o *Options) (*dag.Definition, Diagnostics) {
	r := newReader(name, text, o)
	if r.acceptText() {
		if r.options.Format == FormatJSON || r.options.Format == FormatAuto && looksLikeJSON(name, r.text) {
			r.readJSON()
		} else {
			r.readYAML()
		}
	}
	return r.finish()
}

// ReadText reads all of in for Parse, but never more than the limit of bytes
// allows. A file that is too large is refused by its size, unread; the error
// has code TooLarge. Other errors are those of in, with code Invalid.
func ReadText(name string, in io.Reader, l Limits) ([]byte, error) {
	most := l.withDefaults().MaxBytes
	if file, ok := in.(interface{ Stat() (fs.FileInfo, error) }); ok {
		if info, err := file.Stat(); err == nil && info.Mode().IsRegular() && info.Size() > most {
			return nil, tooLarge(name, fmt.Sprintf("is %d bytes long", info.Size()), most)
		}
	}
	text, err := io.ReadAll(io.LimitReader(in, most+1))
	if err != nil {
		if at, ok := errors.AsType[*fs.PathError](err); ok {
			err = at.Err // it names the file once more
		}
		return nil, fault.Wrapf(fault.Invalid, err, "%s cannot be read", name).WithRemedy("check that the file can be read")
	}
	if int64(len(text)) > most {
		return nil, tooLarge(name, "is longer", most)
	}
	return text, nil
}

func tooLarge(name, how string, most int64) error {
	return fault.Newf(fault.TooLarge, "%s %s; at most %d bytes are allowed", name, how, most).WithRemedy(splitRemedy)
}

const splitRemedy = "split it into several workflows, or keep large data out of the definition"

// looksLikeJSON reports whether a text is JSON by its name or because all of it
// is one JSON object: that is YAML too, but not every escape of JSON is known to
// the YAML parser.
func looksLikeJSON(name string, text []byte) bool {
	if strings.EqualFold(path.Ext(name), ".json") {
		return true
	}
	return bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("{")) && syntaxFault(text) == nil
}

// acceptText checks what can be said about the bytes alone.
func (r *reader) acceptText() bool {
	const utf16 = "the file is UTF-16"
	switch {
	case int64(len(r.text)) > r.limits.MaxBytes:
		r.report(Diagnostic{Message: fmt.Sprintf("the file is %d bytes long; at most %d are allowed", len(r.text), r.limits.MaxBytes), Remedy: splitRemedy})
		r.text = nil
		return false
	case bytes.HasPrefix(r.text, []byte{0xfe, 0xff}), bytes.HasPrefix(r.text, []byte{0xff, 0xfe}),
		len(r.text) > 1 && (r.text[0] == 0) != (r.text[1] == 0):
		r.report(Diagnostic{Line: 1, Column: 1, Message: utf16, Remedy: "save it as UTF-8"})
		r.text = nil
		return false
	}
	r.text = bytes.TrimPrefix(r.text, []byte("\ufeff"))
	if !utf8.Valid(r.text) {
		at := placeOf(r.text, firstInvalid(r.text))
		r.reportAt(at, "the file is not valid UTF-8", "save it as UTF-8")
		return false
	}
	return true
}

func firstInvalid(text []byte) int {
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return len(text)
}
