package guard

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"jobq/core/fault"
)

// samples are messages of every kind and at every limit.
func samples() []message {
	return []message{
		{add, Group{RunID: "wf/task/1.1", PGID: 4711, TTL: 5 * time.Minute, Sent: 1 << 50}},
		{add, Group{RunID: "no group yet"}},
		{beat, Group{RunID: "bytes \xff\n\"", Sent: 1<<63 - 1}},
		{remove, Group{RunID: strings.Repeat("x", maxRunID)}},
		{add, Group{RunID: "x", PGID: 1<<31 - 1, TTL: 1<<63 - 1}},
	}
}

func TestMessagesSurviveThePipe(t *testing.T) {
	t.Parallel()
	var wire []byte
	for _, m := range samples() {
		before := len(wire)
		wire = m.append(wire)
		if size := len(wire) - before; size > 512 {
			t.Errorf("message %+v has %d bytes; POSIX writes 512 in one piece", m, size)
		}
	}
	r := bytes.NewReader(wire)
	for _, want := range samples() {
		if got, err := readMessage(r); err != nil || got != want {
			t.Errorf("readMessage = %+v, %v, want %+v", got, err, want)
		}
	}
	if _, err := readMessage(r); !errors.Is(err, io.EOF) {
		t.Errorf("readMessage at the end = %v, want EOF", err)
	}
}

func TestACutMessageIsNoEnd(t *testing.T) {
	t.Parallel()
	wire := samples()[0].append(nil)
	for n := 1; n < len(wire); n++ {
		if _, err := readMessage(bytes.NewReader(wire[:n])); !fault.Is(err, fault.Corrupt) {
			t.Errorf("readMessage of the first %d bytes = %v, want corrupt", n, err)
		}
	}
}

func FuzzReadMessage(f *testing.F) {
	for _, m := range samples() {
		f.Add(m.append(nil))
	}
	f.Add([]byte{})
	f.Add(bytes.Repeat([]byte{0xff}, headerBytes))
	f.Fuzz(func(t *testing.T, wire []byte) {
		r := bytes.NewReader(wire)
		m, err := readMessage(r)
		if err != nil {
			if !errors.Is(err, io.EOF) && !fault.Is(err, fault.Corrupt) {
				t.Errorf("readMessage(%x) = %v, want EOF or corrupt", wire, err)
			}
			return
		}
		if read := wire[:len(wire)-r.Len()]; !bytes.Equal(m.append(nil), read) {
			t.Errorf("readMessage(%x) = %+v, whose form is %x", read, m, m.append(nil))
		}
	})
}
