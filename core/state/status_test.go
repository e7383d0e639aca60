package state_test

import (
	"testing"

	"jobq/core/state"
)

func TestTaskStatusesAreComplete(t *testing.T) {
	t.Parallel()
	listed := map[state.TaskStatus]bool{}
	for _, s := range state.TaskStatuses() {
		listed[s] = true
	}
	for b := range 256 {
		s := state.TaskStatus(b)
		if s.Valid() != listed[s] {
			t.Errorf("status %q: valid %t, listed %t", rune(b), s.Valid(), listed[s])
		}
		if s.Terminal() != (s.Succeeded() || s.Unsuccessful()) || s.Succeeded() && s.Unsuccessful() || s.Terminal() && s.Numbered() {
			t.Errorf("status %q contradicts itself", rune(b))
		}
	}
	if listed[0] {
		t.Error("the zero value is a status")
	}
}

func TestTaskStatusWords(t *testing.T) {
	t.Parallel()
	for s, tc := range map[state.TaskStatus]struct {
		word                                string
		succeeded, unsuccessful, mayBeAlive bool
	}{
		state.Pending:        {"pending", false, false, false},
		state.Parked:         {"ready", false, false, false},
		state.Intent:         {"ready", false, false, true},
		state.Running:        {"running", false, false, true},
		state.Completed:      {"completed", true, false, false},
		state.Failed:         {"failed", false, true, false},
		state.UpstreamFailed: {"upstream_failed", false, true, false},
		state.Skipped:        {"skipped", true, false, false},
		state.Cancelled:      {"cancelled", false, true, false},
	} {
		if s.String() != tc.word || s.Succeeded() != tc.succeeded || s.Unsuccessful() != tc.unsuccessful || s.Numbered() != tc.mayBeAlive {
			t.Errorf("%c is %q, succeeded %t, unsuccessful %t, numbered %t; want %+v", s, s, s.Succeeded(), s.Unsuccessful(), s.Numbered(), tc)
		}
	}
}

func TestWorkflowStatusText(t *testing.T) {
	t.Parallel()
	for _, s := range state.WorkflowStatuses() {
		text, err := s.MarshalText()
		var back state.WorkflowStatus
		if err != nil || back.UnmarshalText(text) != nil || back != s {
			t.Errorf("%d is written as %q (%v) and read as %d", s, text, err, back)
		}
	}
	if _, err := state.WorkflowStatus(0).MarshalText(); err == nil {
		t.Error("the zero value has a word")
	}
	var s state.WorkflowStatus
	if s.UnmarshalText([]byte("paused")) == nil {
		t.Error("an unknown word was read")
	}
}

func TestCountsFollowStatuses(t *testing.T) {
	t.Parallel()
	w := state.New("w", 0)
	w.TaskStatus = state.TaskStatuses()
	c := w.Counts()
	want := state.Counts{Pending: 1, Ready: 2, Running: 1, Completed: 1, Failed: 1, UpstreamFailed: 1, Skipped: 1, Cancelled: 1}
	if c != want {
		t.Errorf("counts %+v, want %+v", c, want)
	}
	if c.Total() != 9 || c.Open() != 4 || c.Ended() != 5 || c.Unsuccessful() != 3 {
		t.Errorf("total %d, open %d, ended %d, unsuccessful %d; want 9, 4, 5, 3", c.Total(), c.Open(), c.Ended(), c.Unsuccessful())
	}
}

func TestCommandsAreRememberedByID(t *testing.T) {
	t.Parallel()
	w := state.New("w", 0)
	for i := range state.MaxCommands + 1 {
		w.Remember(state.CommandResult{ID: string(rune('a' + i)), Epoch: uint64(i)})
	}
	if _, ok := w.Command("a"); ok {
		t.Error("the oldest command is still remembered")
	}
	if c, ok := w.Command("c"); !ok || c.Epoch != 2 {
		t.Errorf("command c: %+v, %t", c, ok)
	}
}

func TestTombstoneKeepsTheNumbers(t *testing.T) {
	t.Parallel()
	w := everything()
	got := decode(t, encode(t, w.Tombstone()))
	if got.Status != state.WorkflowPurged || len(got.TaskStatus) != 0 {
		t.Errorf("a tombstone is %s with %d tasks", got.Status, len(got.TaskStatus))
	}
	if got.Version != w.Version || got.Epoch != w.Epoch || got.HighestAttempt != w.HighestAttempt {
		t.Errorf("a tombstone has version %d, epoch %d, attempt %d", got.Version, got.Epoch, got.HighestAttempt)
	}
	if _, ok := got.Command("c1"); !ok {
		t.Error("a tombstone forgot a command")
	}
}
