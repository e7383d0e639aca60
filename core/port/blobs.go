package port

import (
	"context"
	"iter"
)

// Blobs holds immutable values by name.
type Blobs interface {
	// Put stores body if there is nothing under name, else fails with
	// fault.Exists. Fails with fault.TooLarge before any call above Props.MaxBlob.
	Put(ctx context.Context, name string, body []byte) error
	// Get returns the value under name, or fault.NotFound.
	Get(ctx context.Context, name string) ([]byte, error)
	// List yields the names below prefix in ascending order. It makes calls while
	// it runs; breaking off stops them. An error is the last pair.
	List(ctx context.Context, prefix string) iter.Seq2[string, error]
	// DeletePrefix removes everything whose name starts with prefix, but for names
	// of which keep says so. A nil keep keeps nothing.
	DeletePrefix(ctx context.Context, prefix string, keep func(name string) bool) error
}

// Log holds append-only byte streams by name. A driver rolls over to further
// segments by itself.
type Log interface {
	// Append adds data to the end of the stream called name, creating it when
	// absent. Concurrent appends do not interleave. A repeat after
	// fault.Unavailable may store data twice.
	Append(ctx context.Context, name string, data []byte) error
	// Read returns up to most bytes from offset, fewer at the end of the stream
	// and none past it. An absent stream reads as empty.
	Read(ctx context.Context, name string, offset int64, most int) ([]byte, error)
	// Size returns the length of the stream, 0 when absent.
	Size(ctx context.Context, name string) (int64, error)
	// Names yields the streams whose name starts with prefix, ascending.
	Names(ctx context.Context, prefix string) iter.Seq2[string, error]
	// DeletePrefix removes every stream whose name starts with prefix, but for names
	// of which keep says so. A nil keep keeps nothing.
	DeletePrefix(ctx context.Context, prefix string, keep func(name string) bool) error
}
