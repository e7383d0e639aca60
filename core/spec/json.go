package spec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// jsonReader makes nodes of JSON with the place of every value. Only texts
// that are valid JSON may be given to it.
type jsonReader struct {
	*reader
	decoder *json.Decoder
	// line and column are those of the byte at offset.
	offset, line, column int
	// values counts the nodes of the tree that is being built.
	values int
}

// readJSON reads the text as JSON, task by task.
func (r *reader) readJSON() {
	if len(bytes.TrimSpace(r.text)) == 0 {
		r.reportAt(place{1, 1}, "the file is empty", `begin with {"name": "my-workflow", "tasks": [`)
		return
	}
	if err := syntaxFault(r.text); err != nil {
		r.jsonSyntaxError(err)
		return
	}
	j := &jsonReader{reader: r, decoder: json.NewDecoder(bytes.NewReader(r.text)), line: 1, column: 1}
	j.decoder.UseNumber()
	if root, list := j.readObject(); root != nil && !r.stopped {
		r.readTop(root, list)
	}
}

// syntaxFault returns what is wrong with text as JSON, or nil.
func syntaxFault(text []byte) error {
	if json.Valid(text) {
		return nil
	}
	var value json.RawMessage
	return json.Unmarshal(text, &value)
}

func (r *reader) jsonSyntaxError(err error) {
	syntax, ok := errors.AsType[*json.SyntaxError](err)
	if !ok {
		r.reportAt(place{1, 1}, "the text is not JSON", "check it with a JSON formatter")
		return
	}
	offset := max(int(syntax.Offset)-1, 0)
	message := strings.TrimPrefix(syntax.Error(), "json: ")
	remedy := "check quotes, commas and brackets at this place"
	switch {
	case strings.Contains(message, "unexpected end"):
		message, remedy = "the text ends in the middle of a value", "close what is still open"
		offset = len(r.text)
	case strings.Contains(message, "after top-level value"):
		message, remedy = "there is more text after the end of the workflow", "put every workflow into a file of its own"
	case strings.Contains(message, "exceeded max depth"):
		message, remedy = "lists and maps are nested too deep", "make it flatter"
	}
	r.reportAt(placeOf(r.text, offset), message, remedy)
}

// readObject reads the object of the workflow and every task in it. list is the
// value of its first `tasks`, if that is an array; its elements are read and
// forgotten. Without an object, root has what is there instead.
func (j *jsonReader) readObject() (root, list *yaml.Node) {
	root = j.next()
	if root.Kind != yaml.MappingNode {
		return root, nil
	}
	for j.decoder.More() && !j.stopped {
		key := j.next()
		value := j.next()
		if len(root.Content) > j.limits.MaxValues {
			j.tooManyValues(root)
		}
		j.values = 0
		if key.Value == "tasks" && value.Kind == yaml.SequenceNode && list == nil {
			list = value
			for j.decoder.More() && !j.stopped {
				j.values = 0
				if n := j.build(j.next(), 1); !j.stopped {
					j.readTask(n)
				}
			}
			j.token()
		} else {
			value = j.build(value, 1)
		}
		root.Content = append(root.Content, key, value)
	}
	return root, list
}

// build reads the rest of the array or object that n opens.
func (j *jsonReader) build(n *yaml.Node, depth int) *yaml.Node {
	if n.Kind == yaml.ScalarNode || j.stopped {
		return n
	}
	if depth > j.limits.MaxDepth {
		j.stop(n, fmt.Sprintf("lists and maps are nested deeper than %d levels", j.limits.MaxDepth), "make it flatter")
		return n
	}
	for j.decoder.More() && !j.stopped {
		if j.values++; j.values > j.limits.MaxValues {
			j.tooManyValues(n)
			return n
		}
		n.Content = append(n.Content, j.build(j.next(), depth+1))
	}
	j.token()
	return n
}

func (j *jsonReader) tooManyValues(n *yaml.Node) {
	j.stop(n, fmt.Sprintf("more than %d values stand in one task or key", j.limits.MaxValues), splitRemedy)
}

// next reads one token as a node; an array or object is still open then.
func (j *jsonReader) next() *yaml.Node {
	before := int(j.decoder.InputOffset())
	for before < len(j.text) && strings.IndexByte(" \t\r\n,:", j.text[before]) >= 0 {
		before++
	}
	n := j.nodeAt(before)
	switch token := j.token().(type) {
	case json.Delim:
		n.Kind, n.Tag = yaml.MappingNode, "!!map"
		if token == '[' {
			n.Kind, n.Tag = yaml.SequenceNode, "!!seq"
		}
	case string:
		n.Tag, n.Value, n.Style = "!!str", token, yaml.DoubleQuotedStyle
		if raw := j.text[before:j.decoder.InputOffset()]; hasLoneSurrogate(raw) {
			j.reportAt(j.at(n), "the text has half of a surrogate pair", "write both halves, or the character itself")
		}
	case json.Number:
		n.Tag, n.Value = "!!int", token.String()
		if strings.ContainsAny(n.Value, ".eE") {
			n.Tag = "!!float"
		}
	case bool:
		n.Tag, n.Value = "!!bool", fmt.Sprint(token)
	default:
		n.Tag, n.Value = "!!null", "null"
	}
	return n
}

// token returns the next token. The text is valid, so there is one.
func (j *jsonReader) token() json.Token {
	token, err := j.decoder.Token()
	if err != nil && !errors.Is(err, io.EOF) {
		j.stop(j.nodeAt(int(j.decoder.InputOffset())), "the text is not JSON", "check it with a JSON formatter")
	}
	return token
}

// nodeAt returns a scalar node with the place of offset. Offsets only grow, so
// every byte is counted once, also in a file that is one long line.
func (j *jsonReader) nodeAt(offset int) *yaml.Node {
	passed := j.text[j.offset:offset]
	if i := bytes.LastIndexByte(passed, '\n'); i >= 0 {
		j.line += bytes.Count(passed, []byte{'\n'})
		j.column = 1
		passed = passed[i+1:]
	}
	j.column += utf8.RuneCount(passed)
	j.offset = offset
	return &yaml.Node{Kind: yaml.ScalarNode, Line: j.line, Column: j.column}
}

// hasLoneSurrogate reports whether a JSON string has an escaped surrogate
// without its partner: such a text cannot be kept as it is.
func hasLoneSurrogate(raw []byte) bool {
	if !bytes.Contains(raw, []byte(`\u`)) && !bytes.Contains(raw, []byte(`\U`)) {
		return false
	}
	for i := 0; i < len(raw); {
		if raw[i] != '\\' {
			i++
			continue
		}
		first, ok := unicodeEscape(raw[i:])
		if !ok || !utf16.IsSurrogate(first) {
			i += 2
			continue
		}
		second, ok := unicodeEscape(raw[min(i+6, len(raw)):])
		if !ok || utf16.DecodeRune(first, second) == utf8.RuneError {
			return true
		}
		i += 12
	}
	return false
}

func unicodeEscape(raw []byte) (rune, bool) {
	if len(raw) < 6 || raw[0] != '\\' || raw[1] != 'u' {
		return 0, false
	}
	var value rune
	for _, c := range raw[2:6] {
		digit := strings.IndexByte("0123456789abcdef", c|0x20)
		if c <= '9' {
			digit = int(c - '0')
		}
		if digit < 0 {
			return 0, false
		}
		value = value<<4 | rune(digit)
	}
	return value, true
}
