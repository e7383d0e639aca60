package azstorage

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"jobq/core/fault"
	"jobq/core/port"
)

// place is one blob container. Its methods speak in codes of core/fault; doing
// completes "cannot ..." in their errors.
type place struct {
	client  *container.Client
	account string
	name    string
}

// stored is a blob as it was read. Age is the time since its last write by the
// service's clock, in whole seconds.
type stored struct {
	body      []byte
	tag       port.Tag
	metadata  map[string]*string
	age       time.Duration
	unchanged bool
}

// etag returns a tag that starts with mark, as the service wrote it. Others are
// not sent: an empty one would make a write unconditional, and those of another
// service are refused as malformed.
func etag(tag port.Tag, mark string) (azcore.ETag, bool) {
	s := string(tag)
	ok := len(s) > len(mark)+1 && strings.HasPrefix(s, mark) && s[len(s)-1] == '"'
	for i := range len(s) {
		ok = ok && s[i] > ' ' && s[i] < 0x7f
	}
	return azcore.ETag(s), ok
}

// The beginnings of tags of blobs and of entities.
const (
	blobTag   = `"`
	entityTag = `W/"`
)

// get reads a blob. Where known is its tag the answer has unchanged set and no
// body.
func (p *place) get(ctx context.Context, name string, known port.Tag, doing string) (stored, error) {
	var options blob.DownloadStreamOptions
	if tag, ok := etag(known, blobTag); ok {
		options.AccessConditions = &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfNoneMatch: &tag}}
	}
	if err := ended(ctx, doing); err != nil {
		return stored{}, err
	}
	// The client hands out 304 as a success without a body.
	var raw *http.Response
	got, err := p.client.NewBlobClient(name).DownloadStream(policy.WithCaptureResponse(ctx, &raw), &options)
	if code, _ := status(err); code == http.StatusNotModified || err == nil && raw != nil && raw.StatusCode == http.StatusNotModified {
		if got.Body != nil {
			_ = got.Body.Close()
		}
		return stored{tag: known, unchanged: true}, nil
	}
	if err != nil {
		return stored{}, p.absent(ctx, err, nil, doing)
	}
	defer func() { _ = got.Body.Close() }()
	body, err := io.ReadAll(got.Body)
	if err != nil {
		return stored{}, classify(ctx, err, nil, doing)
	}
	s := stored{body: body, metadata: got.Metadata}
	if got.ETag == nil || got.Date == nil || got.LastModified == nil {
		return stored{}, fault.Newf(fault.Unavailable, "cannot %s: the answer lacks its tag or its times", doing)
	}
	s.tag, s.age = port.Tag(*got.ETag), max(0, got.Date.Sub(*got.LastModified))
	return s, nil
}

// write says under what condition put stores: create, or ifMatch, or always.
type write struct {
	create   bool
	ifMatch  port.Tag
	always   bool
	metadata map[string]*string
}

// put stores a blob and returns its new tag. A create fails with fault.Exists,
// a change with fault.Conflict.
func (p *place) put(ctx context.Context, name string, body []byte, w write, doing string) (port.Tag, error) {
	var conditions blob.ModifiedAccessConditions
	var special verdicts
	switch {
	case w.create:
		conditions.IfNoneMatch, special = new(azcore.ETagAny), onCreate
	case !w.always:
		tag, ok := etag(w.ifMatch, blobTag)
		if !ok {
			return "", fault.Newf(fault.Conflict, "cannot %s: the tag %q is not one of this store", doing, w.ifMatch)
		}
		conditions.IfMatch, special = &tag, onChange
	}
	if err := ended(ctx, doing); err != nil {
		return "", err
	}
	options := blockblob.UploadOptions{Metadata: w.metadata, AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: &conditions}}
	got, err := p.client.NewBlockBlobClient(name).Upload(ctx, streaming.NopCloser(bytes.NewReader(body)), &options)
	if err != nil {
		return "", p.absent(ctx, err, special, doing)
	}
	if got.ETag == nil {
		return "", fault.Newf(fault.Unavailable, "cannot %s: the answer lacks its tag", doing)
	}
	return port.Tag(*got.ETag), nil
}

// remove deletes a blob, at ifMatch where that is not empty; an absent one is
// no error, another tag is fault.Conflict.
func (p *place) remove(ctx context.Context, name string, ifMatch port.Tag, doing string) error {
	var options blob.DeleteOptions
	if ifMatch != "" {
		tag, ok := etag(ifMatch, blobTag)
		if !ok {
			return p.mustBeAbsent(ctx, name, doing)
		}
		options.AccessConditions = &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: &tag}}
	}
	if err := ended(ctx, doing); err != nil {
		return err
	}
	_, err := p.client.NewBlobClient(name).Delete(ctx, &options)
	if err == nil {
		return nil
	}
	switch code, _ := status(err); code {
	case http.StatusPreconditionFailed:
		return p.mustBeAbsent(ctx, name, doing)
	default:
		err := p.absent(ctx, err, nil, doing)
		if fault.Is(err, fault.NotFound) {
			return nil
		}
		return err
	}
}

// mustBeAbsent returns fault.Conflict where the blob is there.
func (p *place) mustBeAbsent(ctx context.Context, name, doing string) error {
	_, err := p.client.NewBlobClient(name).GetProperties(ctx, nil)
	if err != nil {
		if err := p.absent(ctx, err, nil, doing); !fault.Is(err, fault.NotFound) {
			return err
		}
		return nil
	}
	return fault.Newf(fault.Conflict, "cannot %s: it was changed by another writer", doing)
}

// absent classifies the error of a call on a blob. For a 404 it makes sure that
// it is the blob that is absent and not the container.
func (p *place) absent(ctx context.Context, err error, special verdicts, doing string) error {
	if code, said := status(err); code == http.StatusNotFound && said != "BlobNotFound" && said != "ContainerNotFound" && ctx.Err() == nil {
		if err := p.check(ctx, doing); err != nil {
			return err
		}
	}
	return p.explain(ctx, err, special, doing)
}

// check reads the properties of the container itself.
func (p *place) check(ctx context.Context, doing string) error {
	_, err := p.client.GetProperties(ctx, nil)
	if err == nil {
		return nil
	}
	return p.explain(ctx, err, verdicts{http.StatusNotFound: fault.Unavailable}, doing)
}

// explain adds to the error of a missing container which one it is.
func (p *place) explain(ctx context.Context, err error, special verdicts, doing string) error {
	f := classify(ctx, err, special, doing)
	if code, said := status(err); f.Code() == fault.Unavailable && (code == http.StatusNotFound || placeGone(said)) {
		return fault.Wrapf(fault.Unavailable, errors.Unwrap(f), "cannot %s: container %q is missing in account %s", doing, p.name, p.account).
			WithRemedy("check account and prefix; if the container was deleted, restore it (soft delete), or create it empty to start anew")
	}
	return f
}

// item is one blob of a listing.
type item struct {
	name     string
	size     int64
	appended bool
	modified time.Time
	// age is the time since modified by the service's clock.
	age time.Duration
}

// list yields the blobs below prefix in the order of the service, those behind
// a further slash too unless shallow is set.
func (p *place) list(ctx context.Context, prefix string, shallow bool, doing string) iter.Seq2[item, error] {
	return func(yield func(item, error) bool) {
		if err := ended(ctx, doing); err != nil {
			yield(item{}, err)
			return
		}
		next := p.pages(prefix, shallow)
		for {
			blobs, at, more, err := next(ctx)
			if err != nil {
				yield(item{}, p.explain(ctx, err, verdicts{http.StatusNotFound: fault.Unavailable}, doing))
				return
			}
			for _, b := range blobs {
				if it, ok := itemOf(b, at); ok && !yield(it, nil) {
					return
				}
			}
			if !more {
				return
			}
		}
	}
}

// pages returns what fetches the next page of a listing, and when that was made by
// the service's clock.
func (p *place) pages(prefix string, shallow bool) func(context.Context) (blobs []*container.BlobItem, at *time.Time, more bool, err error) {
	if shallow {
		pager := p.client.NewListBlobsHierarchyPager("/", &container.ListBlobsHierarchyOptions{Prefix: &prefix})
		return func(ctx context.Context) ([]*container.BlobItem, *time.Time, bool, error) {
			page, err := pager.NextPage(ctx)
			if err != nil || page.Segment == nil {
				return nil, nil, false, err
			}
			return page.Segment.BlobItems, page.Date, pager.More(), nil
		}
	}
	pager := p.client.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{Prefix: &prefix})
	return func(ctx context.Context) ([]*container.BlobItem, *time.Time, bool, error) {
		page, err := pager.NextPage(ctx)
		if err != nil || page.Segment == nil {
			return nil, nil, false, err
		}
		return page.Segment.BlobItems, page.Date, pager.More(), nil
	}
}

// itemOf reads an entry of a page that was made at that time.
func itemOf(b *container.BlobItem, at *time.Time) (item, bool) {
	if b == nil || b.Name == nil || b.Properties == nil {
		return item{}, false
	}
	it := item{name: *b.Name}
	if b.Properties.ContentLength != nil {
		it.size = *b.Properties.ContentLength
	}
	if b.Properties.LastModified != nil {
		it.modified = *b.Properties.LastModified
		if at != nil {
			it.age = max(0, at.Sub(it.modified))
		}
	}
	it.appended = b.Properties.BlobType != nil && *b.Properties.BlobType == blob.BlobTypeAppendBlob
	return it, true
}

// create makes the container where it is absent.
func (p *place) create(ctx context.Context) error {
	doing := "create container " + p.name + " in account " + p.account
	_, err := p.client.Create(ctx, nil)
	if code, said := status(err); err == nil || code == http.StatusConflict && !placeGone(said) {
		return nil
	}
	return classify(ctx, err, nil, doing)
}
