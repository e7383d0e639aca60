package local_test

import (
	"testing"
	"time"

	"jobq/core/port"
	"jobq/store/local"
	"jobq/store/storetest"
)

func TestContract(t *testing.T) {
	t.Parallel()
	storetest.Run(t, storetest.Harness{New: newData, Tick: 60 * time.Millisecond})
}

// newData is a home with a store for every Open, as so many processes.
func newData(tb testing.TB) storetest.Data {
	home := tb.TempDir()
	stores := map[*port.Store]*local.Store{}
	return storetest.Data{
		Open: func() *port.Store {
			s := open(tb, home)
			store := s.Port()
			stores[store] = s
			return store
		},
		Kill:        func(store *port.Store) { stores[store].Kill() },
		KnowsOwners: true,
	}
}

func open(tb testing.TB, home string) *local.Store {
	tb.Helper()
	s, err := local.Open(tb.Context(), local.Options{Home: home, Prefix: "main", Kind: "test"})
	if err != nil {
		tb.Fatalf("Open(%s) = error %v", home, err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s
}
