package proc

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"jobq/core/fault"
)

// checkDir says in plain words why dir cannot be a working directory. The
// system reports a missing directory and a missing shell with the same error,
// so it is looked at before the start.
func checkDir(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fault.Newf(fault.Invalid, "the working directory %q does not exist", dir).
			WithRemedy("create it on the machine that runs the task, or correct cwd")
	case err != nil:
		return fault.Wrapf(fault.Invalid, err, "the working directory %q cannot be used", dir).
			WithRemedy("correct cwd, or give the task's user the right to enter it")
	case !info.IsDir():
		return fault.Newf(fault.Invalid, "the working directory %q is not a directory", dir).
			WithRemedy("correct cwd")
	}
	return nil
}

// ownFaults are the errors of a start that lie in the command, its environment
// or its directory. Every other one is the machine's: taking the machine's
// fault for the command's would fail a sound task for good, while the reverse
// only costs a bounded number of starts.
var ownFaults = []error{
	syscall.E2BIG, syscall.ENOENT, syscall.ENOTDIR, syscall.EACCES,
	syscall.ELOOP, syscall.ENAMETOOLONG, syscall.EINVAL,
}

// startFault classifies the error of a start.
func startFault(err error) (Reason, error) {
	if errors.Is(err, syscall.E2BIG) {
		return Refused, fault.Wrap(fault.Invalid, err, "the command and its environment are too long").
			WithRemedy("hand large values over in a file; one value is limited to 128 KiB")
	}
	for _, own := range ownFaults {
		if errors.Is(err, own) {
			return Refused, fault.Wrap(fault.Invalid, err, "the command cannot be started")
		}
	}
	return Unstartable, fault.Wrap(fault.Unavailable, err, "this machine cannot start the command now").
		WithRemedy("look for a limit on processes, memory or open files on this machine")
}
