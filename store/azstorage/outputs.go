package azstorage

import (
	"context"
	"iter"
	"slices"
	"strings"

	"jobq/core/fault"
	"jobq/core/port"
)

var _ port.Blobs = outputs{}

// outputs is {wf}/{task}.json and whatever else is named, in main. What is not
// there is looked for in also, which may be nil: the container of the prefix,
// where outputs were kept before another was configured and where a worker of
// ai4s-jobq puts them all the same.
type outputs struct{ main, also *place }

func (v outputs) of(name string) string {
	return "output " + name + " in account " + v.main.account
}

func (v outputs) Put(ctx context.Context, name string, body []byte) error {
	if len(body) > maxBody {
		return tooLarge(v.of(name), len(body), maxBody)
	}
	blob := encodePath(name)
	if err := checkBlobName(v.of(name), blob); err != nil {
		return err
	}
	_, err := v.main.put(ctx, blob, body, write{create: true}, "store "+v.of(name))
	return err
}

func (v outputs) Get(ctx context.Context, name string) ([]byte, error) {
	got, err := v.main.get(ctx, encodePath(name), "", "read "+v.of(name))
	if v.also != nil && fault.Is(err, fault.NotFound) {
		got, err = v.also.get(ctx, encodePath(name), "", "read "+v.of(name))
	}
	return got.body, err
}

// List reads the whole listing before its first name: the service sorts by what
// names are written as.
func (v outputs) List(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		var names []string
		for _, p := range v.places() {
			for it, err := range p.list(ctx, folder(prefix), false, "list outputs in account "+p.account) {
				if err != nil {
					yield("", err)
					return
				}
				if name, ok := decodePath(it.name); ok && strings.HasPrefix(name, prefix) {
					names = append(names, name)
				}
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

func (v outputs) DeletePrefix(ctx context.Context, prefix string, keep func(name string) bool) error {
	for _, p := range v.places() {
		below := func(it item) bool {
			name, ok := decodePath(it.name)
			if !ok {
				return strings.HasPrefix(it.name, prefix)
			}
			return (strings.HasPrefix(it.name, prefix) || strings.HasPrefix(name, prefix)) && (keep == nil || !keep(name))
		}
		if err := p.removeAll(ctx, folder(prefix), below, "delete outputs in account "+p.account); err != nil {
			return err
		}
	}
	return nil
}

func (v outputs) places() []*place {
	if v.also == nil {
		return []*place{v.main}
	}
	return []*place{v.main, v.also}
}
