package azstorage

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"jobq/core/fault"
	"jobq/core/msg"
	"jobq/core/port"
)

// dueLayout sorts as text in the order of time, and holds every time.
const dueLayout = "2006-01-02T15:04:05.000000000Z"

const dueColumn = "due_at"

func dueKey(key string) (partition, row string) {
	wf, _, _ := strings.Cut(key, "!")
	return shard("due", wf), msg.Escape(key)
}

func (v *index) PutDue(ctx context.Context, d port.Due) error {
	doing := "write the due row " + d.Key + " in account " + v.t.account
	if len(d.Note) > maxNote {
		return tooLarge("the note of due row "+d.Key, len(d.Note), maxNote)
	}
	partition, key := dueKey(d.Key)
	if err := checkKey("due row "+d.Key, key); err != nil {
		return err
	}
	c := columns{
		"workflow":      d.Workflow,
		dueColumn:       d.DueAt.UTC().Format(dueLayout),
		"state_version": int64Column(d.StateVersion),
	}
	c.setNote(d.Note)
	return v.t.upsert(ctx, partition, key, c, doing)
}

// maxNote is the longest note in bytes. A command that is claimed may name
// thousands of tasks, and one column holds but maxText.
const maxNote = 10 * maxText

const noteParts = "note_parts"

func noteColumn(part int) string { return fmt.Sprintf("note_%d", part) }

// setNote writes a note in parts, with their number, since a merge leaves the
// further parts of a longer note that was there.
func (c columns) setNote(note string) {
	part := 0
	for ; note != ""; part++ {
		text := clip(note)
		c[noteColumn(part)], note = text, note[len(text):]
	}
	c[noteParts] = int32(part)
}

func (c columns) note() string {
	var b strings.Builder
	for part := range int(c.number(noteParts)) {
		b.WriteString(c.text(noteColumn(part)))
	}
	return b.String()
}

func (v *index) DeleteDue(ctx context.Context, key string) error {
	partition, row := dueKey(key)
	return v.t.remove(ctx, partition, row, "delete the due row "+key+" in account "+v.t.account)
}

// DueBefore reads everything that is due: which rows are the oldest no order of
// keys can tell, since the due time of a row changes. A row whose key is no due
// key is none of ours and left out: it must not stand before the others.
func (v *index) DueBefore(ctx context.Context, t time.Time, most int) ([]port.Due, error) {
	if most <= 0 {
		return nil, ended(ctx, "read the due rows")
	}
	filter := "PartitionKey ge 'due-00' and PartitionKey le 'due-0f' and " + dueColumn + " le " + quote(t.UTC().Format(dueLayout))
	var due []port.Due
	for e, err := range v.t.query(ctx, filter, 1000, "read the due rows in account "+v.t.account) {
		if err != nil {
			return nil, err
		}
		if d, err := dueOf(e); err == nil {
			due = append(due, d)
		}
	}
	slices.SortFunc(due, func(a, b port.Due) int {
		return cmp.Or(a.DueAt.Compare(b.DueAt), strings.Compare(a.Key, b.Key))
	})
	return due[:min(len(due), most)], nil
}

func dueOf(e entity) (port.Due, error) {
	key, err := msg.Unescape(e.key)
	if err != nil {
		return port.Due{}, fault.Wrapf(fault.Corrupt, err, "the due row %q cannot be read", e.key)
	}
	c := e.columns
	return port.Due{
		Key: key, Workflow: c.text("workflow"), DueAt: c.time(dueColumn),
		StateVersion: c.number("state_version"), Note: c.note(),
	}, nil
}
