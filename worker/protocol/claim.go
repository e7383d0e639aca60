package protocol

import (
	"context"
	"fmt"
	"time"

	"jobq/core/fault"
	"jobq/core/msg"
	"jobq/core/port"
)

// claimResult is what a claim came to.
type claimResult uint8

const (
	// held: the attempt is ours to run.
	held claimResult = iota + 1
	// over: it has ended; see attempt.ended.
	over
	// busy: somebody else holds it; see attempt.staleIn.
	busy
)

// claimTries bounds how often a claim looks again after a race or an outage.
const claimTries = 6

// errRace says that the record changed between two calls: look again at once.
var errRace = fault.New(fault.Conflict, "the attempt record changes all the time")

// claim creates the record of the attempt or takes it over.
func (a *attempt) claim(ctx context.Context) (claimResult, error) {
	var result claimResult
	races := 0
	err := a.h.retry(ctx, claimTries, func(ctx context.Context) (err error) {
		for {
			result, err = a.claimOnce(ctx)
			if races++; err != errRace || races > claimTries {
				return err
			}
		}
	})
	return result, err
}

func (a *attempt) claimOnce(ctx context.Context) (claimResult, error) {
	rec := a.newRecord(1)
	body, err := msg.EncodeRecord(rec)
	if err != nil {
		return 0, err
	}
	sent := a.h.conf.Runner.Moment()
	tag, err := a.h.conf.Store.Records.Create(ctx, a.key, port.Record{Owner: a.h.conf.Owner, Body: body})
	if err == nil {
		return a.take(rec, tag, sent), nil
	}
	if !fault.Is(err, fault.Exists) && !uncertain(err) {
		return 0, err
	}
	// A create without an answer may have happened: the record tells.
	stored, readErr := a.h.conf.Store.Records.Read(ctx, a.key)
	switch {
	case fault.Is(readErr, fault.NotFound) && fault.Is(err, fault.Exists):
		return 0, errRace
	case fault.Is(readErr, fault.NotFound):
		return 0, err
	case readErr != nil:
		return 0, readErr
	}
	return a.judge(ctx, stored)
}

func (a *attempt) judge(ctx context.Context, stored port.StoredRecord) (claimResult, error) {
	rec, err := msg.DecodeRecord(stored.Body)
	switch {
	case err != nil:
		return 0, err
	case rec.Ended != nil:
		a.ended = rec.Ended
		return over, nil
	case a.mine(rec):
		return a.confirm(ctx, rec, stored.Tag)
	case rec.Free, stored.Stale(rec.TTL), a.h.abandoned(rec.RunID):
		return a.takeOver(ctx, rec, stored.Tag)
	}
	a.staleIn = max(rec.TTL-stored.Age, 0) + time.Second // stale is older than the ttl
	if stored.Owned == port.AliveOwner {
		// No time makes it stale. The message comes back to look whether it ended.
		a.staleIn = 5 * time.Second
	}
	return busy, nil
}

// mine reports whether this delivery wrote rec and holds the attempt by it.
func (a *attempt) mine(rec msg.AttemptRecord) bool {
	return !rec.Free && rec.RunID == a.runID(rec.Start)
}

// confirm takes an attempt that a write of ours without an answer claimed. How
// old that write is nobody knows here, so a further one begins to count.
func (a *attempt) confirm(ctx context.Context, rec msg.AttemptRecord, tag port.Tag) (claimResult, error) {
	a.rec, a.tag = rec, tag
	sent := a.h.conf.Runner.Moment()
	switch err := a.change(ctx, rec); {
	case fault.Is(err, fault.LeaseLost):
		return 0, errRace
	case err != nil:
		return 0, err
	}
	return a.take(rec, a.tag, sent), nil
}

func (a *attempt) take(rec msg.AttemptRecord, tag port.Tag, sent Moment) claimResult {
	a.rec, a.tag = rec, tag
	a.sent.Store(int64(sent))
	return held
}

// takeOver makes the next start of an attempt that was given back or lost, or
// ends an attempt that was lost too often.
func (a *attempt) takeOver(ctx context.Context, old msg.AttemptRecord, tag port.Tag) (claimResult, error) {
	rec := a.newRecord(old.Start + 1)
	rec.Crashes = old.Crashes
	if !old.Free {
		rec.Crashes++
		a.survivor = old.RunID
	}
	owner := a.h.conf.Owner
	if int(rec.Crashes) >= a.h.conf.CrashLimit {
		rec.Start, rec.RunID, rec.StartedAt = old.Start, old.RunID, old.StartedAt
		rec.Ended = &msg.Ended{Completion: a.lost(rec)}
		owner = ""
	}
	body, err := msg.EncodeRecord(rec)
	if err != nil {
		return 0, err
	}
	sent := a.h.conf.Runner.Moment()
	newTag, err := a.h.conf.Store.Records.Change(ctx, a.key, port.Record{Owner: owner, Body: body}, tag)
	switch {
	case fault.Is(err, fault.Conflict):
		return 0, errRace
	case err != nil:
		return 0, err
	case rec.Ended != nil:
		a.ended = rec.Ended
		a.h.conf.Observe(a.event(Ended, rec.Start, rec.Ended.Completion, nil))
		return over, nil
	}
	return a.take(rec, newTag, sent), nil
}

func (a *attempt) newRecord(start uint32) msg.AttemptRecord {
	return msg.AttemptRecord{
		Start: start, TTL: a.h.ttl, Holder: a.holder, RunID: a.runID(start), StartedAt: a.now(),
	}
}

// lost is the completion of an attempt that reached the crash limit.
func (a *attempt) lost(rec msg.AttemptRecord) *msg.Completion {
	return &msg.Completion{
		Workflow: a.key.Workflow, Task: a.key.Task, Attempt: a.key.Attempt, Start: rec.Start,
		Reason: msg.Lost, Worker: a.h.conf.Worker, StartedAt: rec.StartedAt, EndedAt: a.now(),
		Error: fmt.Sprintf("%d starts of this attempt were lost with their worker; that is the limit", rec.Crashes),
		Log:   msg.LogName(a.key.Workflow, a.key.Task, a.key.Attempt, rec.Start),
	}
}

// admission is what the workflow's row says about a start.
type admission uint8

const (
	admitted admission = iota + 1
	// cancelled: the workflow was cancelled after the message was sent.
	cancelled
	// purged: the workflow of the message is gone.
	purged
)

// admit reads the workflow's row after the claim: whoever cancels or purges
// looks at the records after writing the row, so one of the two sees the other.
func (a *attempt) admit(ctx context.Context) (admission, error) {
	answer := admitted
	err := a.h.retry(ctx, 3, func(ctx context.Context) error {
		row, err := a.h.conf.Store.Index.Get(ctx, a.key.Workflow)
		switch {
		case fault.Is(err, fault.NotFound): // the row is written after the first sends
			return nil
		case err != nil:
			return err
		case row.Status == "purged" && row.Epoch >= a.task.Epoch, row.BornEpoch > a.task.Epoch:
			// A message of a later epoch is of a new life, whose first row is not
			// written yet.
			answer = purged
		case a.cancelledBy(row.Cancel):
			answer = cancelled
		}
		return nil
	})
	return answer, err
}

// cancelledBy reports whether c is about this message. One without a prefix is
// from an ai4s-jobq coordinator, which counts no epochs: there the flag alone
// counts. With ours it does not, because a retry may have overtaken it.
func (a *attempt) cancelledBy(c port.CancelRequest) bool {
	return c.Requested && (c.Epoch > a.task.Epoch || a.task.Prefix == "" && c.Epoch == 0)
}

func (a *attempt) now() time.Time { return a.h.conf.Scheduler.Now().UTC().Truncate(time.Millisecond) }

func (a *attempt) event(kind EventKind, start uint32, c *msg.Completion, err error) Event {
	return Event{
		Kind: kind, Queue: a.queue.Name(), Workflow: a.key.Workflow, Task: a.key.Task, Attempt: a.key.Attempt,
		Start: start, Completion: c, Err: err,
	}
}
