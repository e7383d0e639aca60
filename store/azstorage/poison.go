package azstorage

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// A poisoned message keeps its reason in its text, since a message has nothing
// else: as a last member where the body is a JSON object, which other readers
// of the queue then still understand, else as a line of its own.
const (
	reasonMember = `,"__poison_reason":`
	reasonLine   = "\n" + `{"__poison_reason":`
)

// maxReason bounds the reason in bytes before it is written as JSON.
const maxReason = 2000

// packPoison returns the text of a body with its reason. What does not fit into
// a message is cut from the reason, never from the body.
func packPoison(body []byte, reason string) string {
	lead := reasonLine
	kept := string(body)
	if trimmed := bytes.TrimRight(body, " \t\r\n"); len(trimmed) == len(body) && json.Valid(body) && body[0] == '{' && len(bytes.TrimSpace(body[1:len(body)-1])) > 0 {
		lead, kept = reasonMember, string(body[:len(body)-1])
	}
	for most := maxReason; most > 0; most /= 2 {
		if text := kept + lead + quoteReason(reason, most) + "}"; fits(text) {
			return text
		}
	}
	return string(body)
}

// unpackPoison reads what packPoison wrote. Text of another form is a body
// without a reason.
func unpackPoison(text string) (body []byte, reason string) {
	for _, form := range []struct{ lead, tail string }{{reasonMember, "}"}, {reasonLine, ""}} {
		at := strings.LastIndex(text, form.lead)
		if at < 0 || !strings.HasSuffix(text, "}") {
			continue
		}
		quoted := text[at+len(form.lead) : len(text)-1]
		if json.Unmarshal([]byte(quoted), &reason) == nil {
			return []byte(text[:at] + form.tail), reason
		}
		reason = ""
	}
	return []byte(text), ""
}

// quoteReason writes up to most bytes of a reason as a JSON string in ASCII,
// which every queue can carry.
func quoteReason(reason string, most int) string {
	if len(reason) > most {
		reason = strings.ToValidUTF8(reason[:most], "")
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range reason {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r >= ' ' && r < 0x7f:
			b.WriteRune(r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		}
	}
	b.WriteByte('"')
	return b.String()
}
