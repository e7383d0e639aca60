package azstorage

import (
	"context"
	"time"
)

// lingering is how long a receive outlasts the end of its context.
const lingering = 2 * time.Second

// linger returns a context that ends that long after ctx does, and how to give it
// up. What the service has taken out of a queue for a receive must arrive: given up
// half way, nobody would see it before its lock ends.
func linger(ctx context.Context) (longer context.Context, stop func()) {
	longer, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	over := make(chan struct{})
	unhook := context.AfterFunc(ctx, func() {
		defer close(over)
		timer := time.NewTimer(lingering)
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel(context.Cause(ctx))
		case <-longer.Done():
		}
	})
	return longer, func() {
		cancel(nil)
		if !unhook() {
			<-over
		}
	}
}
