package logs

import "fmt"

// backlog is output that waits for the store: the newest of it, 2*maxKept at most.
type backlog struct {
	data []byte
	// lost is how much was dropped before data.
	lost int
}

func (b *backlog) add(p []byte) {
	b.data = append(b.data, p...)
	// Twice the bound before it is cut, so that bytes are not moved at every write.
	if len(b.data) > 2*maxKept {
		b.cut()
	}
}

func (b *backlog) cut() {
	if over := len(b.data) - maxKept; over > 0 {
		b.lost += over
		b.data = append([]byte(nil), b.data[over:]...)
	}
}

// move takes everything from newer, which follows what b holds.
func (b *backlog) move(newer *backlog) {
	if newer.lost > 0 { // there is a gap in between; what lies before it goes too
		b.lost += len(b.data) + newer.lost
		b.data = nil
	}
	if len(b.data) == 0 {
		b.data = newer.data
	} else {
		b.data = append(b.data, newer.data...)
	}
	b.cut()
	*newer = backlog{}
}

// bytes returns what is to be stored, with a note in the place of what was lost.
func (b *backlog) bytes() []byte {
	if b.lost == 0 {
		return b.data
	}
	return append(fmt.Appendf(nil, "[jobq: %d bytes of output were lost here]\n", b.lost), b.data...)
}
