package store

import (
	"context"
	"time"

	"jobq/core/port"
)

// refusing is a queue whose name cannot be served: every call says why.
type refusing struct {
	name string
	why  error
}

var _ port.Queue = refusing{}

func (q refusing) Name() string            { return q.name }
func (q refusing) Props() port.QueueProps  { return port.QueueProps{} }
func (q refusing) PoisonQueue() port.Queue { return q }

func (q refusing) Send(_ context.Context, messages []port.Message) []error {
	return q.each(len(messages))
}

func (q refusing) Acknowledge(_ context.Context, ds []port.Delivery) []error { return q.each(len(ds)) }

func (q refusing) Receive(context.Context, port.ReceiveOptions) ([]port.Delivery, error) {
	return nil, q.why
}

func (q refusing) Extend(context.Context, *port.Delivery, time.Duration) error { return q.why }

func (q refusing) Release(context.Context, port.Delivery, time.Duration) error { return q.why }

func (q refusing) Poison(context.Context, port.Delivery, string) error { return q.why }

func (q refusing) Count(context.Context) (int, error) { return 0, q.why }

func (q refusing) Peek(context.Context, int) ([]port.Delivery, error) { return nil, q.why }

func (q refusing) Clear(context.Context) (int, error) { return 0, q.why }

func (q refusing) each(n int) []error {
	errs := make([]error, n)
	for i := range errs {
		errs[i] = q.why
	}
	return errs
}
