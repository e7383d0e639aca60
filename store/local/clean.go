package local

import (
	"context"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// scratchDir holds a directory for each process that made one.
const scratchDir = "scratch"

// removeDead forgets processes that died without closing their store: their
// memberships, outputs that no name points to, scratch files, and last their live
// files.
// Message locks and records need no cleaning, they are judged when met.
func (s *Store) removeDead(ctx context.Context) error {
	var dead []string
	entries, err := fs.ReadDir(s.root.FS(), liveDir)
	if err != nil {
		return classify(err, s.home, "list processes")
	}
	for _, entry := range entries {
		if !s.probes.alive(entry.Name()) {
			dead = append(dead, entry.Name())
		}
	}
	if err := s.forgetMembers(ctx); err != nil {
		return err
	}
	for _, id := range dead {
		if err := s.removeOrphans(ctx, id); err != nil {
			return err
		}
		if s.removeScratch(ctx, id) && removeLive(s.root, id) {
			s.logger.InfoContext(ctx, "removed what a dead process left", "process", id)
		}
	}
	return s.emptyTrash(ctx)
}

// removeScratch removes the scratch files of a process and reports whether nothing
// is left of them. Most have none. What a task made impossible to remove must not
// keep anybody out of the home: as long as the live file stays, every Open tries
// again.
func (s *Store) removeScratch(ctx context.Context, process string) bool {
	name := path.Join(scratchDir, process)
	err := s.root.RemoveAll(name)
	if err != nil {
		unlock(s.root, name)
		err = s.root.RemoveAll(name)
	}
	if err != nil {
		s.logger.WarnContext(ctx, "scratch files cannot be removed; see what keeps them and remove the directory",
			"directory", filepath.Join(s.home, name), "error", err)
	}
	return err == nil
}

// unlock gives this user all rights on the directories from name on, as far as that
// is possible: a task may have made them read-only. The methods of fs.FS take no name
// that is not text.
func unlock(root *os.Root, name string) {
	if info, err := root.Lstat(name); err != nil || !info.IsDir() {
		return
	}
	_ = root.Chmod(name, 0o700)
	dir, err := root.Open(name)
	if err != nil {
		return
	}
	entries, _ := dir.ReadDir(-1)
	_ = dir.Close()
	for _, entry := range entries {
		if entry.IsDir() {
			unlock(root, path.Join(name, entry.Name()))
		}
	}
}

// forgetMembers removes the memberships of dead processes.
func (s *Store) forgetMembers(ctx context.Context) error {
	var dead []string
	err := s.read.rows(ctx, "SELECT DISTINCT process FROM member", nil, func(scan func(...any) error) error {
		var id string
		err := scan(&id)
		if err == nil && !s.probes.alive(id) {
			dead = append(dead, id)
		}
		return err
	})
	if err != nil || len(dead) == 0 {
		return err
	}
	return s.write.do(ctx, true, func(tx *tx) error {
		for _, id := range dead {
			if _, err := tx.exec("DELETE FROM member WHERE process = ?", id); err != nil {
				return err
			}
		}
		return nil
	})
}

// removeOrphans removes output files that a process wrote but did not live to
// give a name.
func (s *Store) removeOrphans(ctx context.Context, process string) error {
	dir := path.Join(outputDir, process)
	files, err := fs.ReadDir(s.root.FS(), dir)
	if err != nil {
		// Most processes write no large output and have no directory.
		return nil
	}
	for _, file := range files {
		name := path.Join(process, file.Name())
		var one int
		named, err := s.read.row(ctx, "SELECT 1 FROM output WHERE file = ? AND file <> ''", []any{name}, &one)
		if err != nil {
			return err
		}
		if !named {
			_ = s.root.Remove(path.Join(outputDir, name))
		}
	}
	_ = s.root.Remove(dir) // it refuses while it holds anything
	return nil
}

// emptyTrash removes the files of outputs that were deleted.
func (s *Store) emptyTrash(ctx context.Context) error {
	var files []string
	err := s.read.rows(ctx, "SELECT file FROM trash", nil, func(scan func(...any) error) error {
		var file string
		err := scan(&file)
		files = append(files, file)
		return err
	})
	if err != nil || len(files) == 0 {
		return err
	}
	for _, file := range files {
		// Absent is fine: somebody else empties the trash too, or died doing it.
		_ = s.root.Remove(path.Join(outputDir, file))
	}
	return s.write.do(ctx, true, func(tx *tx) error {
		for _, file := range files {
			if _, err := tx.exec("DELETE FROM trash WHERE file = ?", file); err != nil {
				return err
			}
		}
		return nil
	})
}
