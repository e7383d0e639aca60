package worker

import "fmt"

const (
	excerptHead = 256
	excerptTail = 1024
)

// excerpt is a writer that keeps the beginning and the end of what passes, for
// an error text. It is for one goroutine.
type excerpt struct {
	head, tail []byte
	size       int
}

func (e *excerpt) Write(p []byte) (int, error) {
	n := len(p)
	e.size += n
	if room := excerptHead - len(e.head); room > 0 {
		room = min(room, len(p))
		e.head = append(e.head, p[:room]...)
		p = p[room:]
	}
	p = p[max(0, len(p)-excerptTail):]
	e.tail = append(e.tail, p...)
	if len(e.tail) > 4*excerptTail {
		e.tail = append(e.tail[:0], e.tail[len(e.tail)-excerptTail:]...)
	}
	return n, nil
}

// String returns what was kept, with a note where something is missing.
func (e *excerpt) String() string {
	tail := e.tail[max(0, len(e.tail)-excerptTail):]
	if cut := e.size - len(e.head) - len(tail); cut > 0 {
		return fmt.Sprintf("%s\n[... %d bytes are in the log ...]\n%s", e.head, cut, tail)
	}
	return string(e.head) + string(tail)
}
