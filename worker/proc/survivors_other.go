//go:build !linux

package proc

import "context"

// KillByRunID has nothing to kill here, see FindByRunID.
func KillByRunID(context.Context, ...string) error { return nil }
