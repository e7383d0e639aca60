package msg

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"jobq/core/fault"
)

const blobScheme = "blob:"

// CanonicalOutput names the blob of the output that the first start of the
// first attempt writes. References to it travel as the bare task name.
func CanonicalOutput(wf, task string) string { return wf + "/" + task + ".json" }

// StartOutput names the blob of the output of any other start.
func StartOutput(wf, task string, attempt, start uint32) string {
	return fmt.Sprintf("%s/__outputs/%s/%d.%d.json", wf, task, attempt, start)
}

// AttemptOf returns the attempt that a name of StartOutput or RefsBlob is of; ok is
// false for every other name.
func AttemptOf(name string) (attempt uint32, ok bool) {
	_, rest, _ := strings.Cut(name, "/")
	kind, rest, _ := strings.Cut(rest, "/")
	if kind != "__outputs" && kind != "__refs" {
		return 0, false
	}
	return attemptAtEnd(rest)
}

// AttemptOfLog returns the attempt that a name of LogName is of; ok is false for
// every other name.
func AttemptOfLog(name string) (attempt uint32, ok bool) {
	rest, ok := strings.CutPrefix(name, "logs/")
	if !ok {
		return 0, false
	}
	return attemptAtEnd(rest)
}

// attemptAtEnd reads the number with which the last part of name begins.
func attemptAtEnd(name string) (uint32, bool) {
	number, _, _ := strings.Cut(name[strings.LastIndexByte(name, '/')+1:], ".")
	n, err := strconv.ParseUint(number, 10, 32)
	return uint32(n), err == nil
}

// RefsBlob names the blob that holds the upstream references of an attempt
// whose message has no room for them.
func RefsBlob(wf, task string, attempt uint32) string {
	return fmt.Sprintf("%s/__refs/%s/%d.json", wf, task, attempt)
}

// LogName names the log of one start of an attempt.
func LogName(wf, task string, attempt, start uint32) string {
	return fmt.Sprintf("logs/%s/%s/%d.%d", wf, task, attempt, start)
}

// OutputRef says where an output is: inline as JSON text, or in a blob.
type OutputRef struct {
	Inline string
	Blob   string
	// MD5 is the hash of the blob's content in lower-case hex, empty where the
	// reference has none (those of ai4s-jobq).
	MD5 string
}

// maxBlobName is the longest name of a blob in Azure Storage, in characters.
const maxBlobName = 1024

// ParseOutputRef reads a reference that is inline JSON text, "blob:{name}" or
// "blob:{name}:{md5}". Fails with fault.Invalid for anything else.
func ParseOutputRef(ref string) (OutputRef, error) {
	rest, isBlob := strings.CutPrefix(ref, blobScheme)
	if !isBlob {
		// No JSON document begins with the letter b: the two forms never meet.
		if !json.Valid([]byte(ref)) {
			return OutputRef{}, fault.New(fault.Invalid, "an output reference must be JSON text or start with blob:")
		}
		return OutputRef{Inline: ref}, nil
	}
	// A task name may hold colons and hex digits, but names of output blobs end
	// in .json, so 32 hex digits at the end can only be a hash.
	name, sum := rest, ""
	if at := strings.LastIndexByte(rest, ':'); at >= 0 && isMD5(rest[at+1:]) {
		name, sum = rest[:at], strings.ToLower(rest[at+1:])
	}
	if name == "" {
		return OutputRef{}, fault.New(fault.Invalid, "an output reference names an empty blob")
	}
	if n := utf8.RuneCountInString(name); n > maxBlobName {
		return OutputRef{}, fault.Newf(fault.Invalid, "an output reference names a blob with %d characters, no store takes more than %d", n, maxBlobName)
	}
	return OutputRef{Blob: name, MD5: sum}, nil
}

// FormatBlobRef returns the reference to the blob called name; md5 may be empty.
func FormatBlobRef(name, md5 string) string {
	if md5 == "" {
		return blobScheme + name
	}
	return blobScheme + name + ":" + md5
}

func isMD5(s string) bool {
	if len(s) != 32 {
		return false
	}
	for _, c := range []byte(s) {
		if !isHex(c) {
			return false
		}
	}
	return true
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// Add files the reference of parent under the shortest form that says the same.
// An empty ref is a parent without output. The hash of a canonical output does
// not travel: the name alone keeps wide fan-ins inside one message.
func (r *Refs) Add(wf, parent, ref string) {
	switch {
	case ref == "":
		r.None = append(r.None, parent)
	case isCanonical(wf, parent, ref):
		r.Canonical = append(r.Canonical, parent)
	default:
		if r.Literal == nil {
			r.Literal = make(map[string]string)
		}
		r.Literal[parent] = ref
	}
}

func isCanonical(wf, parent, ref string) bool {
	name, isBlob := strings.CutPrefix(ref, blobScheme)
	if !isBlob {
		return false
	}
	sum, ok := strings.CutPrefix(name, CanonicalOutput(wf, parent))
	return ok && (sum == "" || sum[0] == ':' && isMD5(sum[1:]))
}

// All yields every parent once, in ascending order, with its full reference,
// which is empty for a parent without output. A parent that is listed twice has
// the reference that ai4s-jobq gives it: None wins over Literal over Canonical.
func (r *Refs) All(wf string) iter.Seq2[string, string] {
	full := make(map[string]string, len(r.Canonical)+len(r.Literal)+len(r.None))
	for _, parent := range r.Canonical {
		full[parent] = FormatBlobRef(CanonicalOutput(wf, parent), "")
	}
	maps.Copy(full, r.Literal)
	for _, parent := range r.None {
		full[parent] = ""
	}
	names := slices.Sorted(maps.Keys(full))
	return func(yield func(string, string) bool) {
		for _, parent := range names {
			if !yield(parent, full[parent]) {
				return
			}
		}
	}
}

func (r *Refs) empty() bool { return len(r.Canonical)+len(r.Literal)+len(r.None) == 0 }

// append writes the compact form: sections that are empty are left out.
func (r *Refs) append(dst []byte) []byte {
	o := newObject(usualSize / 4)
	if len(r.Canonical) > 0 {
		o.texts("s", r.Canonical)
	}
	if len(r.Literal) > 0 {
		inner := newObject(usualSize / 4)
		for _, parent := range slices.Sorted(maps.Keys(r.Literal)) {
			inner.text(parent, r.Literal[parent])
		}
		o.key("i").buf = append(o.buf, inner.end()...)
	}
	if len(r.None) > 0 {
		o.texts("n", r.None)
	}
	return append(dst, o.end()...)
}

// EncodeRefs returns the content of a RefsBlob.
func EncodeRefs(r Refs) []byte { return r.append(nil) }

// DecodeRefs reads what EncodeRefs wrote. Fails with fault.Invalid.
func DecodeRefs(body []byte) (Refs, error) { return decodeRefsMember(body) }

func decodeRefsMember(body []byte) (Refs, error) {
	var wire struct {
		S []string           `json:"s"`
		I map[string]*string `json:"i"`
		N []string           `json:"n"`
	}
	if err := json.Unmarshal(body, &wire); err != nil {
		return Refs{}, fault.Wrap(fault.Invalid, err, "the upstream references cannot be read")
	}
	r := Refs{Canonical: wire.S, None: wire.N}
	r.addNullable(wire.I)
	return r, nil
}

// decodeLegacyRefs reads the flat map of older coordinators.
func decodeLegacyRefs(body []byte) (*Refs, error) {
	var flat map[string]*string
	if err := json.Unmarshal(body, &flat); err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the upstream references cannot be read")
	}
	if len(flat) == 0 {
		return nil, nil
	}
	var r Refs
	r.addNullable(flat)
	return &r, nil
}

// addNullable adds literal references, of which null is "no output".
func (r *Refs) addNullable(refs map[string]*string) {
	for _, parent := range slices.Sorted(maps.Keys(refs)) {
		if refs[parent] == nil {
			r.None = append(r.None, parent)
			continue
		}
		if r.Literal == nil {
			r.Literal = make(map[string]string, len(refs))
		}
		r.Literal[parent] = *refs[parent]
	}
}

// attemptPath is the common part of names and ids of an attempt.
func attemptPath(wf, task string, attempt uint32) string {
	return wf + "/" + task + "/" + strconv.FormatUint(uint64(attempt), 10)
}
