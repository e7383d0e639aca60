package azbus_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"jobq/core/fault"
	"jobq/core/port"
	"jobq/internal/busstand"
	"jobq/store/azbus"
)

// errAway is what a network says that is away.
var errAway = &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("network is unreachable")}

// runaway is after how many tries what is away comes back: a loop without a pause
// lets no virtual time pass.
const runaway = 10_000

// wire is a way to a server that can be away, and counts who dials.
type wire struct {
	away  atomic.Bool
	dials atomic.Int64
}

func (w *wire) dialer(s *busstand.Server) func(context.Context) (net.Conn, error) {
	return func(context.Context) (net.Conn, error) {
		if n := w.dials.Add(1); n < runaway && w.away.Load() {
			return nil, errAway
		}
		return s.Pipe(), nil
	}
}

// tokens is a credential whose source of tokens can be out of reach.
type tokens struct {
	away  atomic.Bool
	asked atomic.Int64
}

func (c *tokens) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	if n := c.asked.Add(1); n < runaway && c.away.Load() {
		return azcore.AccessToken{}, errAway
	}
	return azcore.AccessToken{Token: "token", ExpiresOn: time.Now().Add(time.Hour)}, nil
}

// TestAConnectionLostWhileNobodyCalls lets tokens run out for hours. The client
// wants to renew them and would dial for that without a pause.
func TestAConnectionLostWhileNobodyCalls(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		credential azcore.TokenCredential
		away       bool
	}{
		"to a namespace opened by a key":        {nil, true},
		"to a namespace opened by a credential": {&tokens{}, true},
		"in a network that is there":            {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var way wire
			synctest.Test(t, func(t *testing.T) {
				s := busstand.New(busstand.Options{})
				t.Cleanup(s.Close)
				s.CreateQueue("cpu", busstand.QueueConfig{})
				bus := openVirtual(t, s, azbus.Options{Credential: tc.credential, Namespace: "ns", Dial: way.dialer(s)})
				b := bench{Server: s, T: t, bus: bus, q: bus.Queue("cpu")}
				b.send("a")
				way.away.Store(tc.away)
				b.DropConnections()
				time.Sleep(3 * time.Hour)
				if n := way.dials.Load(); n != 1 {
					t.Errorf("a process that makes no call has dialled %d times, want only for its first call", n)
				}
				way.away.Store(false)
				b.send("b")
				b.receive(b.q, 2)
				if n := way.dials.Load(); n != 2 {
					t.Errorf("the calls after that have dialled %d times, want once", n-1)
				}
			})
		})
	}
}

// TestTokensThatCannotBeRenewed lets the source of tokens be away while the
// connection stands: it is asked now and then, and what is renewed goes on.
func TestTokensThatCannotBeRenewed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := busstand.New(busstand.Options{})
		t.Cleanup(s.Close)
		s.CreateQueue("cpu", busstand.QueueConfig{})
		var source tokens
		bus := openVirtual(t, s, azbus.Options{Credential: &source, Namespace: "ns"})
		b := bench{Server: s, T: t, bus: bus, q: bus.Queue("cpu")}
		b.send("a")
		source.away.Store(true)
		before := source.asked.Load()
		time.Sleep(50*time.Minute + time.Second)
		first := source.asked.Load() - before
		time.Sleep(time.Minute)
		// One renewal is that of the link, one that of its management node.
		if n := source.asked.Load() - before - first; first == 0 || n == 0 || n > 2*61 {
			t.Errorf("the source was asked %d times, and %d times in the next minute; want once a second for each renewal", first, n)
		}
		source.away.Store(false)
		time.Sleep(2 * time.Second)
		before = source.asked.Load()
		time.Sleep(time.Minute)
		if n := source.asked.Load() - before; n != 0 {
			t.Errorf("the source was asked %d times within a minute of a renewal", n)
		}
		b.send("b")
	})
}

// TestACallWithoutATokenSaysSoSoon is about the one who waits for the answer.
func TestACallWithoutATokenSaysSoSoon(t *testing.T) {
	t.Parallel()
	away := &tokens{}
	away.away.Store(true)
	for name, tc := range map[string]struct {
		credential azcore.TokenCredential
		want       fault.Code
		within     time.Duration
	}{
		"when its source is away":   {away, fault.Unavailable, time.Second},
		"when nobody has signed in": {noToken{}, fault.Denied, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := busstand.New(busstand.Options{})
				t.Cleanup(s.Close)
				s.CreateQueue("cpu", busstand.QueueConfig{})
				bus := openVirtual(t, s, azbus.Options{Credential: tc.credential, Namespace: "ns"})
				b := bench{Server: s, T: t, bus: bus, q: bus.Queue("cpu")}
				start := time.Now()
				b.fails("Send", first(b.q.Send(t.Context(), []port.Message{{ID: "a"}})), tc.want)
				if took := time.Since(start); took > tc.within {
					t.Errorf("Send failed after %v, want %v at most", took, tc.within)
				}
			})
		})
	}
}

// TestANamespaceIsSpokenToByTLS stops where the certificate is not one of the
// namespace.
func TestANamespaceIsSpokenToByTLS(t *testing.T) {
	t.Parallel()
	names := make(chan string, 1)
	s := httptest.NewUnstartedServer(nil)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = &tls.Config{GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		names <- hello.ServerName
		return nil, nil
	}}
	s.StartTLS()
	t.Cleanup(s.Close)
	_, number, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	bus, err := azbus.Open(azbus.Options{ConnectionString: "Endpoint=sb://localhost:" + number + ";SharedAccessKeyName=name;SharedAccessKey=a2V5"})
	if err != nil {
		t.Fatalf("Open = error %v", err)
	}
	t.Cleanup(func() { _ = bus.Close() })
	_, err = bus.Queue("cpu").Peek(t.Context(), 1)
	if !fault.Is(err, fault.Unavailable) {
		t.Errorf("Peek behind an unknown certificate = error %v, want fault unavailable", err)
	}
	if name := <-names; name != "localhost" {
		t.Errorf("the client asked for the certificate of %q, want localhost", name)
	}
}
