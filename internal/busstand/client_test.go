package busstand_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"
	"github.com/google/go-cmp/cmp"

	"jobq/internal/busstand"
)

// rig is a stand-in on TCP with the queue "cpu", and the client of Azure.
type rig struct {
	*busstand.Server
	client   *azservicebus.Client
	sender   *azservicebus.Sender
	receiver *azservicebus.Receiver
}

const lock = time.Minute

func start(t *testing.T, o busstand.Options) rig {
	t.Helper()
	s := busstand.New(o)
	t.Cleanup(s.Close)
	s.CreateQueue("cpu", busstand.QueueConfig{Lock: lock, DedupWindow: time.Hour, MaxDeliveries: 3})
	text, err := s.Start()
	ok(t, err, "Start")
	client, err := azservicebus.NewClientFromConnectionString(text, &azservicebus.ClientOptions{RetryOptions: azservicebus.RetryOptions{MaxRetries: -1}})
	ok(t, err, "NewClientFromConnectionString")
	r := rig{Server: s, client: client}
	t.Cleanup(func() { _ = client.Close(context.WithoutCancel(t.Context())) })
	r.sender, err = client.NewSender("cpu", nil)
	ok(t, err, "NewSender")
	r.receiver = r.open(t, "cpu", nil)
	return r
}

func (r rig) open(t *testing.T, queue string, o *azservicebus.ReceiverOptions) *azservicebus.Receiver {
	t.Helper()
	receiver, err := r.client.NewReceiverForQueue(queue, o)
	ok(t, err, "NewReceiverForQueue")
	return receiver
}

func ok(t *testing.T, err error, call string) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s = error %v", call, err)
	}
}

func same(t *testing.T, got, want any, what string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", what, diff)
	}
}

func (r rig) send(t *testing.T, ids ...string) {
	t.Helper()
	for _, id := range ids {
		ok(t, r.sender.SendMessage(t.Context(), &azservicebus.Message{MessageID: &id, Body: []byte(id)}, nil), "SendMessage")
	}
}

func receive(t *testing.T, r *azservicebus.Receiver, most int) []*azservicebus.ReceivedMessage {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var all []*azservicebus.ReceivedMessage
	for len(all) < most {
		ms, err := r.ReceiveMessages(ctx, most-len(all), nil)
		ok(t, err, "ReceiveMessages")
		all = append(all, ms...)
	}
	return all
}

// empty checks that nothing arrives.
func empty(t *testing.T, r *azservicebus.Receiver) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if ms, err := r.ReceiveMessages(ctx, 1, nil); len(ms) > 0 || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("ReceiveMessages = %d messages, error %v; want none until the deadline", len(ms), err)
	}
}

func fails(t *testing.T, err error, want azservicebus.Code, call string) {
	t.Helper()
	e, is := errors.AsType[*azservicebus.Error](err)
	if !is || e.Code != want {
		t.Errorf("%s = error %v, want code %s", call, err, want)
	}
}

func ids(ms []*azservicebus.ReceivedMessage) []string {
	var all []string
	for _, m := range ms {
		all = append(all, m.MessageID)
	}
	return all
}

func TestMessagesCarryWhatTheServiceTells(t *testing.T) {
	t.Parallel()
	r := start(t, busstand.Options{})
	ok(t, r.sender.SendMessage(t.Context(), &azservicebus.Message{
		MessageID: new("one"), Body: []byte("body"), ContentType: new("application/json"), CorrelationID: new("c"), Subject: new("s"),
		ApplicationProperties: map[string]any{"text": "é", "number": int64(7), "truth": true, "float": 1.5}, TimeToLive: new(time.Hour),
	}, nil), "SendMessage")
	m := receive(t, r.receiver, 1)[0]
	same(t, []any{m.MessageID, string(m.Body), *m.ContentType, *m.CorrelationID, *m.Subject, m.DeliveryCount, *m.SequenceNumber, m.State},
		[]any{"one", "body", "application/json", "c", "s", uint32(1), int64(1), azservicebus.MessageStateActive}, "the message")
	same(t, m.ApplicationProperties, map[string]any{"text": "é", "number": int64(7), "truth": true, "float": 1.5}, "the application properties")
	if left := time.Until(*m.LockedUntil); left < lock-5*time.Second || left > lock {
		t.Errorf("the message is locked for %v, want about %v", left, lock)
	}
	if since := time.Since(*m.EnqueuedTime); since < -time.Second || since > 5*time.Second {
		t.Errorf("the message was enqueued %v ago", since)
	}
	same(t, *m.TimeToLive, time.Hour, "the time to live")
	ok(t, r.receiver.CompleteMessage(t.Context(), m, nil), "CompleteMessage")
	ok(t, r.receiver.CompleteMessage(t.Context(), m, nil), "CompleteMessage again")
	empty(t, r.receiver)
}

func TestBatchesKeepOrderAndDropKnownIDs(t *testing.T) {
	t.Parallel()
	r := start(t, busstand.Options{})
	batch, err := r.sender.NewMessageBatch(t.Context(), nil)
	ok(t, err, "NewMessageBatch")
	var want []string
	for i := range 31 {
		id := fmt.Sprint(i)
		want = append(want, id)
		ok(t, batch.AddMessage(&azservicebus.Message{MessageID: &id, Body: []byte(id)}, nil), "AddMessage")
	}
	ok(t, r.sender.SendMessageBatch(t.Context(), batch, nil), "SendMessageBatch")
	r.send(t, "3", "new")
	same(t, ids(receive(t, r.receiver, 32)), append(want, "new"), "the messages")
	r.Advance(2 * time.Hour)
	r.send(t, "3")
	again := receive(t, r.receiver, 33)
	if !slices.ContainsFunc(again, func(m *azservicebus.ReceivedMessage) bool { return m.MessageID == "3" && m.DeliveryCount == 1 }) {
		t.Error("an id was still known after the window")
	}
}

func TestSettling(t *testing.T) {
	t.Parallel()
	r := start(t, busstand.Options{})
	ctx := t.Context()
	r.send(t, "a", "b", "c", "d")
	ms := receive(t, r.receiver, 4)
	ok(t, r.receiver.AbandonMessage(ctx, ms[0], nil), "AbandonMessage")
	ok(t, r.receiver.DeadLetterMessage(ctx, ms[1], &azservicebus.DeadLetterOptions{Reason: new("why"), ErrorDescription: new("how")}), "DeadLetterMessage")
	ok(t, r.receiver.DeferMessage(ctx, ms[2], nil), "DeferMessage")
	ok(t, r.receiver.RenewMessageLock(ctx, ms[3], nil), "RenewMessageLock")
	again := receive(t, r.receiver, 1)[0]
	same(t, []any{again.MessageID, again.DeliveryCount, *again.SequenceNumber}, []any{"a", uint32(2), int64(1)}, "the abandoned message")
	dead := r.open(t, "CPU", &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter})
	letter := receive(t, dead, 1)[0]
	same(t, []string{letter.MessageID, *letter.DeadLetterReason, *letter.DeadLetterErrorDescription, *letter.DeadLetterSource},
		[]string{"b", "why", "how", "cpu"}, "the dead letter")
	ok(t, dead.CompleteMessage(ctx, letter, nil), "CompleteMessage of a dead letter")
	peeked, err := r.receiver.PeekMessages(ctx, 10, nil)
	ok(t, err, "PeekMessages")
	same(t, ids(peeked), []string{"a", "c", "d"}, "PeekMessages")
	same(t, peeked[1].State, azservicebus.MessageStateDeferred, "the state of the deferred message")
	// Without its delivery, as another process settles: through management.
	ok(t, r.receiver.CompleteMessage(ctx, &azservicebus.ReceivedMessage{LockToken: ms[3].LockToken}, nil), "CompleteMessage by its token alone")
	peeked, err = r.receiver.PeekMessages(ctx, 10, &azservicebus.PeekMessagesOptions{FromSequenceNumber: new(int64(2))})
	ok(t, err, "PeekMessages")
	same(t, ids(peeked), []string{"c"}, "PeekMessages from a number on")
}

func TestLocksEnd(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(r rig){
		"by time":    func(r rig) { r.Advance(lock) },
		"by a fault": func(r rig) { r.LoseLocks("cpu") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t, busstand.Options{})
			ctx := t.Context()
			r.send(t, "a")
			m := receive(t, r.receiver, 1)[0]
			r.Advance(lock / 2)
			ok(t, r.receiver.RenewMessageLock(ctx, m, nil), "RenewMessageLock")
			r.Advance(lock - time.Second)
			empty(t, r.receiver)
			end(r)
			again := receive(t, r.receiver, 1)[0]
			same(t, again.DeliveryCount, uint32(2), "the delivery count")
			fails(t, r.receiver.RenewMessageLock(ctx, m, nil), azservicebus.CodeLockLost, "RenewMessageLock")
			fails(t, r.receiver.CompleteMessage(ctx, m, nil), azservicebus.CodeLockLost, "CompleteMessage")
			fails(t, r.receiver.CompleteMessage(ctx, &azservicebus.ReceivedMessage{LockToken: m.LockToken}, nil), azservicebus.CodeLockLost, "CompleteMessage by token")
			end(r)
			receive(t, r.receiver, 1)
			end(r)
			letter := receive(t, r.open(t, "cpu", &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter}), 1)[0]
			same(t, *letter.DeadLetterReason, "MaxDeliveryCountExceeded", "the reason after three deliveries")
		})
	}
}

func TestScheduledMessages(t *testing.T) {
	t.Parallel()
	r := start(t, busstand.Options{})
	ctx := t.Context()
	at := time.Now().Add(time.Hour)
	numbers, err := r.sender.ScheduleMessages(ctx, []*azservicebus.Message{{MessageID: new("a"), Body: []byte("a")}, {MessageID: new("b")}}, at, nil)
	ok(t, err, "ScheduleMessages")
	ok(t, r.sender.SendMessage(ctx, &azservicebus.Message{MessageID: new("c"), ScheduledEnqueueTime: &at}, nil), "SendMessage with a time")
	ok(t, r.sender.CancelScheduledMessages(ctx, numbers[1:], nil), "CancelScheduledMessages")
	fails(t, r.sender.CancelScheduledMessages(ctx, numbers[1:], nil), azservicebus.CodeNotFound, "CancelScheduledMessages again")
	empty(t, r.receiver)
	r.Advance(time.Hour)
	same(t, ids(receive(t, r.receiver, 2)), []string{"a", "c"}, "the messages that became due")
}

func TestALongPollWakes(t *testing.T) {
	t.Parallel()
	r := start(t, busstand.Options{})
	got := make(chan []*azservicebus.ReceivedMessage)
	go func() {
		ms, _ := r.receiver.ReceiveMessages(t.Context(), 1, nil)
		got <- ms
	}()
	r.send(t, "a")
	if ms := <-got; len(ms) != 1 {
		t.Errorf("the waiting ReceiveMessages gave %d messages, want 1", len(ms))
	}
}

func TestLargeMessages(t *testing.T) {
	t.Parallel()
	r := start(t, busstand.Options{})
	body := []byte(strings.Repeat("0123456789abcdef", 250<<10/16))
	ok(t, r.sender.SendMessage(t.Context(), &azservicebus.Message{Body: body}, nil), "SendMessage of 250 KiB")
	if m := receive(t, r.receiver, 1)[0]; !slices.Equal(m.Body, body) {
		t.Errorf("the body of %d bytes came back changed, with %d bytes", len(body), len(m.Body))
	}
	err := r.sender.SendMessage(t.Context(), &azservicebus.Message{Body: make([]byte, 300<<10)}, nil)
	if !errors.Is(err, azservicebus.ErrMessageTooLarge) {
		t.Errorf("SendMessage of 300 KiB = error %v, want ErrMessageTooLarge", err)
	}
}

func TestReceiveAndDelete(t *testing.T) {
	t.Parallel()
	r := start(t, busstand.Options{})
	r.send(t, "a", "b")
	taker := r.open(t, "cpu", &azservicebus.ReceiverOptions{ReceiveMode: azservicebus.ReceiveModeReceiveAndDelete})
	same(t, ids(receive(t, taker, 2)), []string{"a", "b"}, "the messages")
	peeked, err := r.receiver.PeekMessages(t.Context(), 10, nil)
	ok(t, err, "PeekMessages")
	same(t, len(peeked), 0, "messages that are left")
}

func TestWhatDoesNotExistIsNotFound(t *testing.T) {
	t.Parallel()
	r := start(t, busstand.Options{})
	sender, err := r.client.NewSender("absent", nil)
	ok(t, err, "NewSender")
	for call, err := range map[string]error{
		"SendMessage": sender.SendMessage(t.Context(), &azservicebus.Message{}, nil),
		"PeekMessages": func() error {
			_, err := r.open(t, "absent", nil).PeekMessages(t.Context(), 1, nil)
			return err
		}(),
	} {
		if e, is := errors.AsType[*amqp.Error](err); !is || e.Condition != amqp.ErrCondNotFound {
			t.Errorf("%s = error %v, want amqp:not-found", call, err)
		}
	}
}

func TestClientsRecover(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(r rig){
		"from detached links":      func(r rig) { r.DropLinks("cpu") },
		"from dropped connections": func(r rig) { r.DropConnections() },
		"from an answer lost":      func(r rig) { r.Inject(busstand.Rule{Op: busstand.OpSend, Times: 1, LoseAnswer: true}) },
		"from a busy server":       func(r rig) { r.Inject(busstand.Rule{Op: busstand.OpSend, Times: 1, Condition: busstand.ServerBusy}) },
		"from an attach refused": func(r rig) {
			r.DropLinks("cpu")
			r.Inject(busstand.Rule{Op: busstand.OpAttach, Times: 1, Condition: busstand.Timeout})
		},
		"from a slow answer":        func(r rig) { r.Inject(busstand.Rule{Op: busstand.OpSend, Times: 1, Delay: 20 * time.Millisecond}) },
		"from sending things twice": func(r rig) { r.Inject(busstand.Rule{Op: busstand.OpSend, Times: 1, Twice: true}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t, busstand.Options{})
			client, err := azservicebus.NewClientFromConnectionString(address(t, r.Server), &azservicebus.ClientOptions{
				RetryOptions: azservicebus.RetryOptions{MaxRetries: 5, RetryDelay: time.Millisecond},
			})
			ok(t, err, "NewClientFromConnectionString")
			defer client.Close(context.WithoutCancel(t.Context()))
			sender, err := client.NewSender("cpu", nil)
			ok(t, err, "NewSender")
			ok(t, sender.SendMessage(t.Context(), &azservicebus.Message{MessageID: new("a")}, nil), "SendMessage")
			held := receive(t, r.receiver, 1)
			fault(r)
			ok(t, sender.SendMessage(t.Context(), &azservicebus.Message{MessageID: new("b")}, nil), "SendMessage after the fault")
			r.Advance(lock)
			receiver, err := client.NewReceiverForQueue("cpu", nil)
			ok(t, err, "NewReceiverForQueue")
			same(t, ids(receive(t, receiver, 2)), append(ids(held), "b"), "the messages after the fault")
		})
	}
}

// address starts a further listener, so that a second client has a connection
// string.
func address(t *testing.T, s *busstand.Server) string {
	t.Helper()
	text, err := s.Start()
	ok(t, err, "Start")
	return text
}
