package azbus_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"jobq/core/port"
	"jobq/internal/busstand"
	"jobq/store/azbus"
	"jobq/store/memory"
	"jobq/store/storetest"
)

// TestContract holds the driver to core/port. The stand-in serves it over pipes
// instead of TCP, so that all of it lives on virtual time: locks of minutes end
// and empty receives cost nothing. What is no queue is kept by the memory driver.
func TestContract(t *testing.T) {
	t.Parallel()
	storetest.Run(t, storetest.Harness{New: newData, Virtual: true, Tick: time.Second})
}

func newData(tb testing.TB) storetest.Data {
	s := busstand.New(busstand.Options{})
	tb.Cleanup(s.Close)
	rest := memory.New(memory.Options{NoFinisher: true})
	return storetest.Data{Open: func() *port.Store {
		bus := openVirtual(tb, s, azbus.Options{DeliveryLimit: 10})
		store := *rest.Process("test").Port()
		store.Queues = bus
		return &store
	}}
}

// openVirtual opens a namespace of s without a network.
func openVirtual(tb testing.TB, s *busstand.Server, o azbus.Options) *azbus.Bus {
	tb.Helper()
	if o.Credential == nil {
		o.ConnectionString = busstand.ConnectionString("stand-in.invalid")
	}
	if o.Dial == nil {
		o.Dial = func(context.Context) (net.Conn, error) { return s.Pipe(), nil }
	}
	o.Transport = direct{s}
	bus, err := azbus.Open(o)
	if err != nil {
		tb.Fatalf("Open = error %v", err)
	}
	tb.Cleanup(func() {
		if err := bus.Close(); err != nil {
			tb.Errorf("Close = error %v", err)
		}
	})
	return bus
}

// direct hands requests to a handler in the same process.
type direct struct{ http.Handler }

func (d direct) Do(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	if r.Body == nil {
		r.Body = http.NoBody
	}
	d.ServeHTTP(w, r)
	return w.Result(), nil
}
