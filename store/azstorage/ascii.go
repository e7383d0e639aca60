package azstorage

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
)

// asciiBodies is a policy that escapes what is not ASCII in the JSON documents that go
// to a table. Azurite decodes the body of an insert in the pieces in which it arrives,
// and loses a character that lies in two of them.
type asciiBodies struct{}

func (asciiBodies) Do(r *policy.Request) (*http.Response, error) {
	if r.Body() == nil {
		return r.Next()
	}
	body, err := io.ReadAll(r.Body())
	if err != nil {
		return nil, err
	}
	if err := r.RewindBody(); err != nil {
		return nil, err
	}
	if escaped := ascii(body); len(escaped) != len(body) {
		if err := r.SetBody(streaming.NopCloser(bytes.NewReader(escaped)), r.Raw().Header.Get("Content-Type")); err != nil {
			return nil, err
		}
	}
	return r.Next()
}

// ascii escapes what is not ASCII in a JSON document.
func ascii(body []byte) []byte {
	if !slices.ContainsFunc(body, func(b byte) bool { return b >= utf8.RuneSelf }) {
		return body
	}
	out := make([]byte, 0, 2*len(body))
	for _, r := range string(body) {
		switch {
		case r < utf8.RuneSelf:
			out = append(out, byte(r))
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, "\\u%04x\\u%04x", high, low)
		default:
			out = fmt.Appendf(out, "\\u%04x", r)
		}
	}
	return out
}
