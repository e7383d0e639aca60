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
	// Nothing is there of most claims, something of most workflows.
	look := d.StateVersion > 0
	for range dueTries {
		if look {
			later, tag, err := v.laterDue(ctx, partition, key, d.StateVersion, doing)
			if err == nil && !later {
				_, err = v.t.merge(ctx, partition, key, c, tag, doing)
			}
			switch {
			case fault.Is(err, fault.Conflict):
				continue
			case !fault.Is(err, fault.NotFound):
				return err
			}
		}
		if _, err := v.t.insert(ctx, partition, key, c, doing); !fault.Is(err, fault.Exists) {
			return err
		}
		look = true
	}
	return fault.Newf(fault.Unavailable, "cannot %s: it keeps changing", doing)
}

// dueTries bounds how often a due row is read again because somebody changed it.
const dueTries = 16

// laterDue reads a due row, or fails with fault.NotFound. It reports whether that is
// of a later state than version.
func (v *index) laterDue(ctx context.Context, partition, key string, version uint64, doing string) (later bool, tag port.Tag, err error) {
	e, err := v.t.get(ctx, partition, key, doing)
	if err != nil {
		return false, "", err
	}
	return e.columns.number("state_version") > version, e.tag, nil
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

func (v *index) DeleteDue(ctx context.Context, key string, last uint64) error {
	doing := "delete the due row " + key + " in account " + v.t.account
	partition, row := dueKey(key)
	for range dueTries {
		later, tag, err := v.laterDue(ctx, partition, row, last, doing)
		if err == nil && !later {
			err = v.t.removeAt(ctx, partition, row, tag, doing)
		}
		switch {
		case fault.Is(err, fault.NotFound):
			return nil
		case !fault.Is(err, fault.Conflict):
			return err
		}
	}
	return fault.Newf(fault.Unavailable, "cannot %s: it keeps changing", doing)
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
