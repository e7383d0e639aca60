package coord

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"jobq/core/engine"
	"jobq/core/state"
)

// Event is one line of a workflow's event log: a move of a task, or a command
// that was done.
type Event struct {
	Move
	// Command is its word (submit, cancel, retry, rerun, mark, purge), empty for a
	// move. ID is the command's, By who asked, Text what it did.
	Command string `json:"command,omitempty"`
	ID      string `json:"id,omitempty"`
	By      string `json:"by,omitempty"`
	Text    string `json:"text,omitempty"`
}

// Move is one move of a task as the event log and notices have it.
type Move struct {
	// Version is that of the state that holds the move.
	Version uint64      `json:"v"`
	Time    time.Time   `json:"t"`
	Task    string      `json:"task,omitempty"`
	From    string      `json:"from,omitempty"`
	To      string      `json:"to,omitempty"`
	Cause   state.Cause `json:"cause,omitempty"`
	Attempt uint32      `json:"attempt,omitempty"`
	Reason  string      `json:"reason,omitempty"`
	Exit    *state.Exit `json:"exit,omitempty"`
	Seconds float64     `json:"seconds,omitempty"`
}

// eventLogs is the prefix below which the event logs of wf lie. The slash keeps
// workflow a and workflow a.events apart.
func eventLogs(wf string) string { return wf + ".events/" }

// eventLog names the event log of one life of wf.
func eventLog(wf string, bornEpoch uint64) string {
	if bornEpoch == 0 {
		return eventLogs(wf) + "log"
	}
	return eventLogs(wf) + "log." + strconv.FormatUint(bornEpoch, 10)
}

// bornOf returns the epoch at which the life began whose event log name is.
func bornOf(name string) uint64 {
	born, _ := strconv.ParseUint(name[strings.LastIndexByte(name, '.')+1:], 10, 64)
	return born
}

// line adds ev to the lines of b if it is a command. Version and time are known
// after the save.
func (b *batch) line(ev engine.Event, by, text string) {
	line := Event{Text: text}
	var cmd engine.Command
	switch ev := ev.(type) {
	case engine.Activated:
		line.Command, cmd.By = kindSubmit, by
	case engine.Cancel:
		line.Command, cmd = kindCancel, ev.Command
	case engine.Retry:
		line.Command, cmd = kindRetry, ev.Command
	case engine.Rerun:
		line.Command, cmd = kindRerun, ev.Command
	case engine.Mark:
		line.Command, cmd = kindMark, ev.Command
	default:
		return
	}
	line.ID, line.By = cmd.ID, cmd.By
	b.lines = append(b.lines, line)
}

// moves renders the changes of a batch. A task that becomes ready and gets its
// number at once made one move.
func moves(e *entry, b batch) []Move {
	s := e.run.State()
	out := make([]Move, 0, len(b.moves))
	activated := map[int32]int{}
	for _, ch := range b.moves {
		if at, ok := activated[ch.Task]; ok && ch.Cause == state.CauseNumbered {
			out[at].Cause, out[at].Attempt = ch.Cause, ch.Attempt
			delete(activated, ch.Task)
			continue
		}
		if ch.Cause == state.CauseActivated {
			activated[ch.Task] = len(out)
		}
		m := Move{
			Version: s.Version, Time: s.UpdatedAt, Task: e.plan.Name(ch.Task),
			From: ch.From.String(), To: ch.To.String(), Cause: ch.Cause, Attempt: ch.Attempt,
		}
		if ch.From.Numbered() || ch.To.Terminal() {
			m.Reason = s.Reasons[ch.Task]
			if x, ok := s.Exits[ch.Task]; ok {
				m.Exit = &x
			}
			if s.StartedAt[ch.Task] > 0 && s.EndedAt[ch.Task] >= s.StartedAt[ch.Task] {
				m.Seconds = float64(s.EndedAt[ch.Task]-s.StartedAt[ch.Task]) / 1000
			}
		}
		out = append(out, m)
	}
	return out
}

// lineSize is about what a line of the event log takes.
const lineSize = 192

// appendEvents adds one line a command and a move to the event log. Losing them
// loses no correctness, so failure is told and forgotten.
func (c *Coordinator) appendEvents(ctx context.Context, e *entry, b batch) {
	if c.o.NoEvents || len(b.lines)+len(b.moves) == 0 {
		return
	}
	s := e.run.State()
	var buf bytes.Buffer
	buf.Grow(lineSize * (len(b.lines) + len(b.moves)))
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	for _, line := range b.lines {
		line.Version, line.Time = s.Version, s.UpdatedAt
		if err := enc.Encode(line); err != nil {
			c.log.Warn("event not encoded", "error", err)
		}
	}
	all := moves(e, b)
	for i := range all {
		buf.Write(append(appendMove(buf.AvailableBuffer(), &all[i]), '\n'))
	}
	if err := c.store.Events.Append(ctx, eventLog(s.ID, s.BornEpoch), buf.Bytes()); err != nil {
		c.log.Warn("events not written", "workflow", s.ID, "error", err)
	}
}

// Events returns the moves of tasks that the event log of the present life of wf
// holds, oldest first. What a crash kept from being written is missing.
func (c *Coordinator) Events(ctx context.Context, wf string) ([]Move, error) {
	all, err := c.History(ctx, wf)
	var out []Move
	for _, ev := range all {
		if ev.Command == "" {
			out = append(out, ev.Move)
		}
	}
	return out, err
}

// History is Events with the commands that were done.
func (c *Coordinator) History(ctx context.Context, wf string) ([]Event, error) {
	e, err := c.read(ctx, wf)
	if err != nil {
		return nil, err
	}
	name := eventLog(wf, e.run.State().BornEpoch)
	var all []byte
	for {
		const chunk = 1 << 20
		part, err := c.store.Events.Read(ctx, name, int64(len(all)), chunk)
		if err != nil {
			return nil, err
		}
		all = append(all, part...)
		if len(part) < chunk {
			break
		}
	}
	var out []Event
	for line := range bytes.Lines(all) {
		var ev Event
		if err := json.Unmarshal(line, &ev); err == nil {
			out = append(out, ev)
		}
	}
	return out, nil
}

// notify tells Options.OnChange of a saved batch.
func (c *Coordinator) notify(e *entry, b batch) {
	if c.o.OnChange != nil && b.changed {
		c.o.OnChange(Notice{View: summaryOf(e), Moves: moves(e, b)})
	}
}
