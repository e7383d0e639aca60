package local

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"modernc.org/sqlite"

	"jobq/core/fault"
)

const (
	databaseFile = "store.db"
	// busyTimeout bounds the wait for the write lock of another process.
	busyTimeout = 10 * time.Second
	// readers is how many reads run at once.
	readers = 4
)

// busyPragma is the setting that a connection waits up to busyTimeout for others.
func busyPragma() string { return fmt.Sprintf("busy_timeout(%d)", busyTimeout.Milliseconds()) }

// connect opens a pool of connections to the database at path.
func connect(path string, connections int, pragmas ...string) (*sql.DB, error) {
	query := url.Values{"_txlock": {"immediate"}, "_pragma": append([]string{busyPragma()}, pragmas...)}
	db, err := sql.Open("sqlite", dataSource(path, query))
	if err != nil {
		return nil, classify(err, path, "open the database")
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return db, nil
}

// prepareDatabase creates or upgrades the database at path. One process does so
// at a time.
func prepareDatabase(ctx context.Context, root *os.Root, path string) error {
	// fdatasync leaves only time stamps unsynced; a commit takes a fifth less.
	// Where the platform has no such call the full sync stays.
	_, _ = sqlite.Fdatasync(true)

	unlock, err := lockOpen(ctx, root, path)
	if err != nil {
		return err
	}
	defer unlock()
	// The file is made here for its mode; SQLite would make it readable by all. One
	// that is there is left alone: closing any descriptor of it would drop the POSIX
	// locks of every connection that this process has.
	file, err := root.OpenFile(databaseFile, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err == nil {
		err = file.Close()
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return classify(err, path, "open the database")
	}
	db, err := connect(path, 1, "journal_mode(WAL)", "synchronous(FULL)")
	if err != nil {
		return err
	}
	defer db.Close()
	return upgrade(ctx, db, root, path)
}

// lockOpen waits for the lock that makes creating and upgrading exclusive.
func lockOpen(ctx context.Context, root *os.Root, path string) (unlock func(), err error) {
	file, err := root.OpenFile("open.lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, classify(err, path, "lock the database")
	}
	retry := time.NewTicker(5 * time.Millisecond)
	defer retry.Stop()
	for {
		got, err := tryLock(file, true)
		if err != nil {
			_ = file.Close()
			return nil, classify(err, path, "lock the database")
		}
		if got {
			return func() { _ = file.Close() }, nil
		}
		select {
		case <-ctx.Done():
			_ = file.Close()
			return nil, fault.Wrapf(fault.Canceled, context.Cause(ctx), "another process is still opening %s", path)
		case <-retry.C:
		}
	}
}

// statements prepares each text of SQL once. Safe for concurrent use.
type statements struct {
	prepare func(ctx context.Context, query string) (*sql.Stmt, error)
	mu      sync.Mutex
	cached  map[string]*sql.Stmt
}

func (s *statements) get(ctx context.Context, query string) (*sql.Stmt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stmt, ok := s.cached[query]; ok {
		return stmt, nil
	}
	stmt, err := s.prepare(ctx, query)
	if err != nil {
		return nil, err
	}
	if s.cached == nil {
		s.cached = map[string]*sql.Stmt{}
	}
	s.cached[query] = stmt
	return stmt, nil
}

// row scans the first row of query and reports whether there is one.
func (s *statements) row(ctx context.Context, query string, args []any, dest ...any) (bool, error) {
	stmt, err := s.get(ctx, query)
	if err != nil {
		return false, err
	}
	err = stmt.QueryRowContext(ctx, args...).Scan(dest...)
	if err == sql.ErrNoRows {
		return false, nil
	}
	return err == nil, err
}

// rows calls each for every row of query.
func (s *statements) rows(ctx context.Context, query string, args []any, each func(scan func(dest ...any) error) error) error {
	stmt, err := s.get(ctx, query)
	if err != nil {
		return err
	}
	rows, err := stmt.QueryContext(ctx, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := each(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// reader answers queries on connections that cannot write.
type reader struct {
	statements
	db     *sql.DB
	path   string
	closed atomic.Bool
	// watch, where set, is called before each question, and what it returns after it:
	// to fail where the answer may be a mixture of two states.
	watch func() (torn func() error)
}

func openReader(path string) (*reader, error) {
	db, err := connect(path, readers, "query_only(1)")
	if err != nil {
		return nil, err
	}
	return &reader{statements: statements{prepare: db.PrepareContext}, db: db, path: path}, nil
}

// row and rows do not hand on a ctx that can end: a row takes microseconds and
// waits for nobody, and what such a context costs in database/sql is several times
// as much. So the end of ctx is looked for between rows.
func (r *reader) row(ctx context.Context, query string, args []any, dest ...any) (bool, error) {
	torn := r.begin()
	found, err := r.statements.row(context.WithoutCancel(ctx), query, args, dest...)
	return found, cmp.Or(torn(), r.classify(ctx, err))
}

func (r *reader) rows(ctx context.Context, query string, args []any, each func(scan func(dest ...any) error) error) error {
	torn := r.begin()
	err := r.statements.rows(context.WithoutCancel(ctx), query, args, func(scan func(dest ...any) error) error {
		if ctx.Err() != nil {
			return canceled(ctx)
		}
		return each(scan)
	})
	return cmp.Or(torn(), r.classify(ctx, err))
}

// begin is watch where that is set.
func (r *reader) begin() (torn func() error) {
	if r.watch == nil {
		return func() error { return nil }
	}
	return r.watch()
}

func (r *reader) classify(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case r.closed.Load():
		return errClosed()
	case ctx.Err() != nil:
		return canceled(ctx)
	default:
		return classify(err, r.path, "read")
	}
}

func (r *reader) close() error {
	r.closed.Store(true)
	return classify(r.db.Close(), r.path, "close the database")
}

// below returns the bounds from (inclusive) and to (exclusive) of the texts
// that start with prefix. To SQLite any text is less than any blob.
func below(prefix string) (from, to any) {
	end := []byte(prefix)
	for len(end) > 0 && end[len(end)-1] == 0xff {
		end = end[:len(end)-1]
	}
	if len(end) == 0 {
		return prefix, []byte{}
	}
	end[len(end)-1]++
	return prefix, string(end)
}
