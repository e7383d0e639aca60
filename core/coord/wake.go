package coord

import (
	"context"

	"jobq/core/engine"
)

// Wake looks at workflow wf and does what its state still wants, as if a
// message of a stopped process had come back.
func (c *Coordinator) Wake(ctx context.Context, wf string) error {
	ctx, cancel := c.sched.WithTimeout(ctx, c.o.roundTime(), roundOperation)
	defer cancel()
	return c.update(ctx, &job{wf: wf, items: []item{{event: engine.Wake{}, trace: true}}})
}
