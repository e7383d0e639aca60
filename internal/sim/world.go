package sim

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"jobq/core/fault"
	"jobq/core/port"
	"jobq/store/memory"
)

// World is one installation with everybody who works on it. One goroutine uses
// it; nothing in it depends on the machine.
type World struct {
	o       Config
	s       *scheduler
	mem     *memory.Store
	admin   *port.Store
	weather *weather
	ledger  *ledger
	draw    *rand.Rand
	streams uint64

	processes    int
	all          []*process
	calls        int
	striking     Fault
	missing      map[string]bool
	lostIDs      map[string]bool
	dueWritten   map[string]time.Duration
	coordinators []*coordinatorProcess
	workers      []*workerProcess
	callers      int

	outputsDownUntil time.Duration
	sendsDownUntil   time.Duration
	ended            bool

	hash   hash
	lines  []string
	Counts Counts
	// Violations are what the oracles found, the first one first.
	Violations []Violation
}

// Violation is a broken promise.
type Violation struct {
	// Oracle names the rule.
	Oracle string
	At     time.Duration
	Text   string
}

func (v Violation) String() string { return fmt.Sprintf("%s at %v: %s", v.Oracle, v.At, v.Text) }

// newWorld makes the world of c, with nobody in it.
func newWorld(c Config, p *pool) *World {
	w := &World{o: c, striking: none, missing: map[string]bool{}, lostIDs: map[string]bool{}, dueWritten: map[string]time.Duration{}}
	w.hash = newHash(c.Seed)
	w.draw = w.stream()
	w.s = newScheduler(w.stream(), p)
	w.s.choose = c.choose
	w.s.panicked = func(a *actor, v any, stack string) {
		w.violate("no panic", "%s: %v\n%s", a.name, v, stack)
	}
	props := c.Personality.props()
	w.mem = memory.New(memory.Options{Now: w.s.time, Queue: &props, NoFinisher: true})
	w.admin = w.mem.Port()
	w.weather = newWeather(w.stream(), c.Faults, c.Storm)
	w.weather.script = c.script
	w.ledger = newLedger(w)
	return w
}

// stream returns a source of random numbers of its own, so that one more draw in
// one place leaves the others as they were.
func (w *World) stream() *rand.Rand {
	w.streams++
	return rand.New(rand.NewPCG(w.o.Seed, w.streams))
}

func (w *World) violate(oracle, format string, args ...any) {
	v := Violation{Oracle: oracle, At: w.s.now, Text: fmt.Sprintf(format, args...)}
	w.Violations = append(w.Violations, v)
	if w.recording() {
		w.lines = append(w.lines, fmt.Sprintf("%12v  !! %s: %s", w.s.now, oracle, v.Text))
	}
}

func (w *World) recording() bool { return w.o.Record }

// lagging reports whether listings lag behind writes now.
func (w *World) lagging() bool {
	if !w.o.Faults.Has(ListLag) || w.s.now >= w.weather.until {
		return false
	}
	w.count(ListLag)
	return true
}

func (w *World) mix(v uint64) {
	w.hash.word(v)
	w.hash.word(uint64(w.s.now))
}

func (w *World) mixText(s string) { w.hash.text(s) }

// tell adds an incident to the history.
func (w *World) tell(p *process, what, detail string) {
	w.mix(uint64(p.id))
	w.mixText(what)
	if w.recording() {
		w.lines = append(w.lines, strings.TrimRight(fmt.Sprintf("%12v  %-14s -- %s %s", w.s.now, p.name, what, detail), " "))
	}
}

func (w *World) tellCall(p *process, o op, key string, f Fault, err error) {
	text := "ok"
	if err != nil {
		text = fault.CodeOf(err).String()
	}
	if f != none {
		text += " (" + f.String() + ")"
	}
	w.lines = append(w.lines, fmt.Sprintf("%12v  %-14s %s %s: %s", w.s.now, p.name, o, key, text))
}

// Hash identifies the history.
func (w *World) Hash() uint64 { return w.hash.sum }

// Lines is the history as text, where it was recorded.
func (w *World) Lines() []string { return w.lines }

// Calls is how many store calls were made.
func (w *World) Calls() int { return w.calls }

// Elapsed is the virtual time that passed.
func (w *World) Elapsed() time.Duration { return w.s.now }
