package storetest

import (
	"cmp"
	"testing"
	"testing/synctest"
	"time"

	"jobq/core/port"
)

// Harness tells the suite how to make and handle stores of one driver.
type Harness struct {
	// New makes an empty set of data that is gone when tb ends.
	New func(tb testing.TB) Data
	// Virtual says that the driver can live in a testing/synctest bubble.
	Virtual bool
	// Tick is a time that the driver tells apart from twice as much, whatever
	// else the machine does.
	Tick time.Duration
	// Crowd is how many messages the largest case sends; 0 means 2500. Emulators
	// may need far longer for each call when they hold many.
	Crowd int
}

// Data is one set of data and the processes that use it.
type Data struct {
	// Open returns the data as one more process sees it.
	Open func() *port.Store
	// Kill ends the process of a store that Open returned, as a crash would. Nil
	// where that cannot be done.
	Kill func(*port.Store)
	// KnowsOwners says that the store tells the living from the dead owners of
	// records, locks and leases. Needs Kill.
	KnowsOwners bool
}

// Run holds the driver of h to the contract.
func Run(t *testing.T, h Harness) {
	t.Helper()
	for _, g := range []struct {
		name  string
		cases []testCase
	}{
		{"states", stateCases},
		{"records", recordCases},
		{"index", indexCases},
		{"due rows", dueCases},
		{"queue", queueCases},
		{"deliveries", deliveryCases},
		{"queue abilities", abilityCases},
		{"blobs", blobCases},
		{"logs", logCases},
		{"leases", leaseCases},
		{"presence", presenceCases},
		{"finisher", finisherCases},
		{"races", raceCases},
		{"names", nameCases},
	} {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			for _, c := range g.cases {
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					h.run(t, c.test)
				})
			}
		})
	}
	t.Run("random operations equal the model", func(t *testing.T) {
		t.Parallel()
		if h.Virtual {
			synctest.Test(t, func(t *testing.T) { differential(t, h) })
			return
		}
		differential(t, h)
	})
}

type testCase struct {
	name string
	test func(t *testing.T, e env)
}

// env is what one case works with: fresh data, and the first process on it.
type env struct {
	Data
	store *port.Store
	tick  time.Duration
	crowd int
}

func (h Harness) run(t *testing.T, test func(*testing.T, env)) {
	t.Helper()
	body := func(t *testing.T) {
		data := h.New(t)
		test(t, env{Data: data, store: data.Open(), tick: h.Tick, crowd: cmp.Or(h.Crowd, 2500)})
	}
	if h.Virtual {
		synctest.Test(t, body)
		return
	}
	body(t)
}

// lock returns how long a Receive that asks for n ticks really locks.
func (e env) lock(q port.Queue, n int) time.Duration {
	if p := q.Props(); p.FixedLock {
		return p.MaxLock
	}
	return time.Duration(n) * e.tick
}

// lapse waits for the end of a lock that a waiting Receive would not live to see.
func (e env) lapse(q port.Queue) {
	if p := q.Props(); p.FixedLock {
		time.Sleep(p.MaxLock)
	}
}

// pass lets n ticks go by, in virtual time where the driver lives on it.
func (e env) pass(n int) { time.Sleep(time.Duration(n) * e.tick) }
