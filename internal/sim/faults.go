package sim

import (
	"math/rand/v2"
	"strings"
	"time"
)

// Fault is a kind of thing that goes wrong.
type Fault uint8

// The faults that a world can be set to. Each has a rate of its own.
const (
	// FailBefore is a call that fails without an effect.
	FailBefore Fault = iota
	// AnswerLost is a call whose effect happened, but whose answer is lost.
	AnswerLost
	// Slow is a call that takes up to three minutes.
	Slow
	// LateEffect is a call that its caller gave up and that happens all the same.
	LateEffect
	// Throttle is a call that is answered with a pause to be made.
	Throttle
	// Conflict is a conditional write that is refused though nobody else wrote.
	Conflict
	// StopBefore and StopAfter are the end of the process at a call.
	StopBefore
	StopAfter
	// Pause is a process that stands still for longer than any lock, and goes on.
	Pause
	// ClockSkew gives each process a clock of its own, minutes off.
	ClockSkew
	// EmptyReceive is a receive that finds nothing though there is something.
	EmptyReceive
	// ListLag is a listing that does not show the newest rows.
	ListLag
	// QueueMissing is a queue that is deleted with what is in it.
	QueueMissing
	// QueueCleared is a queue whose messages are all removed.
	QueueCleared
	// MessageLost is a message that was accepted and is nowhere.
	MessageLost
	// OutputsDown is a time in which outputs can neither be read nor written.
	OutputsDown
	// MachineFreeze stops a worker's machine with its commands for a while.
	MachineFreeze
	// MachineLost ends a worker's machine with its commands.
	MachineLost
	// WorkerStop asks a worker to stop (a preemption).
	WorkerStop
	// Duplicate is a message that is delivered twice.
	Duplicate
	// NewColumn lets half of the programs be of the next version, which writes one
	// column more.
	NewColumn
	// NewFormat lets those write a format that the others cannot read.
	NewFormat
	// SendsDown is a time in which no queue takes a message.
	SendsDown
	faultKinds
)

var faultNames = [faultKinds]string{
	"fail-before", "answer-lost", "slow", "late-effect", "throttle", "conflict", "stop-before", "stop-after",
	"pause", "clock-skew", "empty-receive", "list-lag", "queue-missing", "queue-cleared", "message-lost",
	"outputs-down", "machine-freeze", "machine-lost", "worker-stop", "duplicate", "new-column", "new-format", "sends-down",
}

// String returns the name that flags and reports use.
func (f Fault) String() string {
	if f < faultKinds {
		return faultNames[f]
	}
	return "none"
}

// none is the Fault of a call that goes well.
const none = faultKinds

// FaultSet is a set of faults.
type FaultSet uint32

// Has reports whether f is in s.
func (s FaultSet) Has(f Fault) bool { return s&(1<<f) != 0 }

// With returns s and f.
func (s FaultSet) With(f Fault) FaultSet { return s | 1<<f }

// Without returns s less f.
func (s FaultSet) Without(f Fault) FaultSet { return s &^ (1 << f) }

// AllFaults is every fault there is.
const AllFaults = FaultSet(1<<faultKinds - 1)

// deadly are the faults after which something is gone for good that nobody but
// the sweep can bring back.
const deadly = FaultSet(1<<QueueMissing | 1<<QueueCleared | 1<<MessageLost)

// String lists the names.
func (s FaultSet) String() string {
	var names []string
	for f := range faultKinds {
		if s.Has(f) {
			names = append(names, f.String())
		}
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ",")
}

// ParseFaults reads a list of names; "all" and "none" stand for themselves.
func ParseFaults(list string) (FaultSet, bool) {
	switch list {
	case "all", "":
		return AllFaults, true
	case "none":
		return 0, true
	}
	var s FaultSet
	for name := range strings.SplitSeq(list, ",") {
		found := false
		for f := range faultKinds {
			if f.String() == strings.TrimSpace(name) {
				s, found = s.With(f), true
			}
		}
		if !found {
			return 0, false
		}
	}
	return s, true
}

// weather draws the faults of calls while the storm lasts.
type weather struct {
	random *rand.Rand
	// rates are in parts of 2^32 a call, summed up from the first fault on.
	sums  [faultKinds]uint32
	until time.Duration
	// script, where set, takes the place of the draw.
	script func(p *process, o op, key string, empty bool) Fault
}

// perCall are the faults that strike single calls, with their highest rate in
// thousandths.
var perCall = [faultKinds]int{
	FailBefore: 60, AnswerLost: 60, Slow: 20, Throttle: 100, Conflict: 120, StopBefore: 10, StopAfter: 10,
	Pause: 3, EmptyReceive: 150, MessageLost: 60, Duplicate: 40,
}

// newWeather draws a rate for each fault of set.
func newWeather(random *rand.Rand, set FaultSet, until time.Duration) *weather {
	wt := &weather{random: random, until: until}
	sum := uint64(0)
	for f := range faultKinds {
		if most := perCall[f]; most > 0 {
			rate := random.Float64()
			if set.Has(f) {
				sum += uint64(rate * float64(most) / 1000 * (1 << 32))
			}
		}
		wt.sums[f] = uint32(min(sum, 1<<32-1))
	}
	return wt
}

// draw returns the fault of a call, or none.
func (wt *weather) draw(now time.Duration, p *process, o op) Fault {
	if now >= wt.until || wt.sums[faultKinds-1] == 0 {
		return none
	}
	x := wt.random.Uint32()
	if x >= wt.sums[faultKinds-1] {
		return none
	}
	for f := range faultKinds {
		if x < wt.sums[f] {
			if f.strikes(p, o) {
				return f
			}
			return none
		}
	}
	return none
}

// strikes reports whether f can happen to o of p.
func (f Fault) strikes(p *process, o op) bool {
	switch f {
	case Conflict:
		return o.conditional()
	case EmptyReceive:
		return o == opReceive
	case MessageLost, Duplicate:
		return o == opSend
	case StopBefore, StopAfter, Pause:
		return p.role != machineRole
	default:
		return true
	}
}
