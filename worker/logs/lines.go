package logs

import "bytes"

// maxLine is the longest piece that goes to a LineFunc.
const maxLine = 64 << 10

// lines is the writer of one source. It cuts what passes into lines.
type lines struct {
	stream *Stream
	source string
	// rest is the begun line.
	rest []byte
}

func (w *lines) Write(p []byte) (int, error) {
	w.stream.add(p)
	if w.stream.line == nil {
		return len(p), nil
	}
	for rest := p; len(rest) > 0; {
		at := bytes.IndexByte(rest, '\n')
		if at < 0 {
			w.begin(rest)
			break
		}
		if len(w.rest) > 0 {
			w.begin(rest[:at])
			w.end()
		} else {
			w.stream.line(w.source, rest[:at])
		}
		rest = rest[at+1:]
	}
	return len(p), nil
}

// begin adds to the begun line.
func (w *lines) begin(p []byte) {
	for len(w.rest)+len(p) > maxLine {
		n := maxLine - len(w.rest)
		w.rest = append(w.rest, p[:n]...)
		p = p[n:]
		w.end()
	}
	w.rest = append(w.rest, p...)
}

// end hands over the begun line, if there is one.
func (w *lines) end() {
	if len(w.rest) > 0 {
		w.stream.line(w.source, w.rest)
		w.rest = w.rest[:0]
	}
}
