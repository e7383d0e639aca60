package azstorage

import (
	"bytes"
	"encoding/xml"
	"io"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
)

// maxRequest is the largest body of a request that the queue service reads, in
// bytes. The emulator knows no such limit.
const maxRequest = 131584

// envelope is what the body of a request has around the text of its message.
const envelope = len(xml.Header + "<QueueMessage><MessageText></MessageText></QueueMessage>")

// plainQuotes writes the quotes of a message as they are. The client has them in five
// bytes each, as an attribute of XML would need it and a text does not: a message of
// JSON that is full of them would not fit.
type plainQuotes struct{}

func (plainQuotes) Do(req *policy.Request) (*http.Response, error) {
	if body := req.Body(); body != nil && req.Raw().Header.Get("Content-Type") == "application/xml" {
		raw, err := io.ReadAll(body)
		if err != nil {
			return nil, err
		}
		if bytes.Contains(raw, []byte("<QueueMessage>")) {
			// No text can hold these: its own & is written as &amp;.
			raw = bytes.ReplaceAll(raw, []byte("&#34;"), []byte{'"'})
			raw = bytes.ReplaceAll(raw, []byte("&#39;"), []byte{'\''})
		}
		if err := req.SetBody(streaming.NopCloser(bytes.NewReader(raw)), "application/xml"); err != nil {
			return nil, err
		}
	}
	return req.Next()
}

// requestSize returns the size of the body of a request that sends text, which the
// client writes with encoding/xml and plainQuotes shortens.
func requestSize(text string) int {
	size := envelope + len(text)
	for i := range len(text) {
		switch text[i] {
		case '&', '\t', '\n', '\r': // &amp; &#x9; &#xA; &#xD;
			size += 4
		case '<', '>': // &lt; &gt;
			size += 3
		}
	}
	return size
}

// fits reports whether one message can have text.
func fits(text string) bool { return len(text) <= maxMessage && requestSize(text) <= maxRequest }
