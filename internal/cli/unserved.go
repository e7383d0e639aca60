package cli

import (
	"context"
	"slices"

	"jobq/core/coord"
	"jobq/core/state"
	"jobq/internal/local"
	"jobq/store"
)

// Tasks is that of the coordinator, but where attempt records are looked at it says
// of tasks that wait when nobody is there to run them. That is known of a store on
// this machine alone.
func (s *session) Tasks(ctx context.Context, id string, f coord.TaskFilter) (coord.Summary, error) {
	sum, err := s.Coordinator.Tasks(ctx, id, f)
	if err != nil || !f.Live || !s.onThisMachine() || !slices.ContainsFunc(sum.Tasks, waitsToRun) {
		return sum, err
	}
	why, err := s.unserved(ctx, id)
	if err != nil {
		return sum, err
	}
	for i := range sum.Tasks {
		if t := &sum.Tasks[i]; waitsToRun(*t) {
			if text := why(*t); text != "" {
				t.Reason = text
			}
		}
	}
	return sum, nil
}

// onThisMachine reports whether the store knows which processes live.
func (s *session) onThisMachine() bool {
	storage, _, err := parsePlace("", "", s.place)
	return err == nil && storage == store.Local
}

// waitsToRun reports whether nothing is missing to a task but somebody who runs it.
func waitsToRun(t coord.TaskView) bool {
	switch t.Stage {
	case coord.StageQueued, coord.StageFree, coord.StageLost:
		return true
	case "":
		return t.Status == state.Parked.String()
	default:
		return false
	}
}

// unserved returns what to say of a task of workflow id that waits, nothing where
// somebody is there to run it.
func (s *session) unserved(ctx context.Context, id string) (func(coord.TaskView) string, error) {
	w, err := s.loadState(ctx, id)
	if err != nil {
		return nil, err
	}
	holder, err := s.store.Leases.Holder(ctx, local.Lease(id))
	stopped := false
	if err == nil {
		stopped, err = s.stopped(ctx, w)
	}
	if err != nil || holder != "" || w.Status.Ended() || w.Namespace != "" && !stopped {
		return func(coord.TaskView) string { return "" }, err
	}
	if stopped {
		text := "nobody runs this workflow at the moment; to go on with it: `" + s.commandLine("run", "--resume", id) + "`"
		return func(coord.TaskView) string { return text }, nil
	}
	members, err := s.store.Presence.Members(ctx)
	if err != nil {
		return nil, err
	}
	served := liveQueues(members)
	return func(t coord.TaskView) string {
		if t.Stage == "" || served[t.Queue] > 0 {
			return ""
		}
		return "waits for a worker of queue " + t.Queue + ", and none is running; to start one: `jobq worker " + store.Local + "/" + t.Queue + "`"
	}, nil
}
