package sim

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Campaign plays many histories that seeds draw.
type Campaign struct {
	First, Last uint64
	// Step is the distance between two seeds; 1.
	Step          uint64
	Personalities []Personality
	Faults        FaultSet
	// Shape changes what a seed draws, where set.
	Shape func(*Config)
	// Progress hears of every history, where set.
	Progress func(Summary)
	// StopAt is the number of violations after which nothing more is played; 1.
	StopAt int
}

// Summary is what a campaign did.
type Summary struct {
	Histories int
	Calls     int64
	Virtual   time.Duration
	Counts    Counts
	Failures  []Failure
	Took      time.Duration
}

// Failure is a history that broke a promise.
type Failure struct {
	Config    Config
	Violation Violation
}

// Run plays the campaign on the calling goroutine. now is the clock of the
// machine, for Summary.Took alone.
func (c Campaign) Run(now func() time.Time) Summary {
	var sum Summary
	p := &pool{}
	defer p.close()
	began := now()
	for seed := c.First; seed <= c.Last && len(sum.Failures) < max(c.StopAt, 1); seed += max(c.Step, 1) {
		for _, personality := range c.Personalities {
			config := Draw(seed, personality, c.Faults)
			if c.Shape != nil {
				c.Shape(&config)
			}
			sum.add(run(config, p))
			sum.Took = now().Sub(began)
			if c.Progress != nil {
				c.Progress(sum)
			}
		}
	}
	return sum
}

func (s *Summary) add(w *World) {
	s.Histories++
	s.Calls += int64(w.calls)
	s.Virtual += w.s.now
	s.Counts.Add(w.Counts)
	if len(w.Violations) > 0 {
		s.Failures = append(s.Failures, Failure{w.o, w.Violations[0]})
	}
}

// Play runs parts on as many goroutines as workers, and calls report with the
// result of each, one at a time, as they end.
func Play(parts []func() Summary, workers int, report func(part int, s Summary)) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	next := 0
	for range min(workers, len(parts)) {
		wg.Go(func() {
			for {
				mu.Lock()
				part := next
				next++
				mu.Unlock()
				if part >= len(parts) {
					return
				}
				sum := parts[part]()
				mu.Lock()
				report(part, sum)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}

// Add adds o to s.
func (s *Summary) Add(o Summary) {
	s.Histories += o.Histories
	s.Calls += o.Calls
	s.Virtual += o.Virtual
	s.Took += o.Took
	s.Counts.Add(o.Counts)
	s.Failures = append(s.Failures, o.Failures...)
}

// Missing lists the faults of set and the paths that never happened.
func (s *Summary) Missing(set FaultSet) []string {
	var missing []string
	for f := range faultKinds {
		if set.Has(f) && s.Counts.Faults[f] == 0 {
			missing = append(missing, "fault "+f.String())
		}
	}
	for p := range paths {
		if s.Counts.Paths[p] == 0 {
			missing = append(missing, "path "+p.String())
		}
	}
	if s.Counts.Steps == 0 {
		missing = append(missing, "a step in quiet")
	}
	return missing
}

// Print writes s as a table.
func (s *Summary) Print(out io.Writer) {
	rate := 0.0
	if s.Took > 0 {
		rate = float64(s.Calls) / s.Took.Seconds()
	}
	fmt.Fprintf(out, "%d histories, %d store calls in %v (%.0f a second), %.0f h of virtual time\n",
		s.Histories, s.Calls, s.Took.Round(time.Millisecond), rate, s.Virtual.Hours())
	fmt.Fprintln(out, "\nfaults injected")
	for f := range faultKinds {
		fmt.Fprintf(out, "  %-40s %12d\n", f, s.Counts.Faults[f])
	}
	fmt.Fprintln(out, "\npaths of recovery taken")
	for p := range paths {
		fmt.Fprintf(out, "  %-40s %12d\n", p, s.Counts.Paths[p])
	}
	fmt.Fprintf(out, "\n%d steps in quiet, each within %v\n", s.Counts.Steps, stepTime)
	fmt.Fprintln(out, "\nworkflows by final status")
	for _, status := range sortedKeys(s.Counts.Ended) {
		fmt.Fprintf(out, "  %-40s %12d\n", status, s.Counts.Ended[status])
	}
	for _, f := range s.Failures {
		fmt.Fprintf(out, "\nVIOLATION %v\n  repeat with: %s\n", f.Violation, f.Command())
	}
}

// Command is what repeats the history.
func (f Failure) Command() string {
	if f.Config.What != "" {
		return "go run ./internal/sim/cmd/exhaustive (" + f.Config.What + ")"
	}
	return fmt.Sprintf("jobq simulate --seed %d --queue %s", f.Config.Seed, f.Config.Personality)
}
