package local

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"syscall"

	"jobq/core/fault"
)

// openToLook opens a home that cannot be written, which refused says: a read-only
// mount, the home of somebody else, or one that has to be upgraded first. Nothing is
// announced, made or cleaned up there, and every write fails as refused does.
func openToLook(ctx context.Context, o Options, refused error) (*Store, error) {
	home, err := filepath.Abs(o.Home)
	if err != nil {
		return nil, classify(err, o.Home, "find the home directory")
	}
	s := newStore(home, o)
	s.looking = true
	if err := s.openToLook(ctx, refused); err != nil {
		return nil, errors.Join(err, s.release())
	}
	return s, nil
}

func (s *Store) openToLook(ctx context.Context, refused error) (err error) {
	s.root, err = os.OpenRoot(s.home)
	if errors.Is(err, syscall.ENOTDIR) {
		return refused // there is nothing to look at
	}
	if err != nil {
		return unreadable(err, s.home)
	}
	s.live = &liveFile{id: newProcessID(), root: s.root}
	s.findFiles()
	file, err := s.root.Open(databaseFile)
	if errors.Is(err, fs.ErrNotExist) {
		return refused
	}
	if err != nil {
		return unreadable(err, filepath.Join(s.home, databaseFile))
	}
	// It is closed before SQLite takes locks on the file, which it would drop.
	s.opened, err = file.Stat()
	if err = errors.Join(err, file.Close()); err != nil {
		return classify(err, s.home, "open the database")
	}
	path := filepath.Join(s.home, databaseFile)
	if s.read, err = openLooker(path); err != nil {
		return err
	}
	s.write = &writer{refusal: refused, stopped: make(chan struct{})}
	return s.fitVersion(ctx, path)
}

// fitVersion fails where the database would have to be upgraded first.
func (s *Store) fitVersion(ctx context.Context, path string) error {
	var version int
	if _, err := s.read.row(ctx, "PRAGMA user_version", nil, &version); err != nil {
		if fault.Is(err, fault.Unavailable) && !(looker{path: path}).unchanging() {
			return fault.Wrapf(fault.Denied, err, "%s cannot be read without writing beside it: changes of a process that was killed wait in %s-wal", path, databaseFile).
				WithRemedy("let somebody who may write there run `jobq list` once, or copy the whole directory and set JOBQ_HOME to the copy")
		}
		return err
	}
	if version > len(schema) {
		return tooNew(path, version)
	}
	if version < oldestToLook {
		return fault.Newf(fault.Denied, "%s was written by an older jobq and has to be upgraded, which needs the right to write", path).
			WithRemedy("let somebody who may write there run `jobq list` once")
	}
	return nil
}

// unreadable is the refusal to look at place.
func unreadable(err error, place string) error {
	return fault.Wrapf(fault.Denied, reasonOf(err), "%s cannot be read", place).
		WithRemedy("ask its owner for the right to read it, or set JOBQ_HOME to a directory of your own")
}

// unwritable says in one sentence that home cannot be written, which err was met
// by. Where it can be looked at, the remedy says so.
func unwritable(err error, home string) error {
	remedy := "set JOBQ_HOME to a directory on a local disk that you can write to"
	if _, missing := os.Stat(filepath.Join(home, databaseFile)); missing == nil {
		remedy = "`jobq list` and the other verbs that look work there; to run or change something be its owner, or " + remedy
	}
	return fault.Wrapf(fault.Denied, reasonOf(err), "%s cannot be written", home).WithRemedy(remedy)
}

// reasonOf returns what the system said, without the names of files in it.
func reasonOf(err error) error {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno
	}
	return err
}

// looker makes connections that need no right to write. SQLite wants to write
// beside a database even to read it, unless it is told that nobody changes it.
// Nobody does as long as there are no changes in the -wal file, which is there as
// long as a process has the database open; so each connection looks anew and
// serves one question. Where the first changes come and reach the database while
// that is answered, watch sees it.
type looker struct {
	driver driver.Driver
	path   string
}

var _ driver.Connector = looker{}

func openLooker(path string) (*reader, error) {
	plain, err := sql.Open("sqlite", "")
	if err != nil {
		return nil, classify(err, path, "open the database")
	}
	l := looker{plain.Driver(), path}
	db := sql.OpenDB(l)
	db.SetMaxOpenConns(readers)
	db.SetMaxIdleConns(-1)
	return &reader{statements: statements{prepare: db.PrepareContext}, db: db, path: path, watch: l.watch}, plain.Close()
}

// unchanging reports whether no changes wait beside the database.
func (l looker) unchanging() bool {
	info, err := os.Stat(l.path + "-wal")
	return errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0
}

// watch notes how the database is; torn fails where a question that took no locks
// may have met a change of it.
func (l looker) watch() (torn func() error) {
	before, err := os.Stat(l.path)
	if err != nil || !l.unchanging() {
		return func() error { return nil }
	}
	return func() error {
		now, err := os.Stat(l.path)
		if err == nil && now.Size() == before.Size() && now.ModTime().Equal(before.ModTime()) {
			return nil
		}
		return fault.Newf(fault.Unavailable, "%s was changed while it was read", l.path).WithRemedy("try again")
	}
}

// Connect implements driver.Connector.
func (l looker) Connect(context.Context) (driver.Conn, error) {
	query := url.Values{"mode": {"ro"}, "_pragma": {busyPragma(), "query_only(1)"}}
	if l.unchanging() {
		query.Set("immutable", "1")
	}
	return l.driver.Open(dataSource(l.path, query))
}

// Driver implements driver.Connector.
func (l looker) Driver() driver.Driver { return l.driver }

// dataSource names the database at path with the settings in query.
func dataSource(path string, query url.Values) string {
	return (&url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: query.Encode()}).String()
}
