package azbus_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"jobq/core/fault"
	"jobq/core/port"
	"jobq/internal/busstand"
	"jobq/store/azbus"
)

// TestAQueueThatIsDeleted under warm links is not found by every call, and is of
// use again when it is back.
func TestAQueueThatIsDeleted(t *testing.T) {
	t.Parallel()
	for name, call := range operations() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBench(t, busstand.Options{}, azbus.Options{}, func(b bench) {
				b.send("a")
				d := b.receive(b.q, 1)[0]
				b.ok("Extend", b.q.Extend(b.Context(), &d, time.Minute))
				b.DeleteQueue("cpu")
				synctest.Wait()
				err := call(b, d)
				if fault.Is(err, fault.Unavailable) {
					// The client tells of the broken link first.
					err = call(b, d)
				}
				b.fails(name, err, fault.NotFound)
				b.ok("Ensure", b.bus.Ensure(b.Context(), "cpu"))
				b.send("b")
				if got := b.receive(b.q, 1)[0]; got.ID != "b" {
					b.Errorf("the new queue gave %s, want b", got.ID)
				}
			})
		})
	}
}

// TestRefusalsOfTheManagementAPI is about what is done over HTTP.
func TestRefusalsOfTheManagementAPI(t *testing.T) {
	t.Parallel()
	for condition, want := range map[string]fault.Code{
		busstand.ServerBusy: fault.Throttled,
		busstand.Timeout:    fault.Unavailable,
	} {
		t.Run(condition, func(t *testing.T) {
			t.Parallel()
			onBench(t, busstand.Options{}, azbus.Options{}, func(b bench) {
				b.Inject(busstand.Rule{Op: busstand.OpAdmin, Condition: condition})
				_, err := b.q.Count(b.Context())
				b.fails("Count", err, want)
				b.fails("Ensure", b.bus.Ensure(b.Context(), "gpu"), want)
				if n := b.Calls(busstand.OpAdmin); n != 3 {
					b.Errorf("two refused calls and one before them made %d requests", n)
				}
			})
		})
	}
}

// noToken is a credential of somebody who is not signed in.
type noToken struct{}

func (noToken) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{}, notSignedIn{errors.New("nobody is signed in")}
}

// notSignedIn marks an error as azidentity does.
type notSignedIn struct{ error }

func (notSignedIn) NonRetriable() {}

func TestACredentialWithoutATokenIsDenied(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := busstand.New(busstand.Options{})
		t.Cleanup(s.Close)
		s.CreateQueue("cpu", busstand.QueueConfig{})
		bus := openVirtual(t, s, azbus.Options{Credential: noToken{}, Namespace: "ns"})
		b := bench{Server: s, T: t, bus: bus, q: bus.Queue("cpu")}
		for name, call := range operations() {
			b.fails(name, call(b, port.Delivery{Receipt: strings.Repeat("0", 32) + ".1"}), fault.Denied)
		}
		b.fails("Ensure", bus.Ensure(t.Context(), "cpu"), fault.Denied)
		_, err := b.q.Count(t.Context())
		b.fails("Count", err, fault.Denied)
		if !strings.Contains(err.Error(), "ns.servicebus.windows.net") {
			t.Errorf("Count = %v, want it to name the namespace", err)
		}
	})
}

// TestALockOfAnotherLength is about a queue that somebody made by hand: whoever
// renews must know how often.
func TestALockOfAnotherLength(t *testing.T) {
	t.Parallel()
	onBench(t, busstand.Options{}, azbus.Options{}, func(b bench) {
		b.CreateQueue("by-hand", busstand.QueueConfig{Lock: 30 * time.Second})
		b.q = b.bus.Queue("by-hand")
		if got := b.q.Props().MaxLock; got != 5*time.Minute {
			b.Errorf("MaxLock = %v before a message, want that of the options", got)
		}
		b.send("a")
		d := b.receive(b.q, 1)[0]
		if left := time.Until(d.Until); left <= 29*time.Second || left > 30*time.Second {
			b.Errorf("the lock ends in %v, want 30 s", left)
		}
		if got := b.bus.Queue("By-Hand").Props().MaxLock; got != 30*time.Second {
			b.Errorf("MaxLock = %v after a message, want 30 s", got)
		}
		if got := b.bus.Queue("cpu").Props().MaxLock; got != 5*time.Minute {
			b.Errorf("MaxLock of another queue = %v, want 5 min", got)
		}
	})
}

func TestALongReasonIsCutBetweenCharacters(t *testing.T) {
	t.Parallel()
	onBench(t, busstand.Options{}, azbus.Options{}, func(b bench) {
		b.send("a")
		b.ok("Poison", b.q.Poison(b.Context(), b.receive(b.q, 1)[0], "x"+strings.Repeat("é", 5000)+"\xff"))
		got := b.receive(b.q.PoisonQueue(), 1)[0].Reason
		if len(got) > 1024 || len(got) < 1000 || !utf8.ValidString(got) || !strings.HasPrefix(got, "xéé") {
			b.Errorf("the reason has %d bytes and begins with %.10q", len(got), got)
		}
	})
}
