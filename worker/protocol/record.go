package protocol

import (
	"bytes"
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
		done, err := a.adopt(ctx, rec, body)
		if done || err != nil {
			return err
		}
	}
	return errRace
}

// adopt reads the record after a conflict: a write of ours without an answer may
// have moved the tag. It reports whether that write gave the attempt up as rec,
// which is body, does; a beat has to be made again, for its time.
func (a *attempt) adopt(ctx context.Context, rec msg.AttemptRecord, body []byte) (bool, error) {
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
	gaveUp := rec.Free || rec.Ended != nil
	switch {
	case gaveUp && bytes.Equal(stored.Body, body):
		a.tag = stored.Tag
		return true, nil
	case found.RunID != a.rec.RunID, found.Free, found.Ended != nil:
		// Whoever ends a lost attempt leaves its run id in the record, so an end
		// that is not ours word for word is that of somebody else.
		return false, errTaken
	}
	a.tag = stored.Tag
	return false, nil
}
