package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"jobq/core/coord"
	"jobq/core/dag"
	"jobq/core/fault"
	"jobq/core/msg"
	"jobq/core/port"
	"jobq/core/state"
	"jobq/internal/local"
)

// What people read of tasks that the state calls ready or running: a message was
// or will be sent, and the attempt record tells whether a worker has begun.
const (
	wordRunning = "running"
	wordQueued  = "queued"
	wordStopped = "stopped"
)

// maxLooked bounds how many attempt records one look at a workflow reads.
const maxLooked = 100

// liveTasks is what a look from outside tells about the commands of a workflow.
type liveTasks struct {
	// running are the positions of the tasks whose command runs, oldest first.
	running []int32
	// more says that not every attempt was looked at.
	more bool
	// stopped says that this is a run of one machine whose process is gone.
	stopped bool
}

// stopped reports whether w is an unfinished run of one machine that no process
// goes on with.
func (s *session) stopped(ctx context.Context, w *state.Workflow) (bool, error) {
	if w.Namespace == "" || w.Status.Ended() {
		return false, nil
	}
	holder, err := s.store.Leases.Holder(ctx, local.Lease(w.ID))
	if err != nil || holder != "" {
		return false, err
	}
	// The process may have ended the workflow and left between the two looks.
	w, err = s.loadState(ctx, w.ID)
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	return err == nil && !w.Status.Ended(), err
}

// live looks which commands of w run. Queues are about first in, first out, so
// it reads the records of the attempts that were sent first, maxLooked at most.
// names are those of all tasks, asked for only where they are needed.
func (s *session) live(ctx context.Context, w *state.Workflow, names func() ([]string, error)) (liveTasks, error) {
	var l liveTasks
	var err error
	if l.stopped, err = s.stopped(ctx, w); err != nil || l.stopped {
		return l, err
	}
	sent := sentTasks(w)
	if len(sent) == 0 {
		return l, nil
	}
	if len(sent) > maxLooked {
		sent, l.more = sent[:maxLooked], true
	}
	all, err := names()
	if err != nil {
		return l, err
	}
	var mu sync.Mutex
	begun := map[int32]int64{}
	s.scheduler.Parallel(ctx, len(sent), maxLooked, func(ctx context.Context, i int) {
		t := sent[i]
		at, runs, failed := s.begun(ctx, port.RecordKey{Workflow: w.ID, Task: all[t], Attempt: w.Attempt[t]})
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			err = failed
		}
		if runs {
			begun[t] = at
			l.running = append(l.running, t)
		}
	})
	slices.SortFunc(l.running, func(a, b int32) int { return cmp.Or(cmp.Compare(begun[a], begun[b]), cmp.Compare(a, b)) })
	// Where some of those that were sent first still wait, the later ones do too.
	l.more = l.more && len(l.running) == len(sent)
	return l, err
}

// sentTasks returns the positions of the tasks that have an attempt, in the order
// in which those were sent.
func sentTasks(w *state.Workflow) []int32 {
	var sent []int32
	for i, status := range w.TaskStatus {
		if status.Numbered() {
			sent = append(sent, int32(i))
		}
	}
	slices.SortStableFunc(sent, func(a, b int32) int {
		// What is not known to be sent comes last.
		first, second := w.TaskStatus[a] == state.Intent, w.TaskStatus[b] == state.Intent
		switch {
		case first != second && second:
			return -1
		case first != second:
			return 1
		}
		return cmp.Compare(w.StartedAt[a], w.StartedAt[b])
	})
	return sent
}

// begun reports whether a command runs under the record k, and since when in
// Unix milliseconds.
func (s *session) begun(ctx context.Context, k port.RecordKey) (at int64, runs bool, err error) {
	stored, err := s.store.Records.Read(ctx, k)
	if fault.Is(err, fault.NotFound) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	record, err := msg.DecodeRecord(stored.Body)
	if err != nil {
		return 0, false, err
	}
	return record.StartedAt.UnixMilli(), record.Ended == nil && !record.Free && !stored.Stale(record.TTL), nil
}

// names returns the names of the tasks of a workflow, without the plan that
// commands need.
func (s *session) names(ctx context.Context, w *state.Workflow) ([]string, error) {
	body, err := s.store.States.Definition(ctx, state.DefinitionKey(w.ID, w.BornEpoch))
	if err != nil {
		return nil, err
	}
	d, err := dag.Decode(body)
	if err != nil {
		return nil, err
	}
	return taskNames(d), nil
}

// part is a number of tasks in one status, in the words for people.
type part struct {
	n    int
	word string
	// more says that n is the least that there may be.
	more bool
}

func (p part) String() string {
	if p.more {
		return fmt.Sprintf("%d or more %s", p.n, p.word)
	}
	return fmt.Sprintf("%d %s", p.n, p.word)
}

// liveParts splits the tasks that are ready or were sent into active ones and
// those that wait for their turn.
func liveParts(c state.Counts, active int, more bool) []part {
	queued := max(c.Ready+c.Running-active, 0)
	var parts []part
	for i, n := range countsOf(c) {
		switch word := taskWords()[i]; word {
		case state.Running.String():
			if active > 0 {
				parts = append(parts, part{active, wordRunning, more})
			}
			if queued > 0 && !more {
				parts = append(parts, part{queued, wordQueued, false})
			} else if queued > 0 {
				parts = append(parts, part{queued, wordQueued + " or " + wordRunning, false})
			}
		case state.Parked.String():
		default:
			if n > 0 {
				parts = append(parts, part{n, word, false})
			}
		}
	}
	return parts
}

// liveText is countsText with what runs told from what waits.
func liveText(c state.Counts, active int, more bool) string {
	var words []string
	for _, p := range liveParts(c, active, more) {
		words = append(words, p.String())
	}
	return strings.Join(words, ", ")
}

// taskWord is the status of a task in the words for people.
func taskWord(v coord.TaskView) string {
	switch v.Stage {
	case coord.StageStarted, coord.StageReported:
		return wordRunning
	case coord.StageQueued, coord.StageFree, coord.StageLost:
		return wordQueued
	default:
		return v.Status
	}
}
