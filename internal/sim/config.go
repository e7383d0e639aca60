package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"jobq/core/dag"
	"jobq/core/port"
)

// Personality is how the queues of a world behave.
type Personality uint8

// The two services that jobq runs on, as they are documented.
const (
	// Storage is Azure Queue Storage: no deduplication, native release, no waiting
	// receive, a count that can be read.
	Storage Personality = iota
	// ServiceBus drops ids that it knows for a day, ends a message after ten
	// deliveries and has no native release.
	ServiceBus
)

// Personalities lists both.
func Personalities() []Personality { return []Personality{Storage, ServiceBus} }

func (p Personality) String() string {
	if p == ServiceBus {
		return "servicebus"
	}
	return "storage"
}

// props is what the queues of p declare. Waiting is done by the gate.
func (p Personality) props() port.QueueProps {
	if p == ServiceBus {
		return port.QueueProps{
			MaxMessage: 256 << 10, MaxDelay: 24 * time.Hour, MaxLock: 5 * time.Minute,
			Deduplicates: true, DedupWindow: 24 * time.Hour, DeliveryLimit: 10, CountReadable: true,
		}
	}
	return port.QueueProps{
		MaxMessage: 64 << 10, MaxBatch: 32, MaxDelay: 7 * 24 * time.Hour, MaxLock: 7 * 24 * time.Hour,
		NativeRelease: true, CountReadable: true,
	}
}

// Network is how long calls travel.
type Network uint8

// Instant lets only the seed decide who is next; the others let time decide.
const (
	Instant Network = iota
	Even
	Ragged
)

// Config is everything that a history follows from, beside the code. It is what
// shrinking makes smaller.
type Config struct {
	Seed        uint64
	Personality Personality
	Network     Network
	Faults      FaultSet
	// Storm is how long faults last.
	Storm        time.Duration
	Coordinators int
	// Hosted says that function hosts call the coordinators.
	Hosted           bool
	Workers, Foreign int
	// Slots is how many commands a worker runs at a time.
	Slots    int
	Sweeps   bool
	Commands int
	// NoWorkers takes all workers away when the storm ends.
	NoWorkers bool
	// Burst gives all commands to one workflow within seconds.
	Burst     bool
	Workloads []Workload
	// Record keeps the history as text.
	Record bool
	// CrashLimit is that of the workers, 0 for the default.
	CrashLimit int

	// Patience is how much time goes on after the storm before what has not ended
	// counts as stuck; 3 h.
	Patience time.Duration
	// What says which history of an exhaustive campaign this is.
	What string

	// script takes the place of the weather. empty says that the call is a receive
	// that will find nothing.
	script func(p *process, o op, key string, empty bool) Fault
	choose func(ready []*actor) int
	orders []order
	// steady draws no times: what comes by itself comes at once or after a second.
	steady bool
	// again delivers the completions of this task a second time.
	again string
	// incidents are put on the calendar once everybody is there.
	incidents []func(w *World)
	// idle is how long coordinators rest between empty receives; 0 is their default.
	idle time.Duration
	// sweepEvery is the rhythm of sweeps; 0 is the default of coordinators.
	sweepEvery time.Duration
	// evictions is the chance of a machine to be taken away within an hour.
	evictions float64
}

// Workload is one workflow that a caller submits.
type Workload struct {
	ID         string
	Definition *dag.Definition
	// Other is what half of the later submissions under this id bring, nil for the
	// same.
	Other *dag.Definition
	// Outcome says how an attempt ends; nil draws it from the seed.
	Outcome func(task string, attempt uint32) Ending
}

// Ending is how the command of an attempt ends.
type Ending struct {
	Code   int
	Output string
	Lasts  time.Duration
	// Kills says that the command ends its worker instead of itself.
	Kills bool
}

// Draw makes the configuration that seed stands for: a random subset of the
// faults, of the roles and of the workloads.
func Draw(seed uint64, p Personality, allowed FaultSet) Config {
	r := rand.New(rand.NewPCG(seed, 0xC0FFEE^uint64(p)))
	c := Config{
		Seed: seed, Personality: p, Network: Network(r.IntN(3)),
		Storm:        time.Duration(30+r.IntN(600)) * time.Second,
		Coordinators: 1 + min(r.IntN(3), r.IntN(4)),
		Workers:      1 + r.IntN(3), Slots: 1 + r.IntN(2),
		Sweeps: r.IntN(2) == 0, Commands: r.IntN(6), NoWorkers: r.IntN(12) == 0,
	}
	switch r.IntN(20) {
	case 0:
		c.Workers = 0
	case 1:
		c.Workers = 10 + r.IntN(41)
	case 2:
		c.Workers, c.Foreign = r.IntN(2), 1+r.IntN(3)
	}
	density := r.IntN(4)
	for f := range faultKinds {
		if r.IntN(4) < density {
			c.Faults = c.Faults.With(f)
		}
	}
	if !c.Sweeps || r.IntN(3) > 0 {
		c.Faults &^= deadly
	}
	if r.IntN(4) > 0 {
		c.Faults = c.Faults.Without(NewFormat)
	}
	c.Faults &= allowed
	c.Burst = r.IntN(4) == 0
	if r.IntN(3) == 0 {
		c.CrashLimit = 2 + r.IntN(2)
	}
	c.Hosted = r.IntN(4) == 0
	for i := range 1 + min(r.IntN(4), r.IntN(4)) {
		c.Workloads = append(c.Workloads, Workload{ID: fmt.Sprintf("w%d", i+1), Definition: drawDefinition(r), Other: drawDefinition(r)})
	}
	return c
}
