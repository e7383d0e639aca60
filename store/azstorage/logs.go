package azstorage

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/appendblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"

	"jobq/core/fault"
	"jobq/core/port"
)

var _ port.Log = (*logs)(nil)

const (
	// maxAppend is the largest block of an append blob, and so the largest append
	// that no other can get into.
	maxAppend = 100 << 20
	// maxRolls bounds how many full segments one append steps over.
	maxRolls = 8
	// rememberedStreams bounds the memory of which segment a stream has come to.
	rememberedStreams = 10_000
)

// logs keeps the stream called name in append blobs {name}/{segment}. The
// service itself refuses an append to a segment that has its 50,000 blocks, by
// whichever process, so that a segment with a successor never grows again.
type logs struct {
	p  *place
	mu sync.Mutex
	// at is the segment that a stream had come to when it was last seen.
	at map[string]int
}

func (v *logs) of(name string) string { return "log " + name + " in account " + v.p.account }

func segmentBlob(name string, n int) string { return fmt.Sprintf("%s/%06d", encodePath(name), n) }

// segmentOf reads what segmentBlob wrote.
func segmentOf(it item) (name string, n int, ok bool) {
	slash := strings.LastIndexByte(it.name, '/')
	if !it.appended || slash < 0 || len(it.name)-slash-1 < 6 {
		return "", 0, false
	}
	n, err := strconv.Atoi(it.name[slash+1:])
	if err != nil || n < 0 {
		return "", 0, false
	}
	name, ok = decodePath(it.name[:slash])
	return name, n, ok
}

// Append fails with fault.TooLarge above 100 MiB.
func (v *logs) Append(ctx context.Context, name string, data []byte) error {
	doing := "append to " + v.of(name)
	if len(data) > maxAppend {
		return tooLarge("an append to "+v.of(name), len(data), maxAppend)
	}
	if err := checkBlobName(v.of(name), segmentBlob(name, 0)); err != nil {
		return err
	}
	n, err := v.segment(ctx, name, doing)
	if err != nil {
		return err
	}
	for range maxRolls {
		err := v.appendTo(ctx, segmentBlob(name, n), data, doing)
		switch {
		case err == nil:
			v.remember(name, n)
			return nil
		case fault.Is(err, fault.NotFound):
			// New, or deleted by a purge while this process remembered more.
			if n > 0 && v.known(name) {
				v.forget(name)
				n = 0
				continue
			}
			err = v.create(ctx, segmentBlob(name, n), doing)
			if err != nil && !fault.Is(err, fault.Exists) {
				return err
			}
		case fault.Is(err, fault.Conflict):
			n++
			if err := v.create(ctx, segmentBlob(name, n), doing); err != nil && !fault.Is(err, fault.Exists) {
				return err
			}
		default:
			return err
		}
	}
	return fault.Newf(fault.Unavailable, "cannot %s: its segments are full or vanish as fast as they are made", doing)
}

// segment returns the segment that the stream has come to.
func (v *logs) segment(ctx context.Context, name, doing string) (int, error) {
	v.mu.Lock()
	n, ok := v.at[name]
	v.mu.Unlock()
	if ok {
		return n, nil
	}
	segments, err := v.segments(ctx, name, doing)
	if err != nil || len(segments) == 0 {
		return 0, err
	}
	return segments[len(segments)-1].n, nil
}

func (v *logs) known(name string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	_, ok := v.at[name]
	return ok
}

func (v *logs) remember(name string, n int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.at) >= rememberedStreams {
		clear(v.at)
	}
	v.at[name] = n
}

func (v *logs) forget(name string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.at, name)
}

// appendTo adds one block. A segment that takes no more is fault.Conflict.
func (v *logs) appendTo(ctx context.Context, name string, data []byte, doing string) error {
	if err := ended(ctx, doing); err != nil {
		return err
	}
	client := v.p.client.NewAppendBlobClient(name)
	var err error
	if len(data) == 0 {
		// A block has at least one byte, but the stream must be there afterwards.
		_, err = client.GetProperties(ctx, nil)
	} else {
		_, err = client.AppendBlock(ctx, streaming.NopCloser(bytes.NewReader(data)), nil)
	}
	if err != nil {
		return v.p.absent(ctx, err, verdicts{http.StatusConflict: fault.Conflict}, doing)
	}
	return nil
}

func (v *logs) create(ctx context.Context, name, doing string) error {
	_, err := v.p.client.NewAppendBlobClient(name).Create(ctx, &appendblob.CreateOptions{
		AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfNoneMatch: new(azcore.ETagAny)}},
	})
	if err != nil {
		return v.p.absent(ctx, err, onCreate, doing)
	}
	return nil
}

type segment struct {
	n    int
	size int64
}

// segments returns those of a stream in order.
func (v *logs) segments(ctx context.Context, name, doing string) ([]segment, error) {
	var all []segment
	for it, err := range v.p.list(ctx, encodePath(name)+"/", true, doing) {
		if err != nil {
			return nil, err
		}
		if of, n, ok := segmentOf(it); ok && of == name {
			all = append(all, segment{n, it.size})
		}
	}
	slices.SortFunc(all, func(a, b segment) int { return cmp.Compare(a.n, b.n) })
	return all, nil
}

func (v *logs) Read(ctx context.Context, name string, offset int64, most int) ([]byte, error) {
	doing := "read " + v.of(name)
	segments, err := v.segments(ctx, name, doing)
	if err != nil {
		return nil, err
	}
	var data []byte
	start := int64(0)
	for _, s := range segments {
		from := max(offset-start, 0)
		if want := min(int64(most-len(data)), s.size-from); want > 0 {
			part, err := v.part(ctx, segmentBlob(name, s.n), from, want, doing)
			if err != nil {
				return nil, err
			}
			data = append(data, part...)
		}
		start += s.size
	}
	return data, nil
}

// part reads want bytes of a segment that has them.
func (v *logs) part(ctx context.Context, name string, from, want int64, doing string) ([]byte, error) {
	got, err := v.p.client.NewBlobClient(name).DownloadStream(ctx, &blob.DownloadStreamOptions{Range: blob.HTTPRange{Offset: from, Count: want}})
	if err != nil {
		if code, _ := status(err); code == http.StatusRequestedRangeNotSatisfiable {
			return nil, nil
		}
		// Deleted since the listing: the stream reads as empty from here on.
		if err := v.p.absent(ctx, err, nil, doing); !fault.Is(err, fault.NotFound) {
			return nil, err
		}
		return nil, nil
	}
	defer func() { _ = got.Body.Close() }()
	var buf bytes.Buffer
	if _, err := buf.ReadFrom(got.Body); err != nil {
		return nil, classify(ctx, err, nil, doing)
	}
	return buf.Bytes(), nil
}

func (v *logs) Size(ctx context.Context, name string) (int64, error) {
	segments, err := v.segments(ctx, name, "measure "+v.of(name))
	size := int64(0)
	for _, s := range segments {
		size += s.size
	}
	return size, err
}

// Names reads the whole listing before its first name: the service sorts by
// what names are written as.
func (v *logs) Names(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		var names []string
		for it, err := range v.p.list(ctx, folder(prefix), false, "list logs in account "+v.p.account) {
			if err != nil {
				yield("", err)
				return
			}
			if name, _, ok := segmentOf(it); ok && strings.HasPrefix(name, prefix) {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			if !yield(name, nil) {
				return
			}
		}
	}
}

// DeletePrefix leaves alone what is no log: the events share their container
// with the states.
func (v *logs) DeletePrefix(ctx context.Context, prefix string, keep func(name string) bool) error {
	below := func(it item) bool {
		name, _, ok := segmentOf(it)
		if ok && strings.HasPrefix(name, prefix) && (keep == nil || !keep(name)) {
			v.forget(name)
			return true
		}
		return false
	}
	return v.p.removeAll(ctx, folder(prefix), below, "delete logs in account "+v.p.account)
}
