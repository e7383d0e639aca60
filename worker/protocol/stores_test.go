package protocol_test

import (
	"flag"
	"net/http"
	"os"
	"testing"
	"time"

	"jobq/core/port"
	"jobq/internal/azurite"
	"jobq/internal/busstand"
	"jobq/store/azbus"
	"jobq/store/azstorage"
	"jobq/store/memory"
)

var emulator azurite.Shared

// TestMain lets more tests wait at a time than there are processors: on the
// emulators time is real.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	code := m.Run()
	emulator.Close()
	os.Exit(code)
}

// place is a kind of store that the protocol must hold on.
type place struct {
	name string
	// with runs f with a fresh store, whose queue locks for lock where it decides.
	with func(t *testing.T, lock time.Duration, f func(t *testing.T, r *rig))
}

// places are memory on virtual time, which shows that the cases themselves are
// right, and the services on real time: all of Azure Storage, and Azure Storage
// with its queues on Service Bus. Drivers are bare, without the repeats that
// package wrap would add.
func places() []place {
	return []place{
		{"memory", func(t *testing.T, _ time.Duration, f func(*testing.T, *rig)) {
			bubble(t, memory.Options{NoFinisher: true}, func(t *testing.T, r *rig) {
				r.network = newPortNetwork(r)
				f(t, r)
			})
		}},
		{"Storage", func(t *testing.T, _ time.Duration, f func(*testing.T, *rig)) {
			f(t, onStorage(t))
		}},
		{"Storage and Service Bus", func(t *testing.T, lock time.Duration, f func(*testing.T, *rig)) {
			f(t, onStorageAndBus(t, lock))
		}},
	}
}

// patience is how long a message may take on a busy machine.
const patience = time.Minute

// onStorage is a rig on a fresh account of the emulator.
func onStorage(t *testing.T) *rig {
	t.Helper()
	r, _ := storageRig(t)
	r.setUp()
	return r
}

// onStorageAndBus has the queues on a namespace of its own.
func onStorageAndBus(t *testing.T, lock time.Duration) *rig {
	t.Helper()
	r, wire := storageRig(t)
	server := busstand.New(busstand.Options{})
	t.Cleanup(server.Close)
	connection, err := server.Start()
	r.must(err)
	open := func() *azbus.Bus {
		bus, err := azbus.Open(azbus.Options{ConnectionString: connection, Lock: lock})
		r.must(err)
		t.Cleanup(func() {
			if err := bus.Close(); err != nil {
				t.Errorf("Close = error %v", err)
			}
		})
		return bus
	}
	r.port.Queues, r.outside.Queues = open(), open()
	r.network = &busNetwork{wire, server}
	r.setUp()
	return r
}

func storageRig(t *testing.T) (*rig, *wire) {
	t.Helper()
	r := &rig{t: t, patience: patience}
	account, err := azstorage.ParseAccount(emulator.Account(t), os.Getenv)
	r.must(err)
	w := &wire{inner: azstorage.NewTransport(16).Transport}
	r.network = w
	open := func(o azstorage.Options) *port.Store {
		o.Account, o.Prefix = account, "Proj"
		s, err := azstorage.Open(t.Context(), o)
		r.must(err)
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Errorf("Close = error %v", err)
			}
		})
		return s
	}
	r.outside = open(azstorage.Options{Create: true})
	r.port = open(azstorage.Options{Transport: &http.Client{Transport: w}})
	return r, w
}
