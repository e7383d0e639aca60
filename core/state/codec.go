package state

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	"jobq/core/fault"
)

// Versions of the stored format. A format is read one release before it is
// written: MinReader of a document may be at most Format of the program that
// reads it, MinWriter at most Format of one that saves it.
const (
	Format    = 1
	minReader = 1
	minWriter = 1
)

const magic = "JQST"

// Section numbers. They are only ever added to.
const (
	sectionHeader     = 1
	sectionStatus     = 2
	sectionAttempt    = 3
	sectionFailures   = 4
	sectionStarted    = 5
	sectionEnded      = 6
	sectionOutputs    = 7
	sectionReasons    = 8
	sectionExits      = 9
	sectionNotBefore  = 10
	sectionGiveBacks  = 11
	sectionFrozen     = 12
	lastKnownSection  = sectionFrozen
	maxSections       = 1024
	maxTasksInAColumn = 16 << 20
)

// section is a part of a document that this program does not know. It is
// written back as it was read.
type section struct {
	id   uint64
	body []byte
}

// header is the part of a document that is not a column.
type header struct {
	ID              string          `json:"id"`
	Definition      string          `json:"definition,omitempty"`
	Version         uint64          `json:"version"`
	Epoch           uint64          `json:"epoch,omitempty"`
	BornEpoch       uint64          `json:"born_epoch,omitempty"`
	HighestAttempt  uint32          `json:"highest_attempt,omitempty"`
	BornAttempt     uint32          `json:"born_attempt,omitempty"`
	Status          WorkflowStatus  `json:"status"`
	CancelRequested bool            `json:"cancel_requested,omitempty"`
	Namespace       string          `json:"namespace,omitempty"`
	CreatedAt       int64           `json:"created_at"`
	UpdatedAt       int64           `json:"updated_at"`
	Error           string          `json:"error,omitempty"`
	Commands        []CommandResult `json:"commands,omitempty"`
	Tasks           int             `json:"tasks"`
}

// Encode returns the stored form of w. Equal states have equal bytes.
func Encode(w *Workflow) ([]byte, error) {
	h, err := json.Marshal(header{
		ID: w.ID, Definition: w.Definition, Version: w.Version, Epoch: w.Epoch, BornEpoch: w.BornEpoch,
		HighestAttempt: w.HighestAttempt, BornAttempt: w.BornAttempt, Status: w.Status, CancelRequested: w.CancelRequested,
		Namespace: w.Namespace, CreatedAt: w.CreatedAt.UnixMilli(), UpdatedAt: w.UpdatedAt.UnixMilli(),
		Error: w.Error, Commands: w.Commands, Tasks: len(w.TaskStatus),
	})
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "the state header cannot be encoded")
	}
	base := w.CreatedAt.UnixMilli()
	e := encoder{b: make([]byte, 0, len(h)+16*len(w.TaskStatus)+256), n: len(w.TaskStatus)}
	e.b = append(e.b, magic...)
	e.b = binary.AppendUvarint(e.b, Format)
	e.b = binary.AppendUvarint(e.b, minReader)
	e.b = binary.AppendUvarint(e.b, minWriter)
	e.section(sectionHeader, func() { e.b = append(e.b, h...) })
	e.section(sectionStatus, func() { e.statuses(w.TaskStatus) })
	e.section(sectionAttempt, func() { e.uints(w.Attempt) })
	e.section(sectionFailures, func() { e.sparseUints(w.Failures) })
	e.section(sectionStarted, func() { e.times(w.StartedAt, base) })
	e.section(sectionEnded, func() { e.times(w.EndedAt, base) })
	e.section(sectionOutputs, func() { keyed(&e, w.Outputs, e.output) })
	e.section(sectionReasons, func() { keyed(&e, w.Reasons, e.text) })
	e.section(sectionExits, func() { e.exits(w.Exits) })
	e.section(sectionNotBefore, func() { keyed(&e, w.NotBefore, e.int) })
	e.section(sectionGiveBacks, func() { keyed(&e, w.GiveBacks, e.uint32) })
	e.section(sectionFrozen, func() { keyed(&e, w.Frozen, e.ascending) })
	for _, s := range w.unknown {
		e.section(s.id, func() { e.b = append(e.b, s.body...) })
	}
	return binary.BigEndian.AppendUint32(e.b, crc32.ChecksumIEEE(e.b)), nil
}

// Decode reads what Encode wrote. It fails with fault.TooNew for a document
// that only a newer program may read or save, and with fault.Corrupt for
// anything else that is not a state.
func Decode(b []byte) (*Workflow, error) {
	w, err := decode(b)
	if err != nil && fault.CodeOf(err) == fault.Internal {
		return nil, fault.Wrap(fault.Corrupt, err, "the stored state is damaged")
	}
	return w, err
}

func decode(b []byte) (*Workflow, error) {
	if len(b) < len(magic)+4 || string(b[:len(magic)]) != magic {
		return nil, fmt.Errorf("it does not begin with %q", magic)
	}
	body, sum := b[:len(b)-4], binary.BigEndian.Uint32(b[len(b)-4:])
	d := decoder{b: body[len(magic):]}
	format, reader, writer := d.uvarint(), d.uvarint(), d.uvarint()
	if d.err == nil && (reader > Format || writer > Format) {
		return nil, fault.Newf(fault.TooNew, "the stored state has format %d, this program knows up to %d", format, Format)
	}
	if got := crc32.ChecksumIEEE(body); got != sum {
		return nil, fmt.Errorf("checksum is %08x, want %08x", got, sum)
	}
	parts, unknown, err := d.sections()
	if err != nil {
		return nil, err
	}
	return assemble(parts, unknown)
}

func assemble(parts map[uint64][]byte, unknown []section) (*Workflow, error) {
	var h header
	if err := json.Unmarshal(parts[sectionHeader], &h); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	if h.Status.String() == "" {
		return nil, errors.New("header has no status")
	}
	if h.Tasks < 0 || h.Tasks > maxTasksInAColumn || h.Tasks != len(parts[sectionStatus]) {
		return nil, fmt.Errorf("header says %d tasks, the status column has %d", h.Tasks, len(parts[sectionStatus]))
	}
	w := &Workflow{
		ID: h.ID, Definition: h.Definition, Version: h.Version, Epoch: h.Epoch, BornEpoch: h.BornEpoch,
		HighestAttempt: h.HighestAttempt, BornAttempt: h.BornAttempt, Status: h.Status, CancelRequested: h.CancelRequested,
		Namespace: h.Namespace, CreatedAt: time.UnixMilli(h.CreatedAt).UTC(), UpdatedAt: time.UnixMilli(h.UpdatedAt).UTC(),
		Error: h.Error, Commands: h.Commands, unknown: unknown,
	}
	w.alloc(h.Tasks)
	for i, c := range parts[sectionStatus] {
		if w.TaskStatus[i] = TaskStatus(c); !w.TaskStatus[i].Valid() {
			return nil, fmt.Errorf("task %d has status %q", i, c)
		}
	}
	columns := []struct {
		id   uint64
		read func(*decoder)
	}{
		{sectionAttempt, func(d *decoder) { d.uints(w.Attempt) }},
		{sectionFailures, func(d *decoder) { d.sparseUints(w.Failures) }},
		{sectionStarted, func(d *decoder) { d.times(w.StartedAt, h.CreatedAt) }},
		{sectionEnded, func(d *decoder) { d.times(w.EndedAt, h.CreatedAt) }},
		{sectionOutputs, func(d *decoder) { w.Outputs = sparse(d, h.Tasks, 18, d.output) }},
		{sectionReasons, func(d *decoder) { w.Reasons = sparse(d, h.Tasks, 32, d.text) }},
		{sectionExits, func(d *decoder) { w.Exits = d.exits(h.Tasks) }},
		{sectionNotBefore, func(d *decoder) { w.NotBefore = sparse(d, h.Tasks, 8, d.varint) }},
		{sectionGiveBacks, func(d *decoder) { w.GiveBacks = sparse(d, h.Tasks, 2, d.uint32) }},
		{sectionFrozen, func(d *decoder) { w.Frozen = sparse(d, h.Tasks, 8, d.ascending) }},
	}
	for _, c := range columns {
		d := decoder{b: parts[c.id]}
		if c.read(&d); d.err == nil && len(d.b) > 0 {
			d.err = fmt.Errorf("%d bytes too many", len(d.b))
		}
		if d.err != nil {
			return nil, fmt.Errorf("section %d: %w", c.id, d.err)
		}
	}
	return w, nil
}

// sections splits a document and keeps a copy of what it does not know.
func (d *decoder) sections() (known map[uint64][]byte, unknown []section, err error) {
	known = map[uint64][]byte{}
	for n := 0; len(d.b) > 0 && d.err == nil; n++ {
		id := d.uvarint()
		body := d.bytes()
		switch {
		case d.err != nil:
		case id == 0:
			d.fail("section 0")
		case n >= maxSections:
			d.fail("more than %d sections", maxSections)
		case id > lastKnownSection:
			unknown = append(unknown, section{id, bytes.Clone(body)})
		case known[id] != nil:
			d.fail("section %d twice", id)
		default:
			known[id] = body
		}
	}
	return known, unknown, d.err
}
