package proc

import (
	"context"
	"slices"
	"time"

	"jobq/core/fault"
)

// settleBound is how long KillByRunID looks again because a process shows no
// environment. A start of a program takes microseconds; a kernel that never
// shows one (some sandboxes) must not keep it for ever.
const settleBound = 500 * time.Millisecond

// KillByRunID kills every process that FindByRunID finds, each with its group,
// and returns nil when a look at every process finds none and those killed are
// gone. If ctx ends first the error is fault.Canceled and says how many are
// known to be left. Several run ids cost one look, not several.
func KillByRunID(ctx context.Context, runIDs ...string) error {
	var dying []int
	lastSeen := time.Now()
	none := poll(ctx, func() bool {
		found, settled := look(runIDs)
		for _, pid := range found {
			killWithGroup(pid)
		}
		// A process on its way out has lost its environment while it still
		// holds its files: what was found stays on the list until it is gone.
		dying = slices.DeleteFunc(append(dying, found...), func(pid int) bool { return !pidAlive(pid) })
		if len(found) > 0 || len(dying) > 0 {
			lastSeen = time.Now()
			return false
		}
		return settled || time.Since(lastSeen) > settleBound
	})
	if none {
		return nil
	}
	slices.Sort(dying)
	left := len(slices.Compact(dying))
	return fault.Wrapf(fault.Canceled, context.Cause(ctx), "%d processes of run %q could not be killed", left, runIDs)
}
