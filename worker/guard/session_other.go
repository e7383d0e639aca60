//go:build !unix

package guard

import (
	"syscall"

	"jobq/core/fault"
)

// sessionAttr refuses: without process groups there is nothing to guard.
func sessionAttr() (*syscall.SysProcAttr, error) {
	return nil, fault.New(fault.Unavailable, "this system has no process groups, so jobq cannot run tasks on it").
		WithRemedy("run the worker on Linux or macOS; on Windows, inside WSL")
}
