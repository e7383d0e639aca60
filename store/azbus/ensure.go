package azbus

import (
	"context"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"

	"jobq/core/fault"
)

// Ensure creates the queue called name as Options says, with duplicate
// detection and without sessions. It needs the right to manage the namespace
// only where the queue is absent.
func (b *Bus) Ensure(ctx context.Context, name string) error {
	q := b.queue(name)
	err := q.manage(ctx, "creating", func(ctx context.Context) error {
		_, err := b.admin.CreateQueue(ctx, q.parent, &admin.CreateQueueOptions{Properties: &admin.QueueProperties{
			LockDuration:                        new(iso(b.o.Lock)),
			RequiresDuplicateDetection:          new(true),
			DuplicateDetectionHistoryTimeWindow: new(iso(b.o.DedupWindow)),
			MaxDeliveryCount:                    new(int32(b.o.DeliveryLimit)),
			RequiresSession:                     new(false),
		}})
		return err
	})
	if err == nil || fault.Is(err, fault.Exists) {
		return nil
	}
	if !fault.Is(err, fault.Denied) {
		return err
	}
	if _, lookErr := q.Peek(ctx, 1); !fault.Is(lookErr, fault.NotFound) {
		return lookErr
	}
	return fault.Wrapf(fault.Denied, err, "queue %s does not exist in %s, and this identity may not create it", name, b.o.Namespace).
		WithRemedy("create the queue, or give this identity the role Azure Service Bus Data Owner")
}

// manage makes one call of the management API within callBound.
func (q *queue) manage(ctx context.Context, doing string, f func(context.Context) error) error {
	if err := q.check(); err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, callBound)
	defer cancel()
	if err := f(bounded); err != nil {
		return q.fail(ctx, err, doing)
	}
	return nil
}

// iso writes a duration of whole seconds in the form of ISO 8601.
func iso(d time.Duration) string { return fmt.Sprintf("PT%dS", int64(d.Seconds())) }
