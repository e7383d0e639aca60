package azbus_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"jobq/core/port"
	"jobq/internal/busstand"
	"jobq/store/azbus"
)

// batchSize is that of the coordinator.
const batchSize = 32

func startBench(b *testing.B) string {
	b.Helper()
	s := busstand.New(busstand.Options{})
	b.Cleanup(s.Close)
	s.CreateQueue("cpu", busstand.QueueConfig{Lock: 5 * time.Minute, DedupWindow: 7 * 24 * time.Hour, MaxDeliveries: 1000})
	text, err := s.Start()
	if err != nil {
		b.Fatalf("Start = error %v", err)
	}
	return text
}

// BenchmarkDriver sends 32 messages, receives and acknowledges them.
func BenchmarkDriver(b *testing.B) {
	bus, err := azbus.Open(azbus.Options{ConnectionString: startBench(b)})
	if err != nil {
		b.Fatalf("Open = error %v", err)
	}
	b.Cleanup(func() { _ = bus.Close() })
	q := bus.Queue("cpu")
	n := 0
	for b.Loop() {
		messages := make([]port.Message, batchSize)
		for i := range messages {
			n++
			messages[i] = port.Message{ID: fmt.Sprint(n), Body: make([]byte, 1024)}
		}
		if errs := q.Send(b.Context(), messages); errs != nil {
			b.Fatalf("Send = error %v", errs)
		}
		for got := 0; got < batchSize; {
			ds, err := q.Receive(b.Context(), port.ReceiveOptions{Max: batchSize - got, Lock: time.Minute})
			if err != nil {
				b.Fatalf("Receive = error %v", err)
			}
			if errs := q.Acknowledge(b.Context(), ds); errs != nil {
				b.Fatalf("Acknowledge = error %v", errs)
			}
			got += len(ds)
		}
	}
	b.ReportMetric(float64(b.N*batchSize)/b.Elapsed().Seconds(), "messages/s")
}

// BenchmarkBare makes the same calls with the client of Azure and nothing else;
// it settles on the link that received.
func BenchmarkBare(b *testing.B) {
	client, err := azservicebus.NewClientFromConnectionString(startBench(b), nil)
	if err != nil {
		b.Fatalf("NewClientFromConnectionString = error %v", err)
	}
	b.Cleanup(func() { _ = client.Close(context.WithoutCancel(b.Context())) })
	sender, err := client.NewSender("cpu", nil)
	if err != nil {
		b.Fatalf("NewSender = error %v", err)
	}
	receiver, err := client.NewReceiverForQueue("cpu", nil)
	if err != nil {
		b.Fatalf("NewReceiverForQueue = error %v", err)
	}
	n := 0
	for b.Loop() {
		batch, err := sender.NewMessageBatch(b.Context(), nil)
		if err != nil {
			b.Fatalf("NewMessageBatch = error %v", err)
		}
		for range batchSize {
			n++
			if err := batch.AddMessage(&azservicebus.Message{MessageID: new(fmt.Sprint(n)), Body: make([]byte, 1024)}, nil); err != nil {
				b.Fatalf("AddMessage = error %v", err)
			}
		}
		if err := sender.SendMessageBatch(b.Context(), batch, nil); err != nil {
			b.Fatalf("SendMessageBatch = error %v", err)
		}
		for got := 0; got < batchSize; {
			ms, err := receiver.ReceiveMessages(b.Context(), batchSize-got, nil)
			if err != nil {
				b.Fatalf("ReceiveMessages = error %v", err)
			}
			var wg sync.WaitGroup
			for _, m := range ms {
				wg.Go(func() {
					if err := receiver.CompleteMessage(b.Context(), m, nil); err != nil {
						b.Errorf("CompleteMessage = error %v", err)
					}
				})
			}
			wg.Wait()
			got += len(ms)
		}
	}
	b.ReportMetric(float64(b.N*batchSize)/b.Elapsed().Seconds(), "messages/s")
}
