package sim

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"time"
)

// A program of the next version is one of this version behind a translation: it
// writes one column more into every state, and where the world says so a newer
// format, which it alone can read.

// newerColumn is what the column holds.
const newerColumn = "a column of the next version"

// newerSection is a section number that this version does not know.
const newerSection = 4000

// newer decides whether a process that begins now is of the next version: half
// of them are during the storm, all after it.
func (w *World) newer(p *process) bool {
	if !w.o.Faults.Has(NewColumn) && !w.o.Faults.Has(NewFormat) {
		return false
	}
	return p.id%2 == 0 || w.s.now >= w.o.Storm
}

// outgoing is doc as p stores it.
func (g *gate) outgoing(doc []byte) []byte {
	if !g.p.newer {
		return doc
	}
	doc = bytes.Clone(doc[:len(doc)-crc32.Size])
	if !bytes.Contains(doc, []byte(newerColumn)) {
		g.w.count(NewColumn)
		doc = binary.AppendUvarint(doc, newerSection)
		doc = binary.AppendUvarint(doc, uint64(len(newerColumn)))
		doc = append(doc, newerColumn...)
	}
	if g.w.o.Faults.Has(NewFormat) {
		g.w.count(NewFormat)
		setFormat(doc, 2)
	}
	return binary.BigEndian.AppendUint32(doc, crc32.ChecksumIEEE(doc))
}

// incoming is a stored doc as p can read it.
func (g *gate) incoming(doc []byte) []byte {
	if !g.p.newer || len(doc) < 7+crc32.Size || doc[formatAt] != 2 {
		return doc
	}
	doc = bytes.Clone(doc[:len(doc)-crc32.Size])
	setFormat(doc, 1)
	return binary.BigEndian.AppendUint32(doc, crc32.ChecksumIEEE(doc))
}

// formatAt is where a document says its format, then which format its reader and
// its writer must know.
const formatAt = 4

func setFormat(doc []byte, format byte) {
	doc[formatAt], doc[formatAt+1], doc[formatAt+2] = format, format, format
}

// columns holds programs of this version to what they do not know.
func (l *ledger) columns(p *process, wf *workflow, doc []byte) {
	has := bytes.Contains(doc, []byte(newerColumn))
	if wf.column && !has {
		l.w.violate("unknown columns survive", "%s stored a state of %s without the column that it does not know", p.name, wf.id)
	}
	wf.column = has
}

// upgrade replaces the programs of this version, one after the other.
func (w *World) upgrade() {
	if !w.o.Faults.Has(NewColumn) && !w.o.Faults.Has(NewFormat) {
		return
	}
	for i, cp := range w.coordinators {
		w.s.after(time.Duration(i+1)*10*time.Second, nil, func() {
			if !cp.p.dead && !cp.p.newer {
				w.kill(cp.p, "for the next version")
			}
		})
	}
}
