package azbus_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/google/go-cmp/cmp"

	"jobq/core/fault"
	"jobq/core/port"
	"jobq/internal/busstand"
	"jobq/store/azbus"
)

// onTCP returns a namespace on real TCP and real time, by its connection string
// alone. The queue cpu is there.
func onTCP(t *testing.T) (*busstand.Server, *azbus.Bus, string) {
	t.Helper()
	s := busstand.New(busstand.Options{})
	t.Cleanup(s.Close)
	text, err := s.Start()
	if err != nil {
		t.Fatalf("Start = error %v", err)
	}
	bus, err := azbus.Open(azbus.Options{ConnectionString: text})
	if err != nil {
		t.Fatalf("Open = error %v", err)
	}
	t.Cleanup(func() { _ = bus.Close() })
	if err := bus.Ensure(t.Context(), "cpu"); err != nil {
		t.Fatalf("Ensure = error %v", err)
	}
	return s, bus, text
}

// TestOverTCP goes once through everything with nothing but a connection string.
func TestOverTCP(t *testing.T) {
	t.Parallel()
	s, bus, _ := onTCP(t)
	b := bench{Server: s, T: t, bus: bus, q: bus.Queue("cpu")}
	b.ok("Ensure again", bus.Ensure(t.Context(), "cpu"))
	b.send("a", "b", "c")
	b.ok("Send with a delay", first(b.q.Send(t.Context(), []port.Message{{ID: "d", Delay: time.Hour}})))
	b.count(4)
	ds := b.receive(b.q, 3)
	b.ok("Extend", b.q.Extend(t.Context(), &ds[0], time.Minute))
	b.ok("Acknowledge", first(b.q.Acknowledge(t.Context(), ds[:1])))
	b.ok("Poison", b.q.Poison(t.Context(), ds[1], "why"))
	b.ok("Release", b.q.Release(t.Context(), ds[2], 0))
	if again := b.receive(b.q, 1)[0]; string(again.Body) != "c" || again.Count != 2 {
		t.Errorf("the released message is %q, delivery %d; want c, delivery 2", again.Body, again.Count)
	}
	s.Advance(time.Hour)
	b.receive(b.q, 2)
	if letter := b.receive(b.q.PoisonQueue(), 1)[0]; string(letter.Body) != "b" || letter.Reason != "why" {
		t.Errorf("the dead letter is %q for the reason %q", letter.Body, letter.Reason)
	}
	n, err := bus.Queue("CPU/$deadletterqueue").Count(t.Context())
	if err != nil || n != 1 {
		t.Errorf("Count of the dead letters = %d, error %v; want 1", n, err)
	}
}

// TestRacingReceiversOverTCP has two processes with eight receivers each.
func TestRacingReceiversOverTCP(t *testing.T) {
	t.Parallel()
	const messages = 400
	s, bus, text := onTCP(t)
	other, err := azbus.Open(azbus.Options{ConnectionString: text})
	if err != nil {
		t.Fatalf("Open = error %v", err)
	}
	t.Cleanup(func() { _ = other.Close() })
	b := bench{Server: s, T: t, bus: bus, q: bus.Queue("cpu")}
	for i := range messages {
		b.send(fmt.Sprint(i))
	}
	var mu sync.Mutex
	got := map[string]int{}
	var wg sync.WaitGroup
	for i := range 16 {
		q := []*azbus.Bus{bus, other}[i%2].Queue("cpu")
		wg.Go(func() {
			for {
				ds, err := q.Receive(t.Context(), port.ReceiveOptions{Max: 5, Lock: time.Minute})
				if err != nil || len(ds) == 0 {
					if err != nil {
						t.Errorf("Receive = error %v", err)
					}
					return
				}
				if err := first(q.Acknowledge(t.Context(), ds)); err != nil {
					t.Errorf("Acknowledge = error %v", err)
				}
				mu.Lock()
				for _, d := range ds {
					got[d.ID]++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for id, n := range got {
		if n > 1 {
			t.Errorf("message %s was in the hands of %d receivers", id, n)
		}
	}
	if len(got) != messages {
		t.Errorf("%d messages were received, want %d", len(got), messages)
	}
	b.count(0)
}

func TestNamesOfQueues(t *testing.T) {
	t.Parallel()
	onBench(t, busstand.Options{}, azbus.Options{}, func(b bench) {
		for _, name := range []string{"a", "cpu-2", "GPU_a100", "a.b", "team/cpu", strings.Repeat("x", 260)} {
			b.ok("Ensure of "+name, b.bus.Ensure(b.Context(), name))
		}
		for _, name := range []string{"", "-a", "a-", "a b", "a$b", "ä", "a?b", "a#b", "a/", "/$DeadLetterQueue", strings.Repeat("x", 261)} {
			q := b.bus.Queue(name)
			_, peekErr := q.Peek(b.Context(), 1)
			_, receiveErr := q.Receive(b.Context(), port.ReceiveOptions{Max: 1, Lock: time.Minute})
			for call, err := range map[string]error{
				"Ensure": b.bus.Ensure(b.Context(), name), "Peek": peekErr, "Receive": receiveErr,
				"Send": first(q.Send(b.Context(), []port.Message{{ID: "a"}})),
			} {
				b.fails(fmt.Sprintf("%s of %q", call, name), err, fault.Invalid)
			}
		}
		if n := b.Calls(busstand.OpAttach); n != 0 {
			b.Errorf("a refused name led to %d links", n)
		}
	})
}

// TestSizes fills messages and batches to the edge: all that is allowed fits,
// with ids and delays of every length.
func TestSizes(t *testing.T) {
	t.Parallel()
	onBench(t, busstand.Options{}, azbus.Options{}, func(b bench) {
		limit := b.q.Props().MaxMessage
		var messages []port.Message
		for i, size := range []int{limit, limit + 1, limit - 1, limit, 0, 100_000, 100_000, 100_000} {
			id := fmt.Sprintf("%d/%s", i, strings.Repeat("é", 63))
			messages = append(messages, port.Message{ID: id[:128], Body: bytes.Repeat([]byte("x"), size), Delay: time.Duration(i%2) * time.Second})
		}
		errs := b.q.Send(b.Context(), messages)
		for i, err := range errs {
			if i == 1 {
				b.fails("Send above the limit", err, fault.TooLarge)
			} else {
				b.ok(fmt.Sprintf("Send of %d bytes", len(messages[i].Body)), err)
			}
		}
		time.Sleep(time.Second)
		var sizes []int
		for range 7 {
			ds, err := b.q.Receive(b.Context(), port.ReceiveOptions{Max: 1, Lock: time.Minute})
			b.ok("Receive", err)
			b.ok("Release", b.q.Release(b.Context(), ds[0], time.Minute))
			sizes = append(sizes, len(ds[0].Body))
		}
		slices.Sort(sizes)
		if diff := cmp.Diff([]int{0, 100_000, 100_000, 100_000, limit - 1, limit, limit}, sizes); diff != "" {
			b.Errorf("the sizes received differ (-want +got):\n%s", diff)
		}
		long := []port.Message{{ID: strings.Repeat("x", 129)}, {ID: "b"}}
		errs = b.q.Send(b.Context(), long)
		b.fails("Send with a long id", errs[0], fault.Invalid)
		b.ok("Send of its neighbour", errs[1])
	})
}

// TestACrowdIsSentInFewCalls counts what goes over the wire.
func TestACrowdIsSentInFewCalls(t *testing.T) {
	t.Parallel()
	onBench(t, busstand.Options{}, azbus.Options{}, func(b bench) {
		messages := make([]port.Message, 1000)
		for i := range messages {
			messages[i] = port.Message{ID: fmt.Sprint(i), Body: make([]byte, 400)}
		}
		if errs := b.q.Send(b.Context(), messages); errs != nil {
			b.Fatalf("Send = error %v", errs)
		}
		if n := b.Calls(busstand.OpSend); n > 3 {
			b.Errorf("1000 small messages took %d sends, want 3 at most", n)
		}
		if n := b.Calls(busstand.OpAttach); n > 30 {
			b.Errorf("one sender took %d links", n)
		}
		b.count(1000)
	})
}

// TestCopiesOfAReleaseHaveTheirOwnIDs follows a message through releases: no id
// twice, none too long, and the count goes on.
func TestCopiesOfAReleaseHaveTheirOwnIDs(t *testing.T) {
	t.Parallel()
	for name, id := range map[string]string{"short": "w/t/1", "longest": strings.Repeat("x", 128), "none": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBench(t, busstand.Options{}, azbus.Options{}, func(b bench) {
				b.ok("Send", first(b.q.Send(b.Context(), []port.Message{{ID: id, Body: []byte("body")}})))
				seen := map[string]bool{}
				for i := range 5 {
					d := b.receive(b.q, 1)[0]
					if seen[d.ID] || len(d.ID) > 128 || d.Count != i+1 || string(d.Body) != "body" {
						b.Errorf("delivery %d is %q, count %d, id %q of %d bytes", i+1, d.Body, d.Count, d.ID, len(d.ID))
					}
					seen[d.ID] = true
					b.ok("Release", b.q.Release(b.Context(), d, time.Second))
				}
			})
		})
	}
}

// TestReceiptsThatAreNone is about callers that mix things up.
func TestReceiptsThatAreNone(t *testing.T) {
	t.Parallel()
	onBench(t, busstand.Options{}, azbus.Options{}, func(b bench) {
		for _, receipt := range []string{"", "x", ".", "1.1", strings.Repeat("0", 32), strings.Repeat("g", 32) + ".1"} {
			b.fails(fmt.Sprintf("Acknowledge of %q", receipt), first(b.q.Acknowledge(b.Context(), []port.Delivery{{Receipt: receipt}})), fault.Invalid)
		}
		never := port.Delivery{Receipt: strings.Repeat("0", 32) + ".7"}
		b.ok("Acknowledge of what is not there", first(b.q.Acknowledge(b.Context(), []port.Delivery{never})))
		b.fails("Extend of what is not there", b.q.Extend(b.Context(), &never, time.Minute), fault.LeaseLost)
	})
}

// TestBodiesOfOtherClients reads messages that are no single block of data.
func TestBodiesOfOtherClients(t *testing.T) {
	t.Parallel()
	s, bus, text := onTCP(t)
	client, err := azservicebus.NewClientFromConnectionString(text, nil)
	if err != nil {
		t.Fatalf("NewClientFromConnectionString = error %v", err)
	}
	t.Cleanup(func() { _ = client.Close(context.WithoutCancel(t.Context())) })
	sender, err := client.NewSender("cpu", nil)
	if err != nil {
		t.Fatalf("NewSender = error %v", err)
	}
	b := bench{Server: s, T: t, bus: bus, q: bus.Queue("cpu")}
	for _, body := range []azservicebus.AMQPAnnotatedMessageBody{
		{Value: "text"}, {Value: []byte("bytes")}, {Data: [][]byte{[]byte("in "), []byte("parts")}}, {Data: [][]byte{[]byte("data")}}, {Value: int64(7)},
	} {
		b.ok("SendAMQPAnnotatedMessage", sender.SendAMQPAnnotatedMessage(t.Context(), &azservicebus.AMQPAnnotatedMessage{Body: body}, nil))
	}
	var got []string
	for _, d := range b.receive(b.q, 5) {
		got = append(got, string(d.Body))
	}
	if diff := cmp.Diff([]string{"text", "bytes", "in parts", "data", ""}, got); diff != "" {
		t.Errorf("the bodies differ (-want +got):\n%s", diff)
	}
}

func TestOpenRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]azbus.Options{
		"nothing":                       {},
		"a namespace without a key":     {Namespace: "ns"},
		"a connection string of no use": {ConnectionString: "Endpoint=sb://h;SharedAccessKey=s3cret"},
		"a connection string cut off":   {ConnectionString: "Endpoint=sb://h;SharedAccessKeyName=n;s3cret"},
		"an emulator without a scheme":  {ConnectionString: "Endpoint=h;SharedAccessKeyName=n;SharedAccessKey=s3cret;UseDevelopmentEmulator=true"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := azbus.Open(o)
			if !fault.Is(err, fault.Invalid) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("Open = error %v, want fault invalid without the key", err)
			}
		})
	}
}

// TestClosing ends calls that wait, and every goroutine: the bubble would not end
// else.
func TestClosing(t *testing.T) {
	t.Parallel()
	onBench(t, busstand.Options{}, azbus.Options{}, func(b bench) {
		waiting := make(chan error, 1)
		go func() {
			_, err := b.q.Receive(b.Context(), port.ReceiveOptions{Max: 1, Lock: time.Minute, Wait: time.Hour})
			waiting <- err
		}()
		synctest.Wait()
		start := time.Now()
		b.ok("Close", b.bus.Close())
		b.fails("the waiting Receive", <-waiting, fault.Unavailable)
		for name, call := range operations() {
			b.fails(name+" after Close", call(b, port.Delivery{Receipt: strings.Repeat("0", 32) + ".1"}), fault.Unavailable)
		}
		b.ok("Close again", b.bus.Close())
		if took := time.Since(start); took > 10*time.Second {
			b.Errorf("closing took %v", took)
		}
	})
}
