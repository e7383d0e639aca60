package coord

import (
	"context"

	"jobq/core/engine"
	"jobq/core/fault"
	"jobq/core/msg"
	"jobq/core/port"
)

// recordTries bounds how often one attempt record is read again because
// somebody changed it in between.
const recordTries = 8

// attemptEnd is an attempt and how its record is to say that it ended.
type attemptEnd struct {
	attempt engine.Attempt
	ended   msg.Ended
}

// fence ends attempts of a workflow that is being cancelled.
func (c *Coordinator) fence(ctx context.Context, j *job, e *entry, attempts []engine.Attempt) []*item {
	ends := make([]attemptEnd, len(attempts))
	for i, a := range attempts {
		ends[i] = attemptEnd{a, msg.Ended{ByCoordinator: true}}
	}
	return c.endAttempts(ctx, j, e, ends)
}

// endAttempts ends attempts through their records. What has ended comes back as
// items; live ones are left to a wake.
func (c *Coordinator) endAttempts(ctx context.Context, j *job, e *entry, ends []attemptEnd) []*item {
	ended := make([]*msg.Ended, len(ends))
	errs := make([]error, len(ends))
	c.sched.Parallel(ctx, len(ends), c.o.Parallel, func(ctx context.Context, i int) {
		ended[i], errs[i] = c.endAttempt(ctx, e, ends[i].attempt, ends[i].ended)
	})
	var next []*item
	failed := 0
	for i, end := range ends {
		switch {
		case errs[i] != nil:
			failed++
		case ended[i] != nil:
			c.stats.fenced.Add(1)
			next = append(next, endedItem(end.attempt, *ended[i]))
		}
	}
	if failed > 0 {
		c.log.Warn("attempts not ended yet", "workflow", j.wf, "attempts", failed, "error", firstError(errs))
	}
	j.left = j.left || len(next) < len(ends)
	j.helped = j.helped || j.traced && len(next) > 0
	return next
}

// endedItem turns the end of an attempt into what the engine is told.
func endedItem(a engine.Attempt, ended msg.Ended) *item {
	if ended.Completion != nil {
		return &item{inbox: msg.Inbox{Completion: ended.Completion}}
	}
	return &item{event: engine.Fenced{Task: a.Task, Attempt: a.Attempt}}
}

// endAttempt writes end into the record of an attempt that nobody holds, and
// returns how the attempt ended, which may be by somebody else. nil means that
// a worker holds it and lives.
//
// The conditional write decides against a worker that starts at this moment:
// either it finds the end, or this finds the worker.
func (c *Coordinator) endAttempt(ctx context.Context, e *entry, a engine.Attempt, end msg.Ended) (*msg.Ended, error) {
	key := port.RecordKey{Workflow: e.run.State().ID, Task: e.plan.Name(a.Task), Attempt: a.Attempt}
	unanswered := false
	for range recordTries {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		stored, record, err := c.readRecord(ctx, key)
		if fault.Is(err, fault.NotFound) {
			err = c.writeEnd(ctx, key, msg.AttemptRecord{}, end, "")
		} else if err == nil {
			switch {
			case record.Ended != nil:
				return record.Ended, nil
			case !record.Free && !stored.Stale(record.TTL):
				return nil, nil
			}
			err = c.writeEnd(ctx, key, record, end, stored.Tag)
		}
		if err == nil {
			return &end, nil
		}
		// Another writer came first, or the answer of our own write was lost:
		// the record says which.
		code := fault.CodeOf(err)
		if code != fault.Exists && code != fault.Conflict && (code != fault.Unavailable || unanswered) {
			return nil, err
		}
		unanswered = code == fault.Unavailable
	}
	return nil, fault.New(fault.Unavailable, "the attempt record keeps changing")
}

// readRecord returns the attempt record under key in both forms.
func (c *Coordinator) readRecord(ctx context.Context, key port.RecordKey) (port.StoredRecord, msg.AttemptRecord, error) {
	stored, err := c.store.Records.Read(ctx, key)
	if err != nil {
		return stored, msg.AttemptRecord{}, err
	}
	record, err := msg.DecodeRecord(stored.Body)
	return stored, record, err
}

func (c *Coordinator) writeEnd(ctx context.Context, key port.RecordKey, record msg.AttemptRecord, end msg.Ended, tag port.Tag) error {
	record.Free, record.Ended = false, &end
	body, err := msg.EncodeRecord(record)
	if err != nil {
		return err
	}
	if tag == "" {
		_, err = c.store.Records.Create(ctx, key, port.Record{Body: body})
	} else {
		_, err = c.store.Records.Change(ctx, key, port.Record{Body: body}, tag)
	}
	return err
}
