package azbus_test

import (
	"context"
	"errors"
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

// lose breaks the connection, and lets a call find that out.
func (b bench) lose() {
	b.Helper()
	b.DropConnections()
	_, err := b.q.Peek(b.Context(), 1)
	b.fails("Peek on the broken connection", err, fault.Unavailable)
}

// TestACallWhoseConnectionIsClosedByAnother has to be made again, whatever the
// client calls it.
func TestACallWhoseConnectionIsClosedByAnother(t *testing.T) {
	t.Parallel()
	onBench(t, busstand.Options{}, azbus.Options{}, func(b bench) {
		b.ok("Ensure", b.bus.Ensure(b.Context(), "gpu"))
		b.send("a")
		_, err := b.q.Peek(b.Context(), 1)
		b.ok("Peek", err)
		gpu := b.bus.Queue("gpu")
		err = azbus.SendLate(b.Context(), gpu, port.Message{ID: "a"}, func() {
			b.lose()
			synctest.Wait()
		})
		b.fails("Send on a closed client", err, fault.Unavailable)
		b.ok("Send again", first(gpu.Send(b.Context(), []port.Message{{ID: "a"}})))
	})
}

// heldToken is a credential that lets go of its answers by hand, once it is armed.
type heldToken struct {
	asked, answer chan error
}

func (h *heldToken) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	if h.asked != nil {
		h.asked <- nil
		if err := <-h.answer; err != nil {
			return azcore.AccessToken{}, err
		}
	}
	return azcore.AccessToken{Token: "token", ExpiresOn: time.Now().Add(time.Hour)}, nil
}

// TestADenialOfADiscardedConnection is not taken at its word: it may be about a
// token of one connection and a link of another.
func TestADenialOfADiscardedConnection(t *testing.T) {
	t.Parallel()
	denied := notSignedIn{errors.New("nobody is signed in")}
	for name, tc := range map[string]struct {
		meanwhile func(b bench)
		want      fault.Code
	}{
		"is to be tried again":              {bench.lose, fault.Unavailable},
		"is final on a connection in order": {func(bench) {}, fault.Denied},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			credential := &heldToken{}
			synctest.Test(t, func(t *testing.T) {
				s := busstand.New(busstand.Options{})
				t.Cleanup(s.Close)
				s.CreateQueue("cpu", busstand.QueueConfig{})
				s.CreateQueue("gpu", busstand.QueueConfig{})
				bus := openVirtual(t, s, azbus.Options{Credential: credential, Namespace: "ns"})
				b := bench{Server: s, T: t, bus: bus, q: bus.Queue("cpu")}
				_, err := b.q.Peek(b.Context(), 1)
				b.ok("Peek", err)
				credential.asked, credential.answer = make(chan error), make(chan error)
				sent := make(chan error, 1)
				go func() { sent <- first(bus.Queue("gpu").Send(t.Context(), []port.Message{{ID: "a"}})) }()
				<-credential.asked
				tc.meanwhile(b)
				credential.answer <- denied
				b.fails("Send", <-sent, tc.want)
			})
		})
	}
}
