package azstorage

import (
	"context"
	"encoding/json"
	"time"

	"jobq/core/fault"
	"jobq/core/port"
)

var _ port.Leases = leases{}

// leases keeps each lease as a blob that is changed by ETag and says who holds
// it for how long since its last write. The leases of the service itself end
// after 15 to 60 seconds or never and do not say who holds them.
type leases struct{ p *place }

type leaseDocument struct {
	Holder string        `json:"holder"`
	TTL    time.Duration `json:"ttl_ns"`
}

// holderOf returns who holds a lease as it was read, empty for nobody. Times of
// the service are whole seconds: an age of n means that more than n-1 have gone.
func holderOf(got stored) string {
	var doc leaseDocument
	if json.Unmarshal(got.body, &doc) != nil || got.age-time.Second >= doc.TTL {
		return ""
	}
	return doc.Holder
}

func (v leases) of(name string) string { return "lease " + name + " in account " + v.p.account }

func (v leases) Acquire(ctx context.Context, name, holder string, ttl time.Duration) error {
	doing := "take " + v.of(name)
	body, err := json.Marshal(leaseDocument{holder, ttl})
	if err != nil {
		return fault.Wrapf(fault.Invalid, err, "cannot %s", doing)
	}
	w := write{create: true}
	got, err := v.p.get(ctx, leaseBlob(name), "", doing)
	switch {
	case err == nil:
		if current := holderOf(got); current != "" && current != holder {
			return fault.Newf(fault.Conflict, "cannot %s: %s holds it", doing, current)
		}
		w = write{ifMatch: got.tag}
	case !fault.Is(err, fault.NotFound):
		return err
	}
	_, err = v.p.put(ctx, leaseBlob(name), body, w, doing)
	if fault.Is(err, fault.Exists) {
		return fault.Wrapf(fault.Conflict, err, "cannot %s: somebody else took it just now", doing)
	}
	return err
}

func (v leases) Release(ctx context.Context, name, holder string) error {
	doing := "give back " + v.of(name)
	got, err := v.p.get(ctx, leaseBlob(name), "", doing)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil || holderOf(got) != holder {
		return err
	}
	err = v.p.remove(ctx, leaseBlob(name), got.tag, doing)
	if fault.Is(err, fault.Conflict) {
		// Renewed or taken meanwhile: it is no longer the one to give back.
		return nil
	}
	return err
}

func (v leases) Holder(ctx context.Context, name string) (string, error) {
	got, err := v.p.get(ctx, leaseBlob(name), "", "read "+v.of(name))
	if fault.Is(err, fault.NotFound) {
		return "", nil
	}
	return holderOf(got), err
}
