package spec

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// readYAML reads the text task by task where its layout allows that, else as a
// whole.
func (r *reader) readYAML() {
	if at, char := firstControl(r.text); at >= 0 {
		r.reportAt(placeOf(r.text, at), fmt.Sprintf("the character %U is not allowed", char), "remove it, or write it as an escape in double quotes")
		return
	}
	r.unusualBreaks = hasUnusualBreaks(r.text)
	if r.readByTask() {
		return
	}
	r.restart()
	r.readWhole()
}

// firstControl returns the first character that YAML forbids, or -1.
func firstControl(text []byte) (int, rune) {
	for i := 0; i < len(text); {
		if c := text[i]; c >= 0x20 && c < 0x7f || c == '\n' || c == '\r' || c == '\t' {
			i++
			continue
		}
		char, size := utf8.DecodeRune(text[i:])
		switch {
		case char < 0x20, char >= 0x7f && char < 0xa0 && char != 0x85, char == 0xfffe, char == 0xffff:
			return i, char
		}
		i += size
	}
	return -1, 0
}

// readWhole builds the tree of the whole text first.
func (r *reader) readWhole() {
	if n := r.estimate(r.text); n > r.limits.MaxValues {
		r.reportAt(place{1, 1}, fmt.Sprintf("the file has about %d values; at most %d are read at once", n, r.limits.MaxValues),
			"write the tasks as a list in the usual layout, `- name: ...` below `tasks:`, or use JSON")
		return
	}
	decoder := yaml.NewDecoder(bytes.NewReader(r.text))
	var document yaml.Node
	switch err := decodeNode(decoder, &document); {
	case errors.Is(err, io.EOF):
		r.reportAt(place{1, 1}, "the file is empty", "begin with `name: my-workflow` and `tasks:`")
		return
	case err != nil:
		r.syntaxError(err)
		return
	}
	var second yaml.Node
	if err := decodeNode(decoder, &second); !errors.Is(err, io.EOF) {
		r.secondDocument(&second)
		return
	}
	r.readTop(document.Content[0], nil)
}

func (r *reader) secondDocument(n *yaml.Node) {
	at := place{line: int32(n.Line)}
	// The line of the separator tells more than that of the content.
	if i := bytes.LastIndex(r.text, []byte("\n---")); i >= 0 {
		at = placeOf(r.text, i+1)
	}
	at.line = max(at.line, 1)
	r.reportAt(at, "the file has a second document", "put every workflow into a file of its own")
}

// decodeNode reads one document and turns a panic of the parser into an error:
// its input is anybody's, and it has had such defects.
func decodeNode(decoder *yaml.Decoder, n *yaml.Node) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.New("the text is not YAML")
		}
	}()
	return decoder.Decode(n)
}

// estimate returns at least half the number of nodes that the parser would make
// of text, without parsing: every node but the first of a list or map has one
// of these marks before it. Marks inside of texts are counted too.
func (r *reader) estimate(text []byte) int {
	n := 0
	for i, c := range text {
		switch c {
		case ',', '[', '{', '*', '&', '!':
			n++
		case ':', '-', '?':
			if i+1 == len(text) || bytes.IndexByte([]byte(" \t\r\n,[]{}"), text[i+1]) >= 0 || i > 0 && text[i-1] == '"' {
				n++
			}
		}
	}
	return n
}

var lineInError = regexp.MustCompile(`^(?:yaml: )?(?:line (\d+): )?(.*)$`)

// advice translates what the YAML parser says. It has no codes, so this goes
// by text; what is not found here is passed on as it is. The parser counts the
// lines of late faults, those of its grammar, from zero.
var advice = []struct {
	part            string
	late            bool
	message, remedy string
}{
	{"found character that cannot start any token", false, "a value begins with a character that has a meaning of its own in YAML", "put the value in quotes"},
	{"mapping values are not allowed in this context", false, "a `key: value` stands where no key can be", "check the indentation of this line; a text that contains `: ` is put in quotes"},
	{"block sequence entries are not allowed", false, "a list entry begins where none can be", "begin the list on a line of its own"},
	{"could not find expected ':'", false, "a key is not followed by `: `", "write `key: value`, or put the text in quotes"},
	{"found unexpected end of stream", false, "a text in quotes is not closed", "close it with the quote that it began with"},
	{"found unknown escape character", false, "the text in double quotes has an unknown escape", "write \\\\ for a backslash, or use single quotes"},
	{"found a tab character", false, "a tab stands where YAML wants spaces", "indent with spaces"},
	{"exceeded max depth", false, "lists and maps are nested too deep", "make it flatter"},
	{"did not find expected key", true, "the line does not fit the map that it is in", "check the indentation and the quotes of this line and of the one before"},
	{"did not find expected '-' indicator", true, "the line does not fit the list that it is in", "check the indentation; every entry begins with `- `"},
	{"did not find expected ',' or ']'", true, "a list in brackets is not closed or lacks a comma", "close it with ], put commas between the entries, and texts with ? or : in quotes"},
	{"did not find expected ',' or '}'", true, "a map in braces is not closed or lacks a comma", "close it with }, put commas between the entries, and texts with ? or : in quotes"},
	{"did not find expected <document start>", true, "the text goes on after its end", "check the indentation of this line"},
	{"did not find expected node content", true, "a value is missing", "write the value, or remove the mark before it"},
	{"found incompatible YAML document", true, "the directive %YAML names a version that is not known", "remove the line"},
	{"found undefined tag handle", true, "a tag is not known", "remove the tag, or put the text in quotes"},
}

// syntaxError reports what the parser could not read.
func (r *reader) syntaxError(err error) {
	parts := lineInError.FindStringSubmatch(err.Error())
	line, message, remedy := 1, "the text is not YAML", "check the indentation and the quotes"
	if parts != nil {
		line, _ = strconv.Atoi(parts[1])
		message = parts[2]
	}
	if rest, ok := strings.CutPrefix(message, "unknown anchor '"); ok {
		r.unknownAnchor(strings.TrimSuffix(rest, "' referenced"))
		return
	}
	for _, a := range advice {
		if strings.Contains(message, a.part) {
			message, remedy = a.message, a.remedy
			if a.late {
				line++
			}
			break
		}
	}
	line = max(line, 1)
	if at, ok := r.tabNear(line); ok {
		r.reportAt(at, "the line is indented with a tab", "indent with spaces")
		return
	}
	r.reportAt(place{line: int32(line)}, message, remedy)
}

// unknownAnchor reports an alias without an anchor. The parser does not say
// where it is.
func (r *reader) unknownAnchor(name string) {
	at := place{}
	if i := bytes.Index(r.text, []byte("*"+name)); i >= 0 {
		at = placeOf(r.text, i)
	}
	r.reportAt(at, "the alias *"+name+" has no anchor before it", "define it with &"+name+" first, or put a text that begins with * in quotes")
}

// tabNear looks for a tab in the indentation of line or its neighbours: the
// parser's own line is sometimes one off.
func (r *reader) tabNear(line int) (place, bool) {
	rest := r.text
	for at := 1; at <= line+1 && len(rest) > 0; at++ {
		if at >= line-1 {
			indent := rest[:len(rest)-len(bytes.TrimLeft(rest, " "))]
			if len(indent) < len(rest) && rest[len(indent)] == '\t' {
				return place{int32(at), int32(len(indent) + 1)}, true
			}
		}
		_, next := nextBreak(rest, r.unusualBreaks)
		rest = rest[next:]
	}
	return place{}, false
}
