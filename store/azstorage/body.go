package azstorage

import "encoding/xml"

// maxRequest is the largest body of a request that the queue service reads, in
// bytes. The emulator knows no such limit.
const maxRequest = 131584

// envelope is what the body of a request has around the text of its message.
const envelope = len(xml.Header + "<QueueMessage><MessageText></MessageText></QueueMessage>")

// requestSize returns the size of the body of a request that sends text, which the
// client writes with encoding/xml.
func requestSize(text string) int {
	size := envelope + len(text)
	for i := range len(text) {
		switch text[i] {
		case '"', '\'', '&', '\t', '\n', '\r': // &#34; &#39; &amp; &#x9; &#xA; &#xD;
			size += 4
		case '<', '>': // &lt; &gt;
			size += 3
		}
	}
	return size
}

// fits reports whether one message can have text.
func fits(text string) bool { return len(text) <= maxMessage && requestSize(text) <= maxRequest }
