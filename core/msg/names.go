package msg

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"jobq/core/fault"
)

const upperHex = "0123456789ABCDEF"

// Escape writes free text with the characters A-Z a-z 0-9 . _ - ~ only, so that
// it may stand in table keys, blob names and file names. Different texts stay
// different and case is kept. Every other byte becomes ~ and two hex digits; so
// does a dot at either end, because stores fold or refuse those. The empty text
// is a lone ~.
func Escape(s string) string {
	if s == "" {
		return "~"
	}
	if !needsEscape(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	for i := range len(s) {
		if plainAt(s, i) {
			b.WriteByte(s[i])
			continue
		}
		b.WriteByte('~')
		b.WriteByte(upperHex[s[i]>>4])
		b.WriteByte(upperHex[s[i]&15])
	}
	return b.String()
}

// Unescape returns the text that Escape wrote as s. Fails with fault.Invalid
// when Escape never writes s, so that no two names mean one text.
func Unescape(s string) (string, error) {
	if s == "~" {
		return "", nil
	}
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '~' {
			b.WriteByte(s[i])
			continue
		}
		if i+2 >= len(s) {
			break
		}
		high, low := strings.IndexByte(upperHex, s[i+1]), strings.IndexByte(upperHex, s[i+2])
		if high < 0 || low < 0 {
			break
		}
		b.WriteByte(byte(high<<4 | low))
		i += 2
	}
	if text := b.String(); Escape(text) == s {
		return text, nil
	}
	return "", fault.Newf(fault.Invalid, "%q is not an escaped name", s)
}

func needsEscape(s string) bool {
	for i := range len(s) {
		if !plainAt(s, i) {
			return true
		}
	}
	return false
}

func plainAt(s string, i int) bool {
	c := s[i]
	switch {
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-':
		return true
	case c == '.':
		return i > 0 && i < len(s)-1
	}
	return false
}

// maxID is the longest message id that Service Bus accepts.
const maxID = 128

// FirstSendID is the id of the first message of an attempt, the same whoever
// sends it. A store that knows the id drops the repeat.
func FirstSendID(wf, task string, attempt uint32) string {
	return boundedID(attemptPath(wf, task, attempt))
}

// ResendID is the id of a coordinator's further send of an attempt's message,
// from the state of that version.
func ResendID(wf, task string, attempt uint32, stateVersion uint64) string {
	return boundedID(attemptPath(wf, task, attempt) + "/v" + strconv.FormatUint(stateVersion, 10))
}

// RepairID is the id of a send by the running repair.
func RepairID(wf, task string, attempt uint32, stateVersion uint64) string {
	return boundedID(attemptPath(wf, task, attempt) + "/p" + strconv.FormatUint(stateVersion, 10))
}

// boundedID replaces an id that is too long by its hash. The form has one
// slash and every other id has two or more, so the two never meet.
func boundedID(id string) string {
	if len(id) <= maxID {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "sha256/" + hex.EncodeToString(sum[:])
}
