package local

import (
	"context"

	"jobq/core/coord"
	"jobq/core/fault"
)

// Execute runs the workflow to its end and returns how it ended. When ctx ends
// it stops cleanly, so that another Execute goes on, and returns the present
// summary with an error of code fault.Canceled.
func Execute(ctx context.Context, o Options) (coord.Summary, error) {
	return coord.Summary{}, fault.New(fault.Internal, "not wired yet")
}
