package azstorage

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"jobq/core/fault"
	"jobq/core/msg"
	"jobq/core/port"
)

// Longest names that the services accept, in characters.
const (
	maxPrefix    = 35
	maxQueueName = 63
	maxBlobName  = 1024
	maxKey       = 512
)

// checkAccountName holds name to the rule of storage accounts.
func checkAccountName(name string) error {
	if len(name) < 3 || len(name) > 24 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
		return fault.Newf(fault.Invalid, "%q is not the name of a storage account: those have 3 to 24 lower-case letters and digits", name).
			WithRemedy("write the name alone, as in myaccount/MyPrefix; a connection string belongs into the environment")
	}
	return nil
}

// checkPrefix holds prefix to what its container, table and queue names allow:
// with 35 characters the poison queue of the inbox has 63.
func checkPrefix(prefix string) error {
	ok := len(prefix) >= 2 && len(prefix) <= maxPrefix
	for i, c := range prefix {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		ok = ok && (letter || i > 0 && c >= '0' && c <= '9')
	}
	if !ok {
		return fault.Newf(fault.Invalid, "%q cannot be a prefix in a storage account: use 2 to %d letters and digits, starting with a letter", prefix, maxPrefix)
	}
	return nil
}

// checkContainerName holds name to the rule of blob containers.
func checkContainerName(name string) error { return checkDashed("container", name, 63) }

// checkQueueName holds name to the rule of Storage Queues.
func checkQueueName(name string) error { return checkDashed("queue", name, maxQueueName) }

func checkDashed(what, name string, longest int) error {
	why := ""
	switch {
	case len(name) < 3 || len(name) > longest:
		why = fmt.Sprintf("it has %d characters, 3 to %d are allowed", len(name), longest)
	case strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "":
		why = "it has a character that is not a lower-case letter, a digit or a hyphen"
	case name[0] == '-' || name[len(name)-1] == '-':
		why = "it starts or ends with a hyphen"
	case strings.Contains(name, "--"):
		why = "it has two hyphens in a row"
	default:
		return nil
	}
	return fault.Newf(fault.Invalid, "%q cannot be the name of a %s: %s", name, what, why).
		WithRemedy("use lower-case letters, digits and single hyphens, starting and ending with a letter or digit")
}

// poisonQueue reports whether name is that of a poison queue.
func poisonQueue(name string) bool {
	return strings.HasSuffix(name, "-failed") || strings.HasSuffix(name, "-workflow-completions-poison")
}

func definitionBlob(wf string) string { return msg.Escape(wf) + ".def.bin" }
func stateBlob(wf string) string      { return msg.Escape(wf) + ".state.bin" }

// recordsPrefix starts the names of the records of wf.
func recordsPrefix(wf string) string { return "attempts/" + msg.Escape(wf) + "/" }

func recordBlob(k port.RecordKey) string {
	return fmt.Sprintf("%s%s/%d", recordsPrefix(k.Workflow), msg.Escape(k.Task), k.Attempt)
}

// coordinatorLock keeps the name that it has in ai4s-jobq.
const coordinatorLock = "_coordinator.lock"

// leaseBlob names the blob of a lease. Workflow ids never start with an
// underscore, so it is no workflow's.
func leaseBlob(name string) string {
	if name == coordinatorLock {
		return name
	}
	return "_lease." + msg.Escape(name)
}

const membersPrefix = "workers/"

func memberBlob(id string) string { return membersPrefix + msg.Escape(id) }

// encodePath writes a free name as the name of a blob. A segment between
// slashes stays as it is wherever every client and the service agree on it;
// others become ~ and msg.Escape of the segment. So output names are those of
// ai4s-jobq but for the oddest tasks, and different names stay different.
func encodePath(name string) string {
	odd := false
	for segment := range strings.SplitSeq(name, "/") {
		odd = odd || oddSegment(segment)
	}
	if !odd {
		return name
	}
	segments := strings.Split(name, "/")
	for i, segment := range segments {
		if oddSegment(segment) {
			segments[i] = "~" + msg.Escape(segment)
		}
	}
	return strings.Join(segments, "/")
}

// decodePath returns the name that encodePath wrote, or false where it never
// writes such a blob name.
func decodePath(blob string) (string, bool) {
	if !strings.Contains(blob, "~") {
		return blob, true
	}
	segments := strings.Split(blob, "/")
	for i, segment := range segments {
		if rest, ok := strings.CutPrefix(segment, "~"); ok {
			text, err := msg.Unescape(rest)
			if err != nil {
				return "", false
			}
			segments[i] = text
		}
	}
	return strings.Join(segments, "/"), true
}

// oddSegment reports whether somebody on the way folds, trims or refuses s:
// URL libraries eat empty and dotted segments, the service eats dots at an end
// and turns a backslash around, XML listings lack control characters.
func oddSegment(s string) bool {
	if s == "" || s[0] == '~' || s[0] == ' ' || s[len(s)-1] == ' ' || s[len(s)-1] == '.' || strings.Contains(s, `\`) {
		return true
	}
	return strings.ContainsFunc(s, func(r rune) bool { return !inXML(r) || unicode.IsControl(r) }) || !utf8.ValidString(s)
}

// inXML reports whether XML can carry r.
func inXML(r rune) bool {
	return r == '\t' || r == '\n' || r == '\r' || r >= 0x20 && r <= 0xd7ff || r >= 0xe000 && r <= 0xfffd || r >= 0x10000 && r <= 0x10ffff
}

// folder returns name up to its last slash: a listing of names that start with
// name needs no more of the service, whatever the last segment is written as.
func folder(name string) string { return encodeFolder(name[:strings.LastIndexByte(name, '/')+1]) }

// encodeFolder is encodePath for a name that ends in a slash or is empty.
func encodeFolder(name string) string {
	if name == "" {
		return ""
	}
	return encodePath(strings.TrimSuffix(name, "/")) + "/"
}

// checkBlobName refuses what the service would refuse for its length.
func checkBlobName(what, blob string) error {
	if n := utf8.RuneCountInString(blob); n > maxBlobName {
		return fault.Newf(fault.Invalid, "the name of %s has %d characters when written for the store, at most %d are possible", what, n, maxBlobName)
	}
	return nil
}

// checkKey refuses the key of an entity that the service would refuse for its
// length.
func checkKey(what, key string) error {
	if len(key) > maxKey {
		return fault.Newf(fault.Invalid, "the name of %s has %d characters when written for the table, at most %d are possible", what, len(key), maxKey)
	}
	return nil
}
