package azstorage

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"math"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"jobq/core/fault"
	"jobq/core/port"
)

// table is the one table of a prefix. Its methods speak in codes of core/fault;
// doing completes "cannot ..." in their errors.
type table struct {
	client  *aztables.Client
	account string
	name    string
}

// columns are the properties of an entity by name.
type columns map[string]any

// entity is a stored entity; tag names its version.
type entity struct {
	key     string
	columns columns
	tag     port.Tag
}

// get reads an entity, or fault.NotFound.
func (t *table) get(ctx context.Context, partition, key, doing string) (entity, error) {
	if err := ended(ctx, doing); err != nil {
		return entity{}, err
	}
	got, err := t.client.GetEntity(ctx, partition, key, nil)
	if err != nil {
		return entity{}, t.absent(ctx, err, nil, doing)
	}
	e, err := decodeEntity(got.Value)
	if err != nil {
		return entity{}, fault.Wrapf(fault.Corrupt, err, "cannot %s", doing)
	}
	e.tag = port.Tag(got.ETag)
	return e, nil
}

func decodeEntity(body []byte) (entity, error) {
	var e aztables.EDMEntity
	err := json.Unmarshal(body, &e)
	return entity{key: e.RowKey, columns: e.Properties, tag: port.Tag(e.ETag)}, err
}

func encodeEntity(partition, key string, c columns) ([]byte, error) {
	return json.Marshal(aztables.EDMEntity{Entity: aztables.Entity{PartitionKey: partition, RowKey: key}, Properties: c})
}

// insert stores an entity that is not there yet, else fails with fault.Exists.
func (t *table) insert(ctx context.Context, partition, key string, c columns, doing string) (port.Tag, error) {
	body, err := encodeEntity(partition, key, c)
	if err != nil {
		return "", fault.Wrapf(fault.Invalid, err, "cannot %s", doing)
	}
	if err := ended(ctx, doing); err != nil {
		return "", err
	}
	got, err := t.client.AddEntity(ctx, body, nil)
	if err != nil {
		return "", t.absent(ctx, err, onCreate, doing)
	}
	return port.Tag(got.ETag), nil
}

// merge changes the named columns of an entity at ifMatch, else fails with
// fault.Conflict. Other columns stay as they are.
func (t *table) merge(ctx context.Context, partition, key string, c columns, ifMatch port.Tag, doing string) (port.Tag, error) {
	tag, ok := etag(ifMatch, entityTag)
	if !ok {
		return "", fault.Newf(fault.Conflict, "cannot %s: the tag %q is not one of this store", doing, ifMatch)
	}
	body, err := encodeEntity(partition, key, c)
	if err != nil {
		return "", fault.Wrapf(fault.Invalid, err, "cannot %s", doing)
	}
	if err := ended(ctx, doing); err != nil {
		return "", err
	}
	got, err := t.client.UpdateEntity(ctx, body, &aztables.UpdateEntityOptions{IfMatch: &tag, UpdateMode: aztables.UpdateModeMerge})
	if err != nil {
		return "", t.absent(ctx, err, onChange, doing)
	}
	return port.Tag(got.ETag), nil
}

// removeAt deletes an entity at ifMatch, else fails with fault.Conflict.
func (t *table) removeAt(ctx context.Context, partition, key string, ifMatch port.Tag, doing string) error {
	tag, ok := etag(ifMatch, entityTag)
	if !ok {
		return fault.Newf(fault.Conflict, "cannot %s: the tag %q is not one of this store", doing, ifMatch)
	}
	if err := ended(ctx, doing); err != nil {
		return err
	}
	if _, err := t.client.DeleteEntity(ctx, partition, key, &aztables.DeleteEntityOptions{IfMatch: &tag}); err != nil {
		return t.absent(ctx, err, onChange, doing)
	}
	return nil
}

// remove deletes an entity; an absent one is no error.
func (t *table) remove(ctx context.Context, partition, key, doing string) error {
	if err := ended(ctx, doing); err != nil {
		return err
	}
	_, err := t.client.DeleteEntity(ctx, partition, key, &aztables.DeleteEntityOptions{IfMatch: new(azcore.ETagAny)})
	if err != nil {
		if err := t.absent(ctx, err, nil, doing); !fault.Is(err, fault.NotFound) {
			return err
		}
	}
	return nil
}

// query yields the entities that filter selects, in the order of their keys.
// top is the size of a page and no limit.
func (t *table) query(ctx context.Context, filter string, top int, doing string) iter.Seq2[entity, error] {
	return func(yield func(entity, error) bool) {
		if err := ended(ctx, doing); err != nil {
			yield(entity{}, err)
			return
		}
		pager := t.client.NewListEntitiesPager(&aztables.ListEntitiesOptions{Filter: &filter, Top: new(int32(min(top, 1000)))})
		for pager.More() {
			page, err := pager.NextPage(ctx)
			if err != nil {
				yield(entity{}, t.explain(ctx, err, verdicts{http.StatusNotFound: fault.Unavailable}, doing))
				return
			}
			for _, body := range page.Entities {
				e, err := decodeEntity(body)
				if err != nil {
					err = fault.Wrapf(fault.Corrupt, err, "cannot %s", doing)
				}
				if !yield(e, err) || err != nil {
					return
				}
			}
		}
	}
}

// absent classifies the error of a call on an entity. For a 404 it makes sure
// that it is the entity that is absent and not the table.
func (t *table) absent(ctx context.Context, err error, special verdicts, doing string) error {
	if code, said := status(err); code == http.StatusNotFound && said != "ResourceNotFound" && said != "EntityNotFound" && said != "TableNotFound" && ctx.Err() == nil {
		for _, err := range t.query(ctx, "PartitionKey eq ''", 1, doing) {
			if err != nil {
				return err
			}
		}
	}
	return t.explain(ctx, err, special, doing)
}

// explain adds to the error of a missing table which one it is.
func (t *table) explain(ctx context.Context, err error, special verdicts, doing string) error {
	f := classify(ctx, err, special, doing)
	if code, said := status(err); f.Code() == fault.Unavailable && (code == http.StatusNotFound || placeGone(said)) {
		return fault.Wrapf(fault.Unavailable, errors.Unwrap(f), "cannot %s: table %s is missing in account %s", doing, t.name, t.account).
			WithRemedy("check account and prefix; if the table was deleted, create it empty: its rows come back as workflows go on")
	}
	return f
}

// create makes the table where it is absent.
func (t *table) create(ctx context.Context) error {
	doing := "create table " + t.name + " in account " + t.account
	_, err := t.client.CreateTable(ctx, nil)
	if code, said := status(err); err == nil || code == http.StatusConflict && !placeGone(said) {
		return nil
	}
	return classify(ctx, err, nil, doing)
}

// quote writes s as a value in a filter.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

func (c columns) text(name string) string {
	s, _ := c[name].(string)
	return s
}

func (c columns) flag(name string) bool {
	b, _ := c[name].(bool)
	return b
}

// number reads an integer of whichever type its writer chose, 0 where there is
// none that fits.
func (c columns) number(name string) uint64 {
	switch n := c[name].(type) {
	case int32:
		return uint64(max(n, 0))
	case aztables.EDMInt64:
		return uint64(max(n, 0))
	case float64:
		return uint64(max(n, 0))
	}
	return 0
}

// time reads a time, also one that was written as text.
func (c columns) time(name string) time.Time {
	switch t := c[name].(type) {
	case aztables.EDMDateTime:
		return time.Time(t).UTC()
	case string:
		if parsed, err := time.Parse(time.RFC3339Nano, t); err == nil {
			return parsed.UTC()
		}
	}
	return time.Time{}
}

// setTime leaves the column out for times that a table cannot hold, such as
// none.
func (c columns) setTime(name string, t time.Time) {
	if t.Year() >= 1601 && t.Year() <= 9999 {
		c[name] = aztables.EDMDateTime(tableTime(t))
	}
}

// tableTime returns t as a table keeps it.
func tableTime(t time.Time) time.Time { return t.UTC().Truncate(100 * time.Nanosecond) }

func int64Column(n uint64) aztables.EDMInt64 { return aztables.EDMInt64(min(n, math.MaxInt64)) }

func int32Column(n int) int32 { return int32(min(max(n, 0), math.MaxInt32)) }

// maxText is the longest text of a column in bytes, which are never fewer than
// the 32 Ki UTF-16 units that a table allows.
const maxText = 32_000

// clip returns the beginning of s that fits, cut between characters.
func clip(s string) string {
	if len(s) <= maxText {
		return s
	}
	at := maxText
	for at > maxText-utf8.UTFMax && !utf8.RuneStart(s[at]) {
		at--
	}
	return s[:at]
}
