package msg

import (
	"bytes"
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"jobq/core/fault"
)

// envelope is the outer JSON of every message. Kwargs holds JSON once more.
type envelope struct {
	Version        *int    `json:"version"`
	ReplyRequested bool    `json:"reply_requested"`
	Kwargs         *string `json:"kwargs"`
	NumRetries     int     `json:"num_retries"`
	ID             string  `json:"id"`
}

// usualSize is room for the kwargs of most messages, or for what stands around them
// and in front of their quotes.
const usualSize = 256

// encodeEnvelope wraps kwargs. An empty id becomes the one that ai4s-jobq
// computes: the MD5 of the envelope without it.
func encodeEnvelope(kwargs []byte, replyRequested bool, numRetries int, id string) []byte {
	o := newObject(usualSize + len(kwargs))
	o.int("version", 1)
	o.bool("reply_requested", replyRequested)
	o.text("kwargs", string(kwargs))
	o.int("num_retries", int64(numRetries))
	if id == "" {
		sum := md5.Sum(append(bytes.Clone(o.buf), '}'))
		id = hex.EncodeToString(sum[:])
	}
	o.text("id", id)
	return o.end()
}

// decodeEnvelope returns the envelope and the members of its kwargs.
func decodeEnvelope(body []byte) (envelope, []Kwarg, error) {
	var e envelope
	if err := json.Unmarshal(body, &e); err != nil {
		if wrapping := wrappingOf(body); wrapping != "" {
			return e, nil, fault.Newf(fault.Invalid, "the message is %s; messages must be plain JSON text", wrapping).
				WithRemedy(`send it without an encoding; for Azure Functions set "messageEncoding": "none" in host.json`)
		}
		return e, nil, fault.Wrap(fault.Invalid, err, "the message is not a JSON envelope")
	}
	if e.Version != nil && *e.Version != 0 && *e.Version != 1 {
		return e, nil, fault.Newf(fault.Invalid, "the message has envelope version %d; this program reads 0 and 1", *e.Version)
	}
	if e.Kwargs == nil {
		return e, nil, fault.New(fault.Invalid, `the message has no "kwargs"`)
	}
	kwargs, err := decodeObject([]byte(*e.Kwargs))
	if err != nil {
		return e, nil, fault.Wrap(fault.Invalid, err, `"kwargs" of the message must be a string that holds one JSON object`)
	}
	return e, kwargs, nil
}

// wrappingOf says how a message that is no JSON was wrapped, where that can be
// told. Senders and hosts that disagree about base64 are a known way to lose
// every message without a word.
func wrappingOf(body []byte) string {
	text, rounds := bytes.TrimSpace(body), 0
	for rounds < 2 {
		plain, err := base64.StdEncoding.DecodeString(string(text))
		if err != nil {
			return ""
		}
		rounds++
		text = bytes.TrimSpace(plain)
		if len(text) > 0 && text[0] == '{' {
			return [...]string{1: "base64 of JSON", 2: "base64 of base64 of JSON"}[rounds]
		}
	}
	return ""
}

// decodeMember decodes the value of one routing key into v.
func decodeMember(k Kwarg, v any) error {
	if err := json.Unmarshal(k.Value, v); err != nil {
		return fault.Wrap(fault.Invalid, err, fmt.Sprintf("the message has a bad %q", k.Key))
	}
	return nil
}
