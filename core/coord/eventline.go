package coord

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"jobq/core/state"
)

// appendMove appends what encoding/json writes of m, at a fifth of the time: the
// lines of the event log were the second largest part of what a completion costs.
func appendMove(dst []byte, m *Move) []byte {
	dst = append(dst, '{')
	dst = strconv.AppendUint(appendKey(dst, "v"), m.Version, 10)
	dst = m.Time.AppendFormat(append(appendKey(dst, "t"), '"'), time.RFC3339Nano)
	dst = append(dst, '"')
	dst = appendText(dst, "task", m.Task)
	dst = appendText(dst, "from", m.From)
	dst = appendText(dst, "to", m.To)
	dst = appendText(dst, "cause", string(m.Cause))
	dst = appendInt(dst, "attempt", int64(m.Attempt))
	dst = appendText(dst, "reason", m.Reason)
	if m.Exit != nil {
		dst = appendExit(appendKey(dst, "exit"), m.Exit)
	}
	if m.Seconds != 0 {
		dst = strconv.AppendFloat(appendKey(dst, "seconds"), m.Seconds, 'f', -1, 64)
	}
	return append(dst, '}')
}

func appendExit(dst []byte, x *state.Exit) []byte {
	dst = appendInt(append(dst, '{'), "code", int64(x.Code))
	if x.Known {
		dst = append(appendKey(dst, "known"), "true"...)
	}
	dst = appendText(dst, "signal", x.Signal)
	dst = appendText(dst, "word", x.Word)
	dst = appendText(dst, "worker", x.Worker)
	dst = appendInt(dst, "start", int64(x.Start))
	return append(dst, '}')
}

// appendKey appends the key of a member, after a comma where it is not the first.
func appendKey(dst []byte, key string) []byte {
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	return append(append(append(dst, '"'), key...), `":`...)
}

// appendInt appends a member, unless v is 0.
func appendInt(dst []byte, key string, v int64) []byte {
	if v == 0 {
		return dst
	}
	return strconv.AppendInt(appendKey(dst, key), v, 10)
}

// appendText appends a member, unless v is empty.
func appendText(dst []byte, key, v string) []byte {
	if v == "" {
		return dst
	}
	dst = appendKey(dst, key)
	if strings.IndexFunc(v, special) < 0 {
		return append(append(append(dst, '"'), v...), '"')
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // no text fails
	return append(dst, bytes.TrimSuffix(text.Bytes(), []byte("\n"))...)
}

// special reports whether r is not written as it is in every JSON text.
func special(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }
