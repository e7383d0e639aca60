package taskapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"unicode/utf8"

	"jobq/core/fault"
)

// Names of files that a worker prepares beside the outputs of parents.
const (
	// IndexFile maps each parent to the name of its file, or to null.
	IndexFile = "index.json"
	// RefsFile maps each parent to its reference, or to null. It is hidden from
	// patterns that are meant for the outputs.
	RefsFile = ".upstream_refs.json"
	// StatusFile maps each parent to its status when the task was sent.
	StatusFile = ".upstream_statuses.json"
)

// Task is the start that this process is a part of.
type Task struct {
	outputFile, upstreamDir string
}

// FromEnvironment returns the Task that the environment names. Fails with
// fault.Invalid outside of a task.
func FromEnvironment(getenv func(string) string) (*Task, error) {
	t := &Task{outputFile: getenv("JOBQ_OUTPUT_FILE"), upstreamDir: getenv("JOBQ_UPSTREAM_DIR")}
	if t.outputFile == "" && t.upstreamDir == "" {
		return nil, fault.New(fault.Invalid, "this is not a task: JOBQ_OUTPUT_FILE and JOBQ_UPSTREAM_DIR are not set").
			WithRemedy("call it from the cmd of a workflow task")
	}
	return t, nil
}

// SetOutput makes the one JSON document that r holds the output of the task.
// Readers of the output file see the old content or the new, never a part.
func (t *Task) SetOutput(r io.Reader) error {
	if t.outputFile == "" {
		return fault.New(fault.Invalid, "JOBQ_OUTPUT_FILE is not set, so there is no place for an output")
	}
	body, err := io.ReadAll(r)
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "the output cannot be read")
	}
	if err := CheckDocument(body); err != nil {
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(t.outputFile), filepath.Base(t.outputFile)+".*")
	if err != nil {
		return unwritten(err)
	}
	defer os.Remove(temp.Name()) // it is gone where the rename worked
	_, err = temp.Write(body)
	if err = errors.Join(err, temp.Close()); err == nil {
		err = os.Rename(temp.Name(), t.outputFile)
	}
	if err != nil {
		return unwritten(err)
	}
	return nil
}

// CheckDocument fails with fault.Invalid, saying what is wrong, unless body is
// exactly one JSON document in UTF-8.
func CheckDocument(body []byte) error {
	switch trimmed := bytes.TrimSpace(body); {
	case len(trimmed) == 0:
		return fault.New(fault.Invalid, "the output is empty; it must be one JSON document")
	case bytes.HasPrefix(trimmed, []byte("\xef\xbb\xbf")):
		return fault.New(fault.Invalid, "the output begins with a byte order mark; write it as plain UTF-8")
	case !utf8.Valid(trimmed):
		return fault.New(fault.Invalid, "the output is not UTF-8")
	case json.Valid(trimmed):
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	var first json.RawMessage
	if err := dec.Decode(&first); err != nil {
		return notJSON(body, err)
	}
	return fault.Newf(fault.Invalid, "the output goes on after its first JSON document, at byte %d; it must be exactly one", dec.InputOffset())
}

// notJSON says in our words what is wrong with body.
func notJSON(body []byte, err error) error {
	text := "the output is not JSON: it is cut off"
	if e, ok := errors.AsType[*json.SyntaxError](err); ok && !errors.Is(err, io.ErrUnexpectedEOF) && int(e.Offset) <= len(body) {
		const shown = 20
		at := max(int(e.Offset)-1, 0)
		if depth(body[:at]) >= maxDepth {
			return fault.Newf(fault.Invalid, "the output is nested more than %d levels deep", maxDepth)
		}
		text = fmt.Sprintf("the output is not JSON at byte %d: %q", at+1, bytes.ToValidUTF8(body[at:min(at+shown, len(body))], nil))
	}
	for _, word := range []string{"NaN", "Infinity"} {
		if bytes.Contains(body, []byte(word)) {
			text += " (" + word + " is no JSON)"
		}
	}
	return fault.New(fault.Invalid, text).WithRemedy("write one JSON document; a text has quotes: '\"done\"'")
}

// maxDepth is how deep package encoding/json lets lists and objects be nested.
const maxDepth = 10_000

// depth returns how many lists and objects are open at the end of body, which is
// the beginning of a JSON document.
func depth(body []byte) int {
	open, inText := 0, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case inText && c == '\\':
			i++
		case c == '"':
			inText = !inText
		case !inText && (c == '[' || c == '{'):
			open++
		case !inText && (c == ']' || c == '}'):
			open--
		}
	}
	return open
}

func unwritten(err error) error {
	return fault.Wrap(fault.Unavailable, err, "the output cannot be written").
		WithRemedy("see that there is room on the disk, and that nothing removed the directory of $JOBQ_OUTPUT_FILE")
}
