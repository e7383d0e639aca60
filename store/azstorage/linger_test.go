package azstorage_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"jobq/core/fault"
	"jobq/core/port"
	"jobq/store/azstorage"
)

const oneMessage = `<?xml version="1.0" encoding="utf-8"?><QueueMessagesList><QueueMessage>` +
	`<MessageId>m-1</MessageId><InsertionTime>Mon, 02 Mar 2026 10:00:00 GMT</InsertionTime><ExpirationTime>Fri, 31 Dec 9999 23:59:59 GMT</ExpirationTime>` +
	`<PopReceipt>r-1</PopReceipt><TimeNextVisible>Mon, 02 Mar 2026 10:10:00 GMT</TimeNextVisible><DequeueCount>1</DequeueCount><MessageText>hello</MessageText>` +
	`</QueueMessage></QueueMessagesList>`

// TestAReceiveThatIsStoppedKeepsWhatItTook: the service has hidden the message by the
// time at which a worker is told to stop.
func TestAReceiveThatIsStoppedKeepsWhatItTook(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		takes time.Duration
		want  string
		code  fault.Code
	}{
		"an answer on its way": {time.Second, "hello", 0},
		"none":                 {time.Hour, "", fault.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				s, err := azstorage.Open(ctx, azstorage.Options{
					Account: parse(t, scriptedAccount), Prefix: "Demo",
					Transport: transport(func(r *http.Request) (*http.Response, error) {
						cancel()
						select {
						case <-r.Context().Done():
							return nil, r.Context().Err()
						case <-time.After(tc.takes):
							return answer{status: http.StatusOK, body: oneMessage, header: map[string]string{"Content-Type": "application/xml"}}.to(r)
						}
					}).client(),
				})
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				ds, err := s.Queues.Queue("cpu").Receive(ctx, port.ReceiveOptions{Max: 32, Lock: 10 * time.Minute})
				got := ""
				for _, d := range ds {
					got += string(d.Body)
				}
				if got != tc.want || tc.code != 0 && !fault.Is(err, tc.code) || tc.code == 0 && err != nil {
					t.Errorf("Receive = %q, %v, want %q", got, err, tc.want)
				}
				if took := time.Since(began); took > 3*time.Second {
					t.Errorf("Receive returned %v after it was stopped", took)
				}
			})
		})
	}
}
