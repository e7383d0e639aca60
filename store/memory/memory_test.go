package memory_test

import (
	"testing"
	"time"

	"jobq/core/port"
	"jobq/store/memory"
	"jobq/store/storetest"
)

func TestContract(t *testing.T) {
	t.Parallel()
	serviceBus := port.QueueProps{
		MaxMessage: 256 << 10, MaxBatch: 32, MaxDelay: 7 * 24 * time.Hour, MaxLock: 5 * time.Minute,
		Deduplicates: true, DedupWindow: 10 * time.Minute, DeliveryLimit: 10, CanWait: true,
	}
	storageQueue := port.QueueProps{
		MaxMessage: 48 << 10, MaxBatch: 32, MaxDelay: 7 * 24 * time.Hour, MaxLock: 7 * 24 * time.Hour,
		NativeRelease: true, CountReadable: true,
	}
	for name, o := range map[string]memory.Options{
		"able":             {},
		"process identity": {ProcessIdentity: true},
		"service bus":      {Queue: &serviceBus, NoFinisher: true},
		"storage queue":    {Queue: &storageQueue, NoFinisher: true, Props: port.Props{MaxState: 1 << 20, MaxBlob: 4 << 20}},
		"limit and native": {Queue: &port.QueueProps{NativeRelease: true, DeliveryLimit: 3, CanWait: true, CountReadable: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, storetest.Harness{
				New:     func(testing.TB) storetest.Data { return data(o) },
				Virtual: true,
				Tick:    time.Second,
			})
		})
	}
}

// data is one store with a process for every Open.
func data(o memory.Options) storetest.Data {
	s := memory.New(o)
	processes := map[*port.Store]*memory.Process{}
	return storetest.Data{
		Open: func() *port.Store {
			p := s.Process("test")
			store := p.Port()
			processes[store] = p
			return store
		},
		Kill:        func(store *port.Store) { processes[store].Kill() },
		KnowsOwners: o.ProcessIdentity,
	}
}
