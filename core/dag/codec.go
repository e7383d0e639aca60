package dag

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"slices"
	"strings"

	"jobq/core/fault"
)

// formatVersion is the version of the stored form. A reader accepts its own
// version and older ones, and ignores fields that it does not know.
const formatVersion = 1

type stored struct {
	Version    int         `json:"v"`
	Definition *Definition `json:"definition"`
}

// Encode returns the stored form of d: JSON with a version, compressed. The
// same definition always gives the same bytes with the same program; compare
// definitions with Hash, never by these bytes.
func Encode(d *Definition) ([]byte, error) {
	var b bytes.Buffer
	// The fastest level: a definition is written once but the submitter waits
	// for it, and repetition in it is plain enough for any level.
	z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "encode the definition")
	}
	if err := writeJSON(z, stored{formatVersion, d}); err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "encode the definition")
	}
	if err := z.Close(); err != nil {
		return nil, fault.Wrap(fault.Internal, err, "encode the definition")
	}
	return b.Bytes(), nil
}

// Decode reads what Encode of this version or an older one wrote, compressed
// or as plain JSON. It fails with Corrupt for anything else and with TooNew for
// a later version. The definition is not validated again.
func Decode(b []byte) (*Definition, error) {
	if bytes.HasPrefix(b, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			return nil, fault.Wrap(fault.Corrupt, err, "decompress the definition")
		}
		if b, err = io.ReadAll(z); err != nil {
			return nil, fault.Wrap(fault.Corrupt, err, "decompress the definition")
		}
	}
	var version struct {
		Version int `json:"v"`
	}
	if err := json.Unmarshal(b, &version); err != nil {
		return nil, fault.Wrap(fault.Corrupt, err, "decode the definition")
	}
	if version.Version > formatVersion {
		return nil, fault.Newf(fault.TooNew, "the definition has format %d; this program knows formats up to %d", version.Version, formatVersion)
	}
	var s stored
	if err := json.Unmarshal(b, &s); err != nil {
		return nil, fault.Wrap(fault.Corrupt, err, "decode the definition")
	}
	if s.Version < 1 || s.Definition == nil {
		return nil, fault.New(fault.Corrupt, "the stored definition has no version or no content")
	}
	return s.Definition, nil
}

// Hash identifies what d asks for: the SHA-256, in hex, of a form in which
// defaults are filled in and the keys of kwargs are sorted. Two files that
// differ in layout, comments, key order or format give the same hash; another
// order of tasks or dependencies gives another.
func Hash(d *Definition) string {
	c := *d
	c.Tasks = slices.Clone(d.Tasks)
	ApplyDefaults(&c)
	for i := range c.Tasks {
		t := &c.Tasks[i]
		t.Kwargs = slices.Clone(t.Kwargs)
		for k := range t.Kwargs {
			t.Kwargs[k].Value = sortedJSON(t.Kwargs[k].Value)
		}
		slices.SortFunc(t.Kwargs, func(a, b Kwarg) int { return strings.Compare(a.Key, b.Key) })
	}
	h := sha256.New()
	if err := writeJSON(h, stored{formatVersion, &c}); err != nil {
		// A value that is no JSON: hash what can be said about it. Validate
		// refuses such a definition.
		io.WriteString(h, err.Error())
	}
	return hex.EncodeToString(h.Sum(nil))
}

// sortedJSON returns v with the keys of its objects sorted and its numbers
// untouched, or v itself where it holds no object.
func sortedJSON(v json.RawMessage) json.RawMessage {
	if !bytes.ContainsRune(v, '{') {
		return v
	}
	d := json.NewDecoder(bytes.NewReader(v))
	d.UseNumber()
	var value any
	if d.Decode(&value) != nil {
		return v
	}
	var b bytes.Buffer
	if writeJSON(&b, value) != nil {
		return v
	}
	return bytes.TrimSpace(b.Bytes())
}

// writeJSON leaves <, > and & as they are: they are common in commands, and
// the text of a value must come back as it was.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
