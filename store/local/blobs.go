package local

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"path"
	"slices"
	"strconv"

	"jobq/core/fault"
	"jobq/core/port"
)

var _ port.Blobs = blobs{}

const outputDir = "outputs"

type blobs struct{ s *Store }

// Put keeps a small value in the database. A large one is a file of its own,
// safe on the disk before its name is given to it.
func (v blobs) Put(ctx context.Context, name string, body []byte) error {
	if len(body) > maxBlob {
		return tooLarge("output "+name, len(body), maxBlob)
	}
	if err := v.s.check(ctx); err != nil {
		return err
	}
	file, inline := "", stored(body)
	if len(body) > inlineBlob {
		var err error
		if file, err = v.writeFile(body); err != nil {
			return err
		}
		inline = []byte{}
	}
	err := v.s.write.do(ctx, false, func(tx *tx) error {
		n, err := tx.exec("INSERT INTO output (prefix, name, file, body) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING", v.s.prefix, name, file, inline)
		if err == nil && n == 0 {
			err = fault.Newf(fault.Exists, "output %q exists already", name)
		}
		return err
	})
	// After fault.Unavailable the name may point to the file; then it stays.
	if file != "" && (fault.Is(err, fault.Exists) || fault.Is(err, fault.Canceled)) {
		_ = v.s.root.Remove(path.Join(outputDir, file))
	}
	return err
}

// writeFile stores body in a new file and returns its name below outputDir.
func (v blobs) writeFile(body []byte) (string, error) {
	name := path.Join(v.s.live.id, strconv.FormatUint(v.s.outputFiles.Add(1), 10))
	err := v.s.root.MkdirAll(path.Join(outputDir, v.s.live.id), 0o700)
	if err == nil {
		err = writeSynced(v.s.root, path.Join(outputDir, name), body)
	}
	return name, classify(err, path.Join(v.s.home, outputDir, name), "write an output")
}

// writeSynced writes a file that is there whole or not at all.
func writeSynced(root *os.Root, name string, body []byte) error {
	temporary := name + ".new"
	file, err := root.OpenFile(temporary, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(body)
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = root.Rename(temporary, name)
	}
	if err != nil {
		return errors.Join(err, root.Remove(temporary))
	}
	dir, err := root.Open(path.Dir(name))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func (v blobs) Get(ctx context.Context, name string) ([]byte, error) {
	file, body, err := v.find(ctx, name)
	if err != nil || file == "" {
		return body, err
	}
	place := path.Join(outputDir, file)
	body, err = v.s.root.ReadFile(place)
	if errors.Is(err, fs.ErrNotExist) {
		// Deleted between the two reads, or lost.
		if _, _, again := v.find(ctx, name); again != nil {
			return nil, again
		}
		return nil, fault.Wrapf(fault.Corrupt, err, "the file of output %q is missing", name)
	}
	return body, classify(err, path.Join(v.s.home, place), "read an output")
}

// find returns the value under name or the file that holds it.
func (v blobs) find(ctx context.Context, name string) (file string, body []byte, err error) {
	if err := v.s.check(ctx); err != nil {
		return "", nil, err
	}
	found, err := v.s.read.row(ctx, "SELECT file, body FROM output WHERE prefix = ? AND name = ?", []any{v.s.prefix, name}, &file, &body)
	if err == nil && !found {
		err = fault.Newf(fault.NotFound, "output %q does not exist", name)
	}
	return file, body, err
}

func (v blobs) List(ctx context.Context, prefix string) iter.Seq2[string, error] {
	const page = 500
	return func(yield func(string, error) bool) {
		from, to := below(prefix)
		query := "SELECT name FROM output WHERE prefix = ? AND name >= ? AND name < ? ORDER BY name LIMIT ?"
		for {
			if err := v.s.check(ctx); err != nil {
				yield("", err)
				return
			}
			var names []string
			err := v.s.read.rows(ctx, query, []any{v.s.prefix, from, to, page}, func(scan func(...any) error) error {
				var name string
				err := scan(&name)
				names = append(names, name)
				return err
			})
			if err != nil {
				yield("", err)
				return
			}
			for _, name := range names {
				if !yield(name, nil) {
					return
				}
			}
			if len(names) < page {
				return
			}
			// Nothing lies between a text and the same with a zero byte after it.
			from = names[len(names)-1] + "\x00"
		}
	}
}

// DeletePrefix notes the files to remove with the deletion itself, so that a
// crash between the two leaves them to the next Open.
func (v blobs) DeletePrefix(ctx context.Context, prefix string, keep func(name string) bool) error {
	if err := v.s.check(ctx); err != nil {
		return err
	}
	from, to := below(prefix)
	spans := [][2]any{{from, to}}
	if keep != nil {
		spans = nil
		for name, err := range v.List(ctx, prefix) {
			if err != nil {
				return err
			}
			if !keep(name) {
				spans = append(spans, [2]any{name, name + "\x00"})
			}
		}
	}
	files := false
	for part := range slices.Chunk(spans, maxTogether) {
		some, err := v.deleteSpans(ctx, part)
		if err != nil {
			return err
		}
		files = files || some
	}
	if !files {
		return nil
	}
	return v.s.emptyTrash(ctx)
}

// deleteSpans deletes the outputs of spans and reports whether files of them are
// in the trash now.
func (v blobs) deleteSpans(ctx context.Context, spans [][2]any) (bool, error) {
	var files int64
	err := v.s.write.do(ctx, false, func(tx *tx) error {
		files = 0
		for _, span := range spans {
			where := []any{v.s.prefix, span[0], span[1]}
			n, err := tx.exec("INSERT INTO trash (file) SELECT file FROM output WHERE prefix = ? AND name >= ? AND name < ? AND file <> ''", where...)
			if err != nil {
				return err
			}
			files += n
			if _, err = tx.exec("DELETE FROM output WHERE prefix = ? AND name >= ? AND name < ?", where...); err != nil {
				return err
			}
		}
		return nil
	})
	return files > 0, err
}
