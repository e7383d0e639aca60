//go:build unix

package local

import (
	"os"

	"golang.org/x/sys/unix"
)

// supported says whether this system has the locks that the store rests on.
func supported() error { return nil }

// tryLock takes a lock on file without waiting and reports whether it did. The
// lock is that of the open file: the kernel drops it with the last descriptor,
// wherever that was inherited to.
func tryLock(file *os.File, exclusive bool) (bool, error) {
	how := unix.LOCK_SH | unix.LOCK_NB
	if exclusive {
		how = unix.LOCK_EX | unix.LOCK_NB
	}
	for {
		switch err := unix.Flock(int(file.Fd()), how); err {
		case nil:
			return true, nil
		case unix.EWOULDBLOCK:
			return false, nil
		case unix.EINTR:
		default:
			return false, os.NewSyscallError("flock", err)
		}
	}
}
