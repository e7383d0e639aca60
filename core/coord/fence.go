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

// fence ends attempts of a workflow that is being cancelled through their
// records. What has ended comes back as items; live ones leave a wake.
func (c *Coordinator) fence(ctx context.Context, j *job, e *entry, attempts []engine.Attempt) []item {
	if len(attempts) == 0 {
		return nil
	}
	ended := make([]*msg.Ended, len(attempts))
	errs := make([]error, len(attempts))
	c.sched.Parallel(ctx, len(attempts), c.o.Parallel, func(ctx context.Context, i int) {
		ended[i], errs[i] = c.endAttempt(ctx, e, attempts[i], msg.Ended{ByCoordinator: true})
	})
	var next []item
	for i, a := range attempts {
		switch {
		case errs[i] != nil:
			c.log.Warn("attempt not ended yet", "workflow", j.wf, "task", e.plan.Name(a.Task), "error", errs[i])
			j.left = true
		case ended[i] == nil:
			j.left = true
		default:
			c.stats.fenced.Add(1)
			next = append(next, endedItem(a, *ended[i]))
		}
	}
	return next
}

// endedItem turns the end of an attempt into what the engine is told.
func endedItem(a engine.Attempt, ended msg.Ended) item {
	if ended.Completion != nil {
		return item{inbox: msg.Inbox{Completion: ended.Completion}}
	}
	return item{event: engine.Fenced{Task: a.Task, Attempt: a.Attempt}}
}

// endAttempt writes end into the record of an attempt that nobody holds, and
// returns how the attempt ended, which may be by somebody else. nil means that
// a worker holds it and lives.
//
// The conditional write decides against a worker that starts at this moment:
// either it finds the end, or this finds the worker.
func (c *Coordinator) endAttempt(ctx context.Context, e *entry, a engine.Attempt, end msg.Ended) (*msg.Ended, error) {
	key := port.RecordKey{Workflow: e.run.State().ID, Task: e.plan.Name(a.Task), Attempt: a.Attempt}
	for range recordTries {
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
		if code := fault.CodeOf(err); code != fault.Exists && code != fault.Conflict && code != fault.Unavailable {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
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
