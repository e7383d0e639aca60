//go:build !unix

package local

import (
	"os"

	"jobq/core/fault"
)

// supported refuses: here no lock outlives the process that took it in the hands
// of another.
func supported() error {
	return fault.New(fault.Unavailable, "this system has no flock(2), on which the local store rests").
		WithRemedy("run jobq on Linux or macOS; on Windows, inside WSL")
}

// tryLock is never called: Open asks supported first.
func tryLock(*os.File, bool) (bool, error) { return false, supported() }
