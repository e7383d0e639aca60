package cond

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ellipsis marks what was cut.
const ellipsis = "…"

// cut shortens a text to at most limit bytes, at a character.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	end := limit - len(ellipsis)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + ellipsis
}

// oneLine puts single blanks for line breaks and runs of blanks.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// render returns a value as JSON of at most limit bytes, cut with an ellipsis,
// without ever writing much more than that. Infinity is spelled as Python does.
func render(value any, limit int) string {
	w := renderer{limit: limit}
	w.value(value)
	return cut(string(w.text), limit)
}

// renderer writes until it is full.
type renderer struct {
	text  []byte
	limit int
}

func (w *renderer) full() bool { return len(w.text) > w.limit }

func (w *renderer) value(value any) {
	switch v := value.(type) {
	case nil:
		w.text = append(w.text, "null"...)
	case bool:
		w.text = strconv.AppendBool(w.text, v)
	case int64:
		w.text = strconv.AppendInt(w.text, v, 10)
	case *big.Int:
		w.text = v.Append(w.text, 10)
	case float64:
		w.float(v)
	case string:
		w.string(v)
	case list:
		w.items(v)
	case tuple:
		w.items(v)
	case object:
		w.object(v)
	}
}

// float writes a float so that it is told from an integer.
func (w *renderer) float(value float64) {
	if math.IsInf(value, 0) {
		infinity := "Infinity"
		if value < 0 {
			infinity = "-Infinity"
		}
		w.text = append(w.text, infinity...)
		return
	}
	digits, err := json.Marshal(value)
	if err != nil {
		return
	}
	w.text = append(w.text, digits...)
	if !strings.ContainsAny(string(digits), ".e") {
		w.text = append(w.text, ".0"...)
	}
}

func (w *renderer) string(value string) {
	if len(value) > w.limit {
		value = value[:w.limit+1]
	}
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err == nil {
		w.text = append(w.text, bytes.TrimSpace(buffer.Bytes())...)
	}
}

func (w *renderer) items(items []any) {
	w.text = append(w.text, '[')
	for i, item := range items {
		if w.full() {
			return
		}
		if i > 0 {
			w.text = append(w.text, ", "...)
		}
		w.value(item)
	}
	w.text = append(w.text, ']')
}

// manyFields is how many fields an object may have to be shown by its fields:
// they have to be sorted first.
const manyFields = 256

func (w *renderer) object(members object) {
	if len(members) > manyFields {
		w.text = fmt.Appendf(w.text, "{%s %d fields}", ellipsis, len(members))
		return
	}
	w.text = append(w.text, '{')
	for i, key := range slices.Sorted(maps.Keys(members)) {
		if w.full() {
			return
		}
		if i > 0 {
			w.text = append(w.text, ", "...)
		}
		w.string(key)
		w.text = append(w.text, ": "...)
		w.value(members[key])
	}
	w.text = append(w.text, '}')
}
