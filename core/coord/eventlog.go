package coord

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"jobq/core/state"
)

// Move is one move of a task as the event log and notices have it.
type Move struct {
	// Version is that of the state that holds the move.
	Version uint64      `json:"v"`
	Time    time.Time   `json:"t"`
	Task    string      `json:"task"`
	From    string      `json:"from"`
	To      string      `json:"to"`
	Cause   state.Cause `json:"cause"`
	Attempt uint32      `json:"attempt,omitempty"`
	Reason  string      `json:"reason,omitempty"`
	Exit    *state.Exit `json:"exit,omitempty"`
	Seconds float64     `json:"seconds,omitempty"`
}

func eventLog(wf string) string { return wf + ".events" }

// moves renders the changes of a batch.
func moves(e *entry, b batch) []Move {
	s := e.run.State()
	out := make([]Move, 0, len(b.moves))
	for _, ch := range b.moves {
		if ch.To == state.Parked && ch.Cause == state.CauseActivated {
			continue // the number follows at once, or when there is a slot
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

// appendEvents adds one line a move to the event log. Losing them loses no
// correctness, so failure is told and forgotten.
func (c *Coordinator) appendEvents(ctx context.Context, e *entry, b batch) {
	if c.o.NoEvents || !b.changed || len(b.moves) == 0 {
		return
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	for _, m := range moves(e, b) {
		if err := enc.Encode(m); err != nil {
			c.log.Warn("event not encoded", "error", err)
			return
		}
	}
	if err := c.store.Events.Append(ctx, eventLog(e.run.State().ID), buf.Bytes()); err != nil {
		c.log.Warn("events not written", "workflow", e.run.State().ID, "error", err)
	}
}

// notify tells Options.OnChange of a saved batch.
func (c *Coordinator) notify(e *entry, b batch) {
	if c.o.OnChange != nil && b.changed {
		c.o.OnChange(Notice{View: summaryOf(e), Moves: moves(e, b)})
	}
}
