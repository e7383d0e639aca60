package port

import (
	"context"
	"strings"
	"time"
)

// Queues opens the queues of a store by name.
type Queues interface {
	// Queue returns the queue called name without asking the store whether it
	// exists. Calls with one name share what is costly.
	Queue(name string) Queue
	// Ensure creates the queue called name if it is absent and may be created.
	// Fails with fault.Denied where it may not.
	Ensure(ctx context.Context, name string) error
}

// Queue delivers messages at least once, in no order that a caller may rely on.
// A missing queue is fault.NotFound on every method.
type Queue interface {
	// Name returns the name that the queue was opened by.
	Name() string
	// Props returns what this queue can do.
	Props() QueueProps
	// Send stores messages, in as few calls as the service allows. The result is
	// nil when all were accepted, else one entry a message: nil for accepted.
	// fault.TooLarge and fault.Invalid are final for that message alone.
	Send(ctx context.Context, messages []Message) []error
	// Receive returns up to o.Max messages and hides them from others for o.Lock.
	// With nothing to deliver it waits up to o.Wait (a driver that cannot wait
	// returns at once) and then returns an empty slice and no error. What was taken
	// when ctx ended is returned, without an error.
	Receive(ctx context.Context, o ReceiveOptions) ([]Delivery, error)
	// Extend hides d for lock from now on and replaces d.Receipt and d.Until.
	// Fails with fault.LeaseLost when another delivery has taken over.
	Extend(ctx context.Context, d *Delivery, lock time.Duration) error
	// Acknowledge removes messages for good. The result is as Send's. A message
	// that is gone already counts as done; a receipt that is no longer the newest
	// removes nothing and is fault.LeaseLost, or counts as done where
	// QueueProps.LostLooksGone is set.
	Acknowledge(ctx context.Context, ds []Delivery) []error
	// Release gives d back so that it is delivered again after delay. It never
	// leads towards the poison queue.
	Release(ctx context.Context, d Delivery, delay time.Duration) error
	// Poison moves d to the poison queue with a reason for people.
	Poison(ctx context.Context, d Delivery, reason string) error
	// PoisonQueue returns the queue that Poison moves messages to.
	PoisonQueue() Queue
	// Count returns how many messages are stored, hidden ones included, or
	// fault.Invalid where QueueProps.CountReadable is false.
	Count(ctx context.Context) (int, error)
	// Peek returns up to most messages without hiding them.
	Peek(ctx context.Context, most int) ([]Delivery, error)
	// Clear removes every message and returns how many there were, as far as known.
	Clear(ctx context.Context) (int, error)
}

// Message is a message to send. ID matters where QueueProps.Deduplicates is
// set; Delay hides the message at first.
type Message struct {
	ID    string
	Body  []byte
	Delay time.Duration
}

// ReceiveOptions bounds one Receive.
type ReceiveOptions struct {
	Max  int
	Lock time.Duration
	Wait time.Duration
}

// Delivery is a message in the hands of one receiver.
type Delivery struct {
	ID   string
	Body []byte
	// Count is the number of deliveries so far, this one included, those before a
	// Release too: whoever sees 2 or more may meet what another receiver began.
	Count int
	// Receipt is what the newest delivery is known by; opaque.
	Receipt string
	// Until is when the lock ends, by the receiver's clock; zero on Peek.
	Until time.Time
	// Sent is when the message was stored, by the store's clock; may be zero.
	Sent time.Time
	// Reason is why the message was poisoned, where it was.
	Reason string
}

// QueueProps declares what a queue can do. Sizes are bytes; 0 means no limit.
type QueueProps struct {
	// MaxMessage is the largest body. Send may refuse a smaller one, with
	// fault.TooLarge, for the form in which its bytes travel.
	MaxMessage int
	// MaxBatch is the largest Receive; larger wishes are cut.
	MaxBatch int
	// MaxDelay bounds Message.Delay and Release.
	MaxDelay time.Duration
	// MaxLock bounds the lock of Receive and Extend.
	MaxLock time.Duration
	// Deduplicates says that a message with a known ID is silently dropped for
	// DedupWindow.
	Deduplicates bool
	DedupWindow  time.Duration
	// DeliveryLimit is the number of deliveries after which the service itself
	// poisons a message; 0 for none.
	DeliveryLimit int
	// AssignsID says that the service names messages itself: Delivery.ID is the
	// same at every delivery, but it is not Message.ID.
	AssignsID bool
	// NativeRelease says that Release keeps the message, else it makes a copy that
	// carries the number of its deliveries.
	NativeRelease bool
	CountReadable bool
	// CanWait says that Receive honours ReceiveOptions.Wait.
	CanWait bool
	// FixedLock says that a lock lasts MaxLock, whatever Receive and Extend ask for.
	FixedLock bool
	// ClearLeavesLocked says that Clear cannot remove what a receiver holds.
	ClearLeavesLocked bool
	// LostLooksGone says that the service answers a receipt that is no longer the
	// newest like a message that is gone, so that Acknowledge cannot tell them apart.
	LostLooksGone bool
	// NoSend says that the service alone fills the queue: Send, and Release with a
	// delay, fail with fault.Invalid.
	NoSend bool
}

// PoisonName returns the name of the poison queue that belongs to the queue
// called name where the service has no dead letters of its own: that of an
// inbox ends in "-poison", that of a task queue in "-failed".
func PoisonName(name string) string {
	if strings.HasSuffix(name, "-workflow-completions") {
		return name + "-poison"
	}
	return name + "-failed"
}
