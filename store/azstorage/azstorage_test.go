package azstorage_test

import (
	"flag"
	"os"
	"sync"
	"testing"
	"time"

	"jobq/core/port"
	"jobq/internal/azurite"
	"jobq/store/azstorage"
	"jobq/store/storetest"
)

var emulator azurite.Shared

// TestMain lets more tests wait at a time than there are processors: they wait
// for whole seconds of the service, and for its one thread.
func TestMain(m *testing.M) {
	for name, value := range map[string]string{"test.parallel": "12", "rapid.checks": "12"} {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	code := m.Run()
	emulator.Close()
	os.Exit(code)
}

// account is one account of the emulator and the processes on it.
type account struct {
	tb      testing.TB
	account azstorage.Account
}

func newAccount(tb testing.TB) account {
	tb.Helper()
	a, err := azstorage.ParseAccount(emulator.Account(tb), os.Getenv)
	if err != nil {
		tb.Fatal(err)
	}
	return account{tb, a}
}

// options is what one process opens the account with.
func (a account) options() azstorage.Options {
	return azstorage.Options{Account: a.account, Prefix: "Demo", Create: true}
}

func (a account) open(o azstorage.Options) *port.Store {
	a.tb.Helper()
	s, err := azstorage.Open(a.tb.Context(), o)
	if err != nil {
		a.tb.Fatal(err)
	}
	return s
}

func TestConformance(t *testing.T) {
	t.Parallel()
	transport := azstorage.NewTransport(32)
	storetest.Run(t, storetest.Harness{
		New: func(tb testing.TB) storetest.Data {
			a := newAccount(tb)
			var mu sync.Mutex
			var opened []*port.Store
			tb.Cleanup(func() { emptyQueues(tb, opened) })
			return storetest.Data{Open: func() *port.Store {
				o := a.options()
				o.Transport = transport
				// The first process has made everything.
				mu.Lock()
				defer mu.Unlock()
				o.Create = len(opened) == 0
				s := a.open(o)
				opened = append(opened, s)
				return s
			}}
		},
		Tick:  time.Second,
		Crowd: 150,
	})
}

// emptyQueues removes what a test left: every message in the emulator makes
// each queue call of all tests slower.
func emptyQueues(tb testing.TB, stores []*port.Store) {
	ctx, cancel := cleanupContext(tb)
	defer cancel()
	if len(stores) == 0 {
		return
	}
	for _, name := range []string{"cpu", "gpu", "cpu-failed"} {
		_, _ = stores[0].Queues.Queue(name).Clear(ctx)
	}
}
