package coord_test

import (
	"testing"

	"jobq/core/msg"
)

func TestDiamondRunsToItsEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.submit("w1", diamond())
	s := w.drive("w1", diamond())
	if got, want := statuses(s), "A:completed B:completed C:completed D:completed"; got != want {
		t.Errorf("tasks = %s, want %s", got, want)
	}
	if s.Status != "completed" {
		t.Errorf("status = %s, want completed", s.Status)
	}
}

func TestFailureReachesWhatHangsOnIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.outcome = func(m msg.Task) msg.Completion {
		return msg.Completion{Success: m.Name != "B", Reason: msg.Exited, Error: "exit code 1"}
	}
	w.submit("w1", diamond())
	s := w.drive("w1", diamond())
	if got, want := statuses(s), "A:completed B:failed C:completed D:upstream_failed"; got != want {
		t.Errorf("tasks = %s, want %s", got, want)
	}
}
