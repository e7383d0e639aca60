package local

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"syscall"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"jobq/core/fault"
)

// classify gives an error of the database or the file system its code. doing
// completes "cannot ..."; path is what the person has to look at.
func classify(err error, path, doing string) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	code, reason := fault.Internal, ""
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		code, reason = databaseFault(e.Code())
	} else if e, ok := errors.AsType[syscall.Errno](err); ok {
		code, reason = fileFault(e)
	} else if errors.Is(err, sql.ErrConnDone) {
		return errClosed()
	} else if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrClosed) {
		code = fault.Unavailable
	} else if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		code = fault.Canceled
	}
	if reason != "" {
		reason = " (" + reason + ")"
	}
	e := fault.Wrapf(code, err, "cannot %s in %s%s", doing, path, reason)
	switch {
	case isFull(err):
		return e.WithRemedy("free some space on its disk and try again; a run goes on with `jobq run --resume ID`")
	case errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.EISDIR):
		return e.WithRemedy("move away what stands there and try again")
	case code == fault.Corrupt:
		// doctor looks at the same file and would say the same.
		return e.WithRemedy("put back a copy of the directory, or move " + path + " and its -wal and -shm away and begin anew; sqlite3's .recover may read what is left")
	}
	return e
}

// isFull reports whether err says that there is no room on the disk.
func isFull(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && e.Code()&0xff == sqlite3.SQLITE_FULL || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// isBusy reports whether err says that another process holds the lock.
func isBusy(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && e.Code()&0xff == sqlite3.SQLITE_BUSY
}

// databaseFault maps a result code of SQLite.
func databaseFault(code int) (fault.Code, string) {
	switch code & 0xff {
	case sqlite3.SQLITE_FULL:
		return fault.Unavailable, "the disk is full"
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return fault.Unavailable, "other processes kept it busy for " + busyTimeout.String()
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH:
		return fault.Denied, "no right to write there"
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return fault.Corrupt, "the database is damaged"
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_PROTOCOL:
		return fault.Unavailable, "the disk or the memory failed"
	case sqlite3.SQLITE_TOOBIG:
		return fault.TooLarge, "a value is too large"
	case sqlite3.SQLITE_INTERRUPT:
		return fault.Canceled, ""
	default:
		return fault.Internal, ""
	}
}

// fileFault maps an error number of a file operation.
func fileFault(errno syscall.Errno) (fault.Code, string) {
	switch errno {
	case syscall.ENOSPC, syscall.EDQUOT:
		return fault.Unavailable, "the disk is full"
	case syscall.EACCES, syscall.EPERM, syscall.EROFS:
		return fault.Denied, "no right to write there"
	case syscall.ENOTDIR:
		return fault.Denied, "a file is where a directory should be"
	case syscall.EISDIR:
		return fault.Denied, "a directory is where a file should be"
	case syscall.ENAMETOOLONG:
		return fault.Invalid, "a name is too long"
	default:
		return fault.Unavailable, ""
	}
}
