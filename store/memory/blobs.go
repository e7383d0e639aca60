package memory

import (
	"bytes"
	"context"
	"iter"
	"maps"
	"slices"
	"strings"

	"jobq/core/fault"
	"jobq/core/port"
)

var (
	_ port.Blobs = blobs{}
	_ port.Log   = log{}
)

type blobs struct{ p *Process }

func (v blobs) Put(ctx context.Context, name string, body []byte) error {
	if limit := v.p.s.props.MaxBlob; limit > 0 && len(body) > limit {
		return tooLarge("output "+name, len(body), limit)
	}
	if err := v.p.enter(ctx); err != nil {
		return err
	}
	defer v.p.s.mu.Unlock()
	if _, ok := v.p.s.outputs[name]; ok {
		return fault.Newf(fault.Exists, "output %q exists already", name)
	}
	v.p.s.outputs[name] = bytes.Clone(body)
	return nil
}

func (v blobs) Get(ctx context.Context, name string) ([]byte, error) {
	if err := v.p.enter(ctx); err != nil {
		return nil, err
	}
	defer v.p.s.mu.Unlock()
	body, ok := v.p.s.outputs[name]
	if !ok {
		return nil, fault.Newf(fault.NotFound, "output %q does not exist", name)
	}
	return bytes.Clone(body), nil
}

func (v blobs) List(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return v.p.names(ctx, v.p.s.outputs, prefix)
}

func (v blobs) DeletePrefix(ctx context.Context, prefix string, keep func(name string) bool) error {
	return v.p.deletePrefix(ctx, v.p.s.outputs, prefix, keep)
}

type log struct {
	p       *Process
	streams map[string][]byte
}

func (v log) Append(ctx context.Context, name string, data []byte) error {
	if err := v.p.enter(ctx); err != nil {
		return err
	}
	defer v.p.s.mu.Unlock()
	v.streams[name] = append(v.streams[name], data...)
	return nil
}

func (v log) Read(ctx context.Context, name string, offset int64, most int) ([]byte, error) {
	if err := v.p.enter(ctx); err != nil {
		return nil, err
	}
	defer v.p.s.mu.Unlock()
	stream := v.streams[name]
	offset = min(max(offset, 0), int64(len(stream)))
	rest := stream[offset:]
	return bytes.Clone(rest[:min(len(rest), max(most, 0))]), nil
}

func (v log) Size(ctx context.Context, name string) (int64, error) {
	if err := v.p.enter(ctx); err != nil {
		return 0, err
	}
	defer v.p.s.mu.Unlock()
	return int64(len(v.streams[name])), nil
}

func (v log) Names(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return v.p.names(ctx, v.streams, prefix)
}

func (v log) DeletePrefix(ctx context.Context, prefix string, keep func(name string) bool) error {
	return v.p.deletePrefix(ctx, v.streams, prefix, keep)
}

// names yields the keys of values below prefix as they are when it starts.
func (p *Process) names(ctx context.Context, values map[string][]byte, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if err := p.enter(ctx); err != nil {
			yield("", err)
			return
		}
		names := slices.Sorted(maps.Keys(values))
		p.s.mu.Unlock()
		for _, name := range names {
			if strings.HasPrefix(name, prefix) && !yield(name, nil) {
				return
			}
		}
	}
}

func (p *Process) deletePrefix(ctx context.Context, values map[string][]byte, prefix string, keep func(string) bool) error {
	if err := p.enter(ctx); err != nil {
		return err
	}
	defer p.s.mu.Unlock()
	maps.DeleteFunc(values, func(name string, _ []byte) bool {
		return strings.HasPrefix(name, prefix) && (keep == nil || !keep(name))
	})
	return nil
}
