package azstorage

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"

	"jobq/core/fault"
	"jobq/core/port"
)

var _ port.Queue = queue{}

const (
	// maxMessage is the largest text of a message, in bytes of UTF-8.
	maxMessage = 64 << 10
	maxReceive = 32
	// maxHidden bounds delays and locks.
	maxHidden = 7 * 24 * time.Hour
	// poisonLock is how long a message is held while it moves.
	poisonLock = time.Minute
)

// queue is one queue. Messages are stored as the text that they are. The
// service counts its times in whole seconds: delays and locks are rounded up.
//
// A delivery is known by the id that the service gave its message and by the
// pop receipt, which changes with every receive and every update. Release is an
// update of the visibility: the count of deliveries stays and goes on rising
// with the next one, which is all the same to jobq but not to a Functions host
// that moves messages away by that count.
//
// The service answers a pop receipt that is not the newest with 404, as it does
// for a message that is gone, or with 400.
type queue struct {
	all    queues
	name   string
	client *azqueue.QueueClient
}

func (q queue) Name() string { return q.name }

func (q queue) Props() port.QueueProps {
	return port.QueueProps{
		MaxMessage: maxMessage, MaxBatch: maxReceive, MaxDelay: maxHidden, MaxLock: maxHidden,
		AssignsID: true, NativeRelease: true, CountReadable: true, LostLooksGone: true,
	}
}

func (q queue) PoisonQueue() port.Queue { return q.all.open(port.PoisonName(q.name)) }

// begin checks what every call needs.
func (q queue) begin(ctx context.Context, doing string) error {
	if err := checkQueueName(q.name); err != nil {
		return err
	}
	return ended(ctx, doing)
}

func (q queue) of(verb string) string {
	return verb + " queue " + q.name + " in account " + q.all.account
}

// failed classifies the error of a call on the queue as a whole.
func (q queue) failed(ctx context.Context, err error, doing string) error {
	if code, _ := status(err); code == http.StatusNotFound && ctx.Err() == nil {
		return q.missing()
	}
	return classify(ctx, err, nil, doing)
}

func (q queue) missing() error {
	return fault.Newf(fault.NotFound, "queue %s does not exist in account %s", q.name, q.all.account).
		WithRemedy("check the name, or create the queue")
}

// Send makes one call a message, several at a time.
func (q queue) Send(ctx context.Context, messages []port.Message) []error {
	return each(len(messages), func(i int) error { return q.send(ctx, messages[i]) })
}

func (q queue) send(ctx context.Context, m port.Message) error {
	doing := q.of("send to")
	if err := q.begin(ctx, doing); err != nil {
		return err
	}
	if err := q.check(m); err != nil {
		return err
	}
	return q.store(ctx, string(m.Body), m.Delay, doing)
}

// check says whether m can be sent at all.
func (q queue) check(m port.Message) error {
	if len(m.Body) > maxMessage {
		return tooLarge("a message for queue "+q.name, len(m.Body), maxMessage)
	}
	if m.Delay > maxHidden {
		return fault.Newf(fault.Invalid, "a message for queue %s has a delay of %v, at most %v are possible", q.name, m.Delay, maxHidden)
	}
	for at, r := range string(m.Body) {
		bad := !inXML(r)
		if r == utf8.RuneError {
			_, width := utf8.DecodeRune(m.Body[at:])
			bad = width == 1
		}
		if bad {
			return fault.Newf(fault.Invalid, "a message for queue %s has a byte at %d that is no text a queue of Azure Storage can keep", q.name, at)
		}
	}
	if size := requestSize(string(m.Body)); size > maxRequest {
		return tooLarge("the request for a message of "+strconv.Itoa(len(m.Body))+" bytes for queue "+q.name+", in which & and a line end take 5,", size, maxRequest)
	}
	return nil
}

// store adds a message that never expires.
func (q queue) store(ctx context.Context, text string, delay time.Duration, doing string) error {
	_, err := q.client.EnqueueMessage(ctx, text, &azqueue.EnqueueMessageOptions{
		TimeToLive: new(int32(-1)), VisibilityTimeout: new(seconds(delay)),
	})
	if err != nil {
		return q.failed(ctx, err, doing)
	}
	return nil
}

// seconds returns d in whole seconds, rounded up.
func seconds(d time.Duration) int32 {
	return int32((min(max(d, 0), maxHidden) + time.Second - 1) / time.Second)
}

// Receive may return messages though ctx has ended meanwhile.
func (q queue) Receive(ctx context.Context, o port.ReceiveOptions) ([]port.Delivery, error) {
	doing := q.of("receive from")
	if o.Max <= 0 || o.Lock <= 0 {
		return nil, fault.Newf(fault.Invalid, "a receive of %d messages for %v is not possible; both must be above 0", o.Max, o.Lock)
	}
	if err := q.begin(ctx, doing); err != nil {
		return nil, err
	}
	longer, stop := linger(ctx)
	defer stop()
	lock := seconds(o.Lock)
	until := time.Now().Add(time.Duration(lock) * time.Second)
	got, err := q.client.DequeueMessages(longer, &azqueue.DequeueMessagesOptions{
		NumberOfMessages: new(int32(min(o.Max, maxReceive))), VisibilityTimeout: &lock,
	})
	if err != nil {
		return nil, q.failed(ctx, err, doing)
	}
	ds := make([]port.Delivery, 0, len(got.Messages))
	for _, m := range got.Messages {
		if m == nil || m.MessageID == nil || m.PopReceipt == nil {
			continue
		}
		d := port.Delivery{ID: *m.MessageID, Receipt: *m.PopReceipt, Until: until}
		d.Body, d.Reason = q.unpack(m.MessageText)
		if m.DequeueCount != nil {
			d.Count = int(*m.DequeueCount)
		}
		if m.InsertionTime != nil {
			d.Sent = *m.InsertionTime
		}
		ds = append(ds, d)
	}
	return ds, nil
}

// unpack returns the body of a stored text, and the reason where it is poison.
func (q queue) unpack(text *string) (body []byte, reason string) {
	switch {
	case text == nil:
		return nil, ""
	case poisonQueue(q.name):
		return unpackPoison(*text)
	}
	return []byte(*text), ""
}

// update hides a message for d from now on and returns its new receipt. Its
// text stays as it is.
func (q queue) update(ctx context.Context, d port.Delivery, hidden time.Duration, doing string) (string, error) {
	if err := q.begin(ctx, doing); err != nil {
		return "", err
	}
	receipt, _ := popReceipt(d)
	got, err := q.client.UpdateMessage(keepText(ctx), pathID(d.ID), receipt, "", &azqueue.UpdateMessageOptions{VisibilityTimeout: new(seconds(hidden))})
	if err != nil {
		return "", q.refused(ctx, err, doing)
	}
	if got.PopReceipt == nil {
		return "", fault.Newf(fault.Unavailable, "cannot %s: the answer lacks its receipt", doing)
	}
	return *got.PopReceipt, nil
}

// refused classifies the error of a call on one message: what is not a missing
// queue is a receipt that is not the newest, or a message that is gone.
func (q queue) refused(ctx context.Context, err error, doing string) error {
	code, said := status(err)
	if code == http.StatusNotFound && said != "MessageNotFound" && ctx.Err() == nil {
		if said == "QueueNotFound" {
			return q.missing()
		}
		if _, err := q.client.GetProperties(ctx, nil); err != nil {
			return q.failed(ctx, err, doing)
		}
	}
	return classify(ctx, err, verdicts{http.StatusNotFound: fault.LeaseLost, http.StatusBadRequest: fault.LeaseLost, http.StatusConflict: fault.LeaseLost, http.StatusPreconditionFailed: fault.LeaseLost}, doing)
}

func (q queue) Extend(ctx context.Context, d *port.Delivery, lock time.Duration) error {
	hidden := max(seconds(lock), 1)
	until := time.Now().Add(time.Duration(hidden) * time.Second)
	receipt, err := q.update(ctx, *d, time.Duration(hidden)*time.Second, q.of("keep a message of"))
	if err == nil {
		d.Receipt, d.Until = receipt, until
		return nil
	}
	if old, doubted := popReceipt(*d); !doubted && (fault.Is(err, fault.Unavailable) || fault.Is(err, fault.Canceled)) {
		d.Receipt = doubt + old
	}
	return err
}

// doubt begins a receipt that may have been replaced: an Extend by it had no
// answer. No receipt of the service begins so.
const doubt = "?"

// popReceipt returns the receipt of d as the service knows it, and whether there
// is a doubt about it.
func popReceipt(d port.Delivery) (receipt string, doubted bool) {
	return strings.CutPrefix(d.Receipt, doubt)
}

// Acknowledge makes one call a message, several at a time.
func (q queue) Acknowledge(ctx context.Context, ds []port.Delivery) []error {
	return each(len(ds), func(i int) error { return q.acknowledge(ctx, ds[i]) })
}

func (q queue) acknowledge(ctx context.Context, d port.Delivery) error {
	doing := q.of("remove a message of")
	if err := q.begin(ctx, doing); err != nil {
		return err
	}
	receipt, doubted := popReceipt(d)
	_, err := q.client.DeleteMessage(ctx, pathID(d.ID), receipt, nil)
	if err == nil {
		return nil
	}
	code, _ := status(err)
	lost := q.refused(ctx, err, doing)
	if code == http.StatusNotFound && fault.Is(lost, fault.LeaseLost) && !doubted {
		// Where it is not gone but lost, who has it now settles it.
		return nil
	}
	return lost
}

func (q queue) Release(ctx context.Context, d port.Delivery, delay time.Duration) error {
	if delay > maxHidden {
		return fault.Newf(fault.Invalid, "a message of queue %s cannot be given back for %v, at most %v are possible", q.name, delay, maxHidden)
	}
	_, err := q.update(ctx, d, delay, q.of("give back a message of"))
	return err
}

// Poison takes the message for itself first, so that a stale receipt moves
// nothing. A stop between its two writes leaves the message in both queues.
func (q queue) Poison(ctx context.Context, d port.Delivery, reason string) error {
	if err := q.Extend(ctx, &d, poisonLock); err != nil {
		return err
	}
	poison := q.all.open(port.PoisonName(q.name))
	text := packPoison(d.Body, reason)
	err := poison.store(ctx, text, 0, poison.of("send to"))
	if fault.Is(err, fault.NotFound) {
		if err := q.all.create(ctx, poison.name); err != nil {
			return err
		}
		err = poison.store(ctx, text, 0, poison.of("send to"))
	}
	if err != nil {
		return err
	}
	return q.acknowledge(ctx, d)
}

// Count returns the service's estimate, which is never below the truth.
func (q queue) Count(ctx context.Context) (int, error) {
	doing := q.of("count the messages of")
	if err := q.begin(ctx, doing); err != nil {
		return 0, err
	}
	got, err := q.client.GetProperties(ctx, nil)
	if err != nil {
		return 0, q.failed(ctx, err, doing)
	}
	if got.ApproximateMessagesCount == nil {
		return 0, fault.Newf(fault.Unavailable, "cannot %s: the answer lacks the number", doing)
	}
	return int(*got.ApproximateMessagesCount), nil
}

// Peek shows at most 32 messages.
func (q queue) Peek(ctx context.Context, most int) ([]port.Delivery, error) {
	doing := q.of("peek into")
	if err := q.begin(ctx, doing); err != nil {
		return nil, err
	}
	got, err := q.client.PeekMessages(ctx, &azqueue.PeekMessagesOptions{NumberOfMessages: new(int32(min(max(most, 1), maxReceive)))})
	if err != nil {
		return nil, q.failed(ctx, err, doing)
	}
	var ds []port.Delivery
	for _, m := range got.Messages[:min(len(got.Messages), max(most, 0))] {
		if m == nil || m.MessageID == nil {
			continue
		}
		d := port.Delivery{ID: *m.MessageID}
		d.Body, d.Reason = q.unpack(m.MessageText)
		if m.InsertionTime != nil {
			d.Sent = *m.InsertionTime
		}
		ds = append(ds, d)
	}
	return ds, nil
}

func (q queue) Clear(ctx context.Context) (int, error) {
	n, err := q.Count(ctx)
	if err != nil {
		return 0, err
	}
	doing := q.of("clear")
	if _, err := q.client.ClearMessages(ctx, nil); err != nil {
		return 0, q.failed(ctx, err, doing)
	}
	return n, nil
}

// String names the queue for people.
func (q queue) String() string { return fmt.Sprintf("%s/%s", q.all.account, q.name) }
