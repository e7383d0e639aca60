package guard

import (
	"encoding/binary"
	"errors"
	"io"
	"time"

	"jobq/core/fault"
)

// preamble opens the pipe. Its digit is the version of all that follows.
const preamble = "jobqgrd1"

// greeting is the first line of a guardian that understood the preamble.
const greeting = "ready 1"

// maxRunID is the longest run id in bytes. A message stays below the 512 bytes
// that POSIX writes to a pipe in one piece, so no write is ever cut short.
const maxRunID = 480

// A message is a fixed header and the run id:
//
//	length of the run id  uint16
//	kind                  uint8
//	process group         int32
//	ttl, nanoseconds      int64
//	sent, nanoseconds     int64
//	run id                bytes
const headerBytes = 2 + 1 + 4 + 8 + 8

// kind says what a message is about.
type kind uint8

const (
	// add registers a run or replaces all that is known of it.
	add kind = iota + 1
	// beat says when the last successful beat of a run was sent.
	beat
	// remove forgets a run, whose group is gone.
	remove
)

// message is one order to the guardian. Fields that a kind does not need are zero.
type message struct {
	kind  kind
	group Group
}

// checkRunID refuses what a message or an environment cannot carry.
func checkRunID(id string) error {
	switch {
	case id == "":
		return fault.New(fault.Invalid, "a run needs an id")
	case len(id) > maxRunID:
		return fault.Newf(fault.Invalid, "the run id of %d bytes is over the limit of %d", len(id), maxRunID)
	}
	for i := range len(id) {
		if id[i] == 0 {
			return fault.Newf(fault.Invalid, "the run id %q contains a NUL byte", id)
		}
	}
	return nil
}

// append adds the wire form of m, whose run id was checked, to b.
func (m message) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(len(m.group.RunID)))
	b = append(b, byte(m.kind))
	b = binary.BigEndian.AppendUint32(b, uint32(int32(m.group.PGID)))
	b = binary.BigEndian.AppendUint64(b, uint64(m.group.TTL))
	b = binary.BigEndian.AppendUint64(b, uint64(m.group.Sent))
	return append(b, m.group.RunID...)
}

// readPreamble consumes the beginning of the pipe.
func readPreamble(r io.Reader) error {
	got := make([]byte, len(preamble))
	if _, err := io.ReadFull(r, got); err != nil {
		return fault.Wrap(fault.Corrupt, err, "the pipe ended before its preamble")
	}
	if string(got) != preamble {
		return fault.Newf(fault.TooNew, "the pipe begins with %q, want %q", got, preamble)
	}
	return nil
}

// readMessage reads the next message. The end of the pipe between two messages
// is io.EOF; everything else that is no message is fault.Corrupt.
func readMessage(r io.Reader) (message, error) {
	var header [headerBytes]byte
	if _, err := io.ReadFull(r, header[:]); errors.Is(err, io.EOF) {
		return message{}, io.EOF
	} else if err != nil {
		return message{}, fault.Wrap(fault.Corrupt, err, "the pipe ended within a message")
	}
	length := int(binary.BigEndian.Uint16(header[:]))
	m := message{kind: kind(header[2]), group: Group{
		PGID: int(int32(binary.BigEndian.Uint32(header[3:]))),
		TTL:  time.Duration(binary.BigEndian.Uint64(header[7:])),
		Sent: Moment(binary.BigEndian.Uint64(header[15:])),
	}}
	if length > maxRunID || m.kind < add || m.kind > remove || m.group.PGID < 0 || m.group.TTL < 0 || m.group.Sent < 0 {
		return message{}, fault.Newf(fault.Corrupt, "not a message: header %x", header)
	}
	id := make([]byte, length)
	if _, err := io.ReadFull(r, id); err != nil {
		return message{}, fault.Wrap(fault.Corrupt, err, "the pipe ended within a message")
	}
	m.group.RunID = string(id)
	if err := checkRunID(m.group.RunID); err != nil {
		return message{}, fault.Wrap(fault.Corrupt, err, "not a message")
	}
	return m, nil
}
