//go:build !unix

package proc

import (
	"context"

	"jobq/core/fault"
)

// errSystem is the one answer on systems without process groups.
var errSystem = fault.New(fault.Unavailable, "this system has no process groups, so jobq cannot run tasks on it").
	WithRemedy("run the worker on Linux or macOS; on Windows, inside WSL")

// Run starts nothing on this system: the result is Unstartable.
func Run(ctx context.Context, spec Spec) Result {
	if ctx.Err() != nil {
		return Result{Reason: Cancelled, Cause: context.Cause(ctx), ExitCode: -1}
	}
	if err := spec.check(); err != nil {
		return Result{Reason: Refused, Err: err, ExitCode: -1}
	}
	return Result{Reason: Unstartable, Err: errSystem, ExitCode: -1}
}

// KillGroup kills nothing: there are no groups on this system.
func KillGroup(int) error { return nil }

// GroupAlive is false: there are no groups on this system.
func GroupAlive(int) bool { return false }

// FindByRunID finds nothing on this system.
func FindByRunID(...string) []int { return nil }
