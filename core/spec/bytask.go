package spec

import (
	"bytes"
	"errors"
	"io"

	"gopkg.in/yaml.v3"
)

// partSize is about how much text is parsed at once: enough that starting the
// parser costs nothing, little enough that its tree is small.
const partSize = 64 << 10

// layout is the usual layout of a workflow file: the key `tasks` alone on a
// line that is not indented, then a list of tasks, each on lines of its own.
type layout struct {
	// tasksLine is the number of the line of the key.
	tasksLine int
	// begin and end bound the text of the list.
	begin, end int
	// parts have about the wanted size and begin with a list entry each.
	parts []partStart
}

// partStart is the offset and the number of the first line of a part.
type partStart struct{ offset, line int }

// readByTask reads the list of tasks in parts, each parsed alone, so that no
// tree of the whole text is ever in memory. It reports false, and the reader
// must be restarted, whenever a part alone does not parse: then the text means
// something else as a whole (a quote or bracket that spans parts, an alias
// whose anchor is elsewhere), or has faults whose messages need the whole.
func (r *reader) readByTask() bool {
	if r.unusualBreaks {
		return false
	}
	l, ok := findLayout(r.text, r.partSize)
	if !ok || !r.readFrame(l) {
		return false
	}
	for i, part := range l.parts {
		end := l.end
		if i+1 < len(l.parts) {
			end = l.parts[i+1].offset
		}
		if !r.readPart(r.text[part.offset:end], part.line-1) {
			return false
		}
		if r.stopped {
			break
		}
	}
	return true
}

// readFrame reads everything but the list: the text with the list replaced by
// as many empty lines, so that places stay right.
func (r *reader) readFrame(l layout) bool {
	frame := make([]byte, 0, 4<<10)
	frame = append(frame, r.text[:l.begin]...)
	frame = append(frame, bytes.Repeat([]byte{'\n'}, bytes.Count(r.text[l.begin:l.end], []byte{'\n'}))...)
	frame = append(frame, r.text[l.end:]...)
	root, ok := r.parsePart(frame)
	if !ok || root.Kind != yaml.MappingNode {
		return false
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		if key.Value != "tasks" {
			continue
		}
		// The first such key counts, and must be the one that was found.
		if key.Line != l.tasksLine || !isNull(value) || value.Value != "" {
			return false
		}
		// What stands there is not null but the list that was taken out.
		list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Line: value.Line, Column: value.Column}
		root.Content[i+1] = list
		r.readTop(root, list)
		return true
	}
	return false
}

func (r *reader) readPart(text []byte, linesBefore int) bool {
	list, ok := r.parsePart(text)
	if !ok || list.Kind != yaml.SequenceNode {
		return false
	}
	r.base = linesBefore
	for _, n := range list.Content {
		if r.stopped {
			break
		}
		r.readTask(n)
	}
	r.base = 0
	return true
}

// parsePart returns the only document of text.
func (r *reader) parsePart(text []byte) (*yaml.Node, bool) {
	if r.estimate(text) > r.limits.MaxValues {
		return nil, false
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document, second yaml.Node
	if decodeNode(decoder, &document) != nil || len(document.Content) != 1 {
		return nil, false
	}
	if !errors.Is(decodeNode(decoder, &second), io.EOF) {
		return nil, false
	}
	return document.Content[0], true
}

// findLayout looks for the list of tasks line by line. It may be wrong about
// what it finds, for instance inside of a text in quotes: then a part does not
// parse or the frame has no such key.
func findLayout(text []byte, size int) (layout, bool) {
	var l layout
	indent := -1
	for offset, line := 0, 1; offset < len(text); line++ {
		end := len(text)
		if i := bytes.IndexByte(text[offset:], '\n'); i >= 0 {
			end = offset + i + 1
		}
		content := bytes.TrimRight(text[offset:end], " \t\r\n")
		switch bare := bytes.TrimLeft(content, " "); {
		case l.tasksLine == 0:
			if isTasksKey(content) {
				l.tasksLine, l.begin = line, end
			}
		case len(bare) == 0 || bare[0] == '#':
			// Blank lines and comments belong to whatever is around them.
		case isEntry(bare) && (indent < 0 || len(content)-len(bare) == indent):
			indent = len(content) - len(bare)
			if n := len(l.parts); n == 0 || offset-l.parts[n-1].offset >= size {
				l.parts = append(l.parts, partStart{offset, line})
			}
		case indent < 0:
			return l, false
		case len(content)-len(bare) <= indent:
			l.end = offset
			return l, true
		}
		offset = end
	}
	l.end = len(text)
	return l, indent >= 0
}

func isTasksKey(line []byte) bool {
	rest, ok := bytes.CutPrefix(line, []byte("tasks:"))
	if !ok {
		return false
	}
	after := bytes.TrimLeft(rest, " \t")
	return len(after) == 0 || after[0] == '#' && len(after) < len(rest)
}

func isEntry(line []byte) bool {
	return line[0] == '-' && (len(line) == 1 || line[1] == ' ' || line[1] == '\t')
}
