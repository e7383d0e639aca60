package local

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"slices"
	"strings"

	"jobq/core/port"
)

var _ port.Log = (*logFiles)(nil)

// logFiles is a log of plain files below dir.
type logFiles struct {
	root *os.Root
	// home is the root's place for people, dir the log's place below the root.
	home, dir string
	folds     bool
}

func (l *logFiles) place(name string) string { return path.Join(l.dir, pathOf(name, l.folds)) }

func (l *logFiles) classify(err error, place, doing string) error {
	if errors.Is(err, fs.ErrClosed) {
		return errClosed()
	}
	return classify(err, path.Join(l.home, place), doing)
}

// Append writes data in one call at the end of the file: the kernel keeps
// concurrent appends apart.
func (l *logFiles) Append(ctx context.Context, name string, data []byte) error {
	if ctx.Err() != nil {
		return canceled(ctx)
	}
	place := l.place(name)
	file, err := l.openAppend(place)
	if err != nil {
		return l.classify(err, place, "write a log")
	}
	_, err = file.Write(data)
	return l.classify(errors.Join(err, file.Close()), place, "write a log")
}

// openAppend makes the directory only where it is missing. A deletion may take
// it away again in between; one more try is enough unless somebody deletes all
// the time.
func (l *logFiles) openAppend(place string) (*os.File, error) {
	const flags = os.O_CREATE | os.O_APPEND | os.O_WRONLY
	file, err := l.root.OpenFile(place, flags, 0o600)
	for range 3 {
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err := l.root.MkdirAll(path.Dir(place), 0o700); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		file, err = l.root.OpenFile(place, flags, 0o600)
	}
	return file, err
}

func (l *logFiles) Read(ctx context.Context, name string, offset int64, most int) ([]byte, error) {
	if ctx.Err() != nil {
		return nil, canceled(ctx)
	}
	place := l.place(name)
	file, err := l.root.Open(place)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, l.classify(err, place, "read a log")
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, l.classify(err, place, "read a log")
	}
	offset = max(offset, 0)
	data := make([]byte, min(int64(max(most, 0)), max(info.Size()-offset, 0)))
	n, err := file.ReadAt(data, offset)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return data[:n], l.classify(err, place, "read a log")
}

func (l *logFiles) Size(ctx context.Context, name string) (int64, error) {
	if ctx.Err() != nil {
		return 0, canceled(ctx)
	}
	info, err := l.root.Stat(l.place(name))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, l.classify(err, l.place(name), "read a log")
	}
	return info.Size(), nil
}

// Names reads the directories below prefix before it yields the first name: the
// order of escaped names is not that of names.
func (l *logFiles) Names(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		names, err := l.names(ctx, prefix)
		for _, name := range names {
			if !yield(name, nil) {
				return
			}
		}
		if err != nil {
			yield("", err)
		}
	}
}

// names returns the streams whose name starts with prefix, ascending.
func (l *logFiles) names(ctx context.Context, prefix string) ([]string, error) {
	var names []string
	start := l.directory(prefix)
	err := fs.WalkDir(l.root.FS(), start, func(place string, entry fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return canceled(ctx)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || entry.IsDir() {
			return err
		}
		name, ok := nameOf(strings.TrimPrefix(place, l.dir+"/"))
		if ok && strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
		return nil
	})
	if err != nil {
		return nil, l.classify(err, start, "list logs")
	}
	slices.Sort(names)
	return names, nil
}

// directory returns the deepest directory that holds every stream below prefix.
func (l *logFiles) directory(prefix string) string {
	dir := l.dir
	segments := strings.Split(prefix, "/")
	for _, segment := range segments[:len(segments)-1] {
		dir = path.Join(dir, directoryOf(segment, l.folds))
	}
	return dir
}

func (l *logFiles) DeletePrefix(ctx context.Context, prefix string, keep func(name string) bool) error {
	names, err := l.names(ctx, prefix)
	if err != nil {
		return err
	}
	for _, name := range names {
		if ctx.Err() != nil {
			return canceled(ctx)
		}
		if keep != nil && keep(name) {
			continue
		}
		place := l.place(name)
		if err := l.root.Remove(place); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return l.classify(err, place, "delete a log")
		}
		l.removeEmpty(path.Dir(place))
	}
	return nil
}

// removeEmpty removes directories that have become empty, from the innermost.
func (l *logFiles) removeEmpty(dir string) {
	for dir != l.dir && dir != "." {
		// A directory that is not empty refuses, and so do all above it.
		if l.root.Remove(dir) != nil {
			return
		}
		dir = path.Dir(dir)
	}
}
