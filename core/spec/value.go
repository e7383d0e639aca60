package spec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"jobq/core/dag"
)

// appendJSON appends the value of n as JSON, keys in the order of the text. It
// returns nil after a fault, which is reported.
func (r *reader) appendJSON(b []byte, n *yaml.Node, path dag.Path, depth int) []byte {
	if depth > r.limits.MaxDepth {
		r.stop(n, fmt.Sprintf("lists and maps are nested deeper than %d levels", r.limits.MaxDepth), "make it flatter; an alias may not contain itself")
	}
	if r.stopped {
		return nil
	}
	switch n.Kind {
	case yaml.MappingNode:
		return r.appendMap(b, n, path, depth)
	case yaml.SequenceNode:
		if !r.checkTag(n, path) {
			return nil
		}
		b = append(b, '[')
		for i, element := range n.Content {
			if i > 0 {
				b = append(b, ',')
			}
			if b = r.appendJSON(b, r.resolve(element), path, depth+1); b == nil {
				return nil
			}
		}
		return append(b, ']')
	default:
		if !r.checkTag(n, path) {
			return nil
		}
		return appendScalar(b, n)
	}
}

func (r *reader) appendMap(b []byte, n *yaml.Node, path dag.Path, depth int) []byte {
	if !r.checkTag(n, path) {
		return nil
	}
	b = append(b, '{')
	for i, p := range r.pairs(n, path, "the map") {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendText(b, p.key.Value), ':')
		if b = r.appendJSON(b, p.value, path, depth+1); b == nil {
			return nil
		}
	}
	if r.stopped {
		return nil
	}
	return append(b, '}')
}

// appendScalar appends a scalar: null, booleans and numbers as JSON has them,
// everything else, and every number that JSON cannot hold, as its source text.
func appendScalar(b []byte, n *yaml.Node) []byte {
	switch n.ShortTag() {
	case "!!null":
		return append(b, "null"...)
	case "!!bool":
		if word := strings.ToLower(n.Value); word == "true" || word == "false" {
			return append(b, word...)
		}
	case "!!int", "!!float":
		if number, ok := numberText(n.Value); ok {
			return append(b, number...)
		}
	}
	return appendText(b, n.Value)
}

// appendText appends text as a JSON string.
func appendText(b []byte, text string) []byte {
	plain := true
	for i := range len(text) {
		c := text[i]
		plain = plain && c >= 0x20 && c < 0x7f && c != '"' && c != '\\'
	}
	if plain {
		b = append(b, '"')
		b = append(b, text...)
		return append(b, '"')
	}
	var buffer bytes.Buffer
	e := json.NewEncoder(&buffer)
	e.SetEscapeHTML(false)
	if err := e.Encode(text); err != nil {
		// A string always encodes and a buffer always takes it.
		return append(b, `""`...)
	}
	return append(b, bytes.TrimSuffix(buffer.Bytes(), []byte{'\n'})...)
}

var (
	jsonNumber  = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)
	leadingZero = regexp.MustCompile(`^[-+]?0[0-9_]`)
)

// numberText returns the number that a YAML scalar means in the notation of
// JSON, digit by digit and never through a float. It refuses what JSON has no
// number for (.inf, .nan), what no reader's float can hold (1e999, 1e-999), and
// leading zeros: some read 010 as eight, others as ten, and its author may mean
// a file mode.
func numberText(text string) (string, bool) {
	if !jsonNumber.MatchString(text) {
		var ok bool
		if text, ok = plainNumber(text); !ok {
			return "", false
		}
	}
	mantissa, _, _ := strings.Cut(strings.ToLower(text), "e")
	f, err := strconv.ParseFloat(text, 64)
	overflows := err != nil && strings.ContainsAny(text, ".eE")
	underflows := f == 0 && strings.ContainsAny(mantissa, "123456789")
	return text, !overflows && !underflows
}

// plainNumber rewrites the notations of YAML that JSON lacks.
func plainNumber(text string) (string, bool) {
	if leadingZero.MatchString(text) {
		return "", false
	}
	sign, digits := "", strings.ReplaceAll(strings.TrimPrefix(text, "+"), "_", "")
	if rest, negative := strings.CutPrefix(digits, "-"); negative {
		sign, digits = "-", rest
	}
	if len(digits) > 2 && digits[0] == '0' && strings.ContainsRune("xXoObB", rune(digits[1])) {
		value, ok := new(big.Int).SetString(digits, 0)
		if !ok {
			return "", false
		}
		return sign + value.String(), true
	}
	mantissa, exponent := digits, ""
	if e := strings.IndexAny(digits, "eE"); e >= 0 {
		mantissa, exponent = digits[:e], digits[e:]
	}
	whole, fraction, pointed := strings.Cut(mantissa, ".")
	if pointed {
		if whole == "" {
			whole = "0"
		}
		if fraction == "" {
			fraction = "0"
		}
		mantissa = whole + "." + fraction
	}
	number := sign + mantissa + exponent
	return number, jsonNumber.MatchString(number)
}
