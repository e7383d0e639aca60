package azstorage

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"jobq/core/msg"
	"jobq/core/port"
)

var _ port.Records = records{}

// records is attempts/{wf}/{task}/{attempt} in the container where workers may
// write. The body of a record is the blob, its owner stands in the metadata.
type records struct{ p *place }

const ownerKey = "owner"

func (v records) of(k port.RecordKey) string {
	return fmt.Sprintf("the record of attempt %d of task %q in workflow %s, account %s", k.Attempt, k.Task, k.Workflow, v.p.account)
}

func (v records) put(ctx context.Context, k port.RecordKey, r port.Record, w write, doing string) (port.Tag, error) {
	name := recordBlob(k)
	if err := checkBlobName(v.of(k), name); err != nil {
		return "", err
	}
	if r.Owner != "" {
		w.metadata = map[string]*string{ownerKey: new(msg.Escape(r.Owner))}
	}
	return v.p.put(ctx, name, r.Body, w, doing+" "+v.of(k))
}

func (v records) Create(ctx context.Context, k port.RecordKey, r port.Record) (port.Tag, error) {
	return v.put(ctx, k, r, write{create: true}, "create")
}

func (v records) Change(ctx context.Context, k port.RecordKey, r port.Record, ifMatch port.Tag) (port.Tag, error) {
	return v.put(ctx, k, r, write{ifMatch: ifMatch}, "change")
}

func (v records) Read(ctx context.Context, k port.RecordKey) (port.StoredRecord, error) {
	got, err := v.p.get(ctx, recordBlob(k), "", "read "+v.of(k))
	if err != nil {
		return port.StoredRecord{}, err
	}
	r := port.StoredRecord{Record: port.Record{Body: got.body}, Tag: got.tag, Age: got.age}
	// HTTP gives the names of metadata back in any case.
	for name, value := range got.metadata {
		if strings.EqualFold(name, ownerKey) && value != nil {
			if r.Owner, err = msg.Unescape(*value); err != nil {
				r.Owner = *value
			}
		}
	}
	return r, nil
}

func (v records) Delete(ctx context.Context, k port.RecordKey, ifMatch port.Tag) error {
	if ifMatch == "" {
		return v.p.mustBeAbsent(ctx, recordBlob(k), "delete "+v.of(k))
	}
	return v.p.remove(ctx, recordBlob(k), ifMatch, "delete "+v.of(k))
}

func (v records) DeleteAll(ctx context.Context, wf string, last uint32) error {
	doing := "delete the records of workflow " + wf + " in account " + v.p.account
	return v.p.removeAll(ctx, recordsPrefix(wf), func(it item) bool { return attemptOf(it.name) <= uint64(last) }, doing)
}

// attemptOf returns the attempt that the name of a record ends with. What is no
// record goes with the first ones.
func attemptOf(name string) uint64 {
	n, err := strconv.ParseUint(name[strings.LastIndexByte(name, '/')+1:], 10, 64)
	if err != nil {
		return 0
	}
	return n
}
