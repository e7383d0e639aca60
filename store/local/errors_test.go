package local

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"

	sqlite3 "modernc.org/sqlite/lib"

	"jobq/core/fault"
)

func TestClassify(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err  error
		want fault.Code
	}{
		"a full disk":             {&os.PathError{Op: "write", Err: syscall.ENOSPC}, fault.Unavailable},
		"a used up quota":         {syscall.EDQUOT, fault.Unavailable},
		"a read-only file system": {&os.PathError{Op: "open", Err: syscall.EROFS}, fault.Denied},
		"no right":                {&os.PathError{Op: "open", Err: syscall.EACCES}, fault.Denied},
		"a name too long":         {&os.PathError{Op: "open", Err: syscall.ENAMETOOLONG}, fault.Invalid},
		"a file in its place":     {&os.PathError{Op: "mkdir", Err: syscall.ENOTDIR}, fault.Denied},
		"a directory there":       {&os.PathError{Op: "open", Err: syscall.EISDIR}, fault.Denied},
		"no descriptor left":      {&os.PathError{Op: "open", Err: syscall.EMFILE}, fault.Unavailable},
		"none on the machine":     {&os.PathError{Op: "open", Err: syscall.ENFILE}, fault.Unavailable},
		"a failing disk":          {syscall.EIO, fault.Unavailable},
		"an absent file":          {fs.ErrNotExist, fault.Unavailable},
		"an ended context":        {context.DeadlineExceeded, fault.Canceled},
		"an unknown error":        {errors.New("odd"), fault.Internal},
		"one that has a code":     {fault.New(fault.Conflict, "lost"), fault.Conflict},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := classify(tc.err, "/the/place", "write")
			if got := fault.CodeOf(err); got != tc.want {
				t.Errorf("classify(%v) has fault %v, want %v", tc.err, got, tc.want)
			}
			if tc.want != fault.Conflict && (!strings.Contains(err.Error(), "/the/place") || !errors.Is(err, tc.err)) {
				t.Errorf("classify(%v) = %q, want the place and the cause in it", tc.err, err)
			}
		})
	}
	if got := fault.RemedyOf(classify(&os.PathError{Op: "write", Err: syscall.ENOSPC}, "/the/place", "write")); !strings.HasPrefix(got, "free some space") {
		t.Errorf("the remedy for a full disk is %q", got)
	}
	if err := classify(nil, "/the/place", "write"); err != nil {
		t.Errorf("classify(nil) = %v", err)
	}
}

func TestDatabaseFaults(t *testing.T) {
	t.Parallel()
	for code, want := range map[int]fault.Code{
		sqlite3.SQLITE_FULL: fault.Unavailable, sqlite3.SQLITE_BUSY: fault.Unavailable, sqlite3.SQLITE_BUSY_SNAPSHOT: fault.Unavailable,
		sqlite3.SQLITE_READONLY: fault.Denied, sqlite3.SQLITE_READONLY_DBMOVED: fault.Denied, sqlite3.SQLITE_CORRUPT: fault.Corrupt,
		sqlite3.SQLITE_NOTADB: fault.Corrupt, sqlite3.SQLITE_IOERR_FSYNC: fault.Unavailable, sqlite3.SQLITE_TOOBIG: fault.TooLarge,
		sqlite3.SQLITE_INTERRUPT: fault.Canceled, sqlite3.SQLITE_CONSTRAINT: fault.Internal, sqlite3.SQLITE_ERROR: fault.Internal,
	} {
		if got, _ := databaseFault(code); got != want {
			t.Errorf("databaseFault(%d) = %v, want %v", code, got, want)
		}
	}
}
