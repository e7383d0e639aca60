package protocol

import (
	"context"

	"jobq/core/fault"
	"jobq/core/msg"
	"jobq/core/port"
)

// errTaken says that the record is no longer ours.
var errTaken = fault.New(fault.LeaseLost, "another start holds the attempt or the coordinator ended it")

// change writes rec over the record that we hold. One that was written before
// without an answer is recognised. Fails with errTaken when the record is no
// longer ours; after an uncertain error the record may hold rec.
func (a *attempt) change(ctx context.Context, rec msg.AttemptRecord) error {
	body, err := msg.EncodeRecord(rec)
	if err != nil {
		return err
	}
	owner := a.h.conf.Owner
	if rec.Free || rec.Ended != nil {
		owner = ""
	}
	for range claimTries {
		tag, err := a.h.conf.Store.Records.Change(ctx, a.key, port.Record{Owner: owner, Body: body}, a.tag)
		if err == nil {
			a.tag = tag
			return nil
		}
		if !fault.Is(err, fault.Conflict) {
			return err
		}
		done, err := a.adopt(ctx, rec)
		if done || err != nil {
			return err
		}
	}
	return errRace
}

// adopt reads the record after a conflict: a write of ours without an answer
// moved the tag. It reports whether that write was rec.
func (a *attempt) adopt(ctx context.Context, rec msg.AttemptRecord) (bool, error) {
	stored, err := a.h.conf.Store.Records.Read(ctx, a.key)
	if fault.Is(err, fault.NotFound) {
		return false, errTaken
	}
	if err != nil {
		return false, err
	}
	found, err := msg.DecodeRecord(stored.Body)
	if err != nil {
		return false, err
	}
	if found.RunID != a.rec.RunID || found.Ended != nil && found.Ended.ByCoordinator {
		return false, errTaken
	}
	a.tag = stored.Tag
	return found.Free == rec.Free && (found.Ended != nil) == (rec.Ended != nil) && (rec.Free || rec.Ended != nil), nil
}
