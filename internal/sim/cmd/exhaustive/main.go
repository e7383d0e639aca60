// Command exhaustive plays every history of the small cases: each process
// stopped, and each answer lost, at every store call; two coordinators
// interleaved in every way with up to three changes.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"jobq/internal/sim"
)

func main() {
	tasks := flag.Int("tasks", 4, "largest graph")
	flag.Parse()
	os.Exit(play(*tasks))
}

func play(tasks int) int {
	failures, histories := 0, 0
	began := time.Now()
	report := func(what string, p sim.Personality, s sim.Summary) {
		fmt.Printf("%-34s %-10s %8d histories %10d calls %8v\n", what, p, s.Histories, s.Calls, s.Took.Round(time.Millisecond))
		for _, f := range s.Failures {
			fmt.Printf("VIOLATION %v\n  in: %s, %s\n", f.Violation, f.Config.Workloads[0].Definition.Name, f.Config.What)
		}
		failures += len(s.Failures)
		histories += s.Histories
	}
	for _, p := range sim.Personalities() {
		for _, c := range sim.Crashes(tasks) {
			report("stop: "+c.Name, p, c.Run(p, time.Now, nil))
		}
		for _, r := range sim.Races() {
			report("race: "+r.Name, p, r.Run(p, time.Now, nil))
		}
	}
	fmt.Printf("%d histories in %v\n", histories, time.Since(began).Round(time.Second))
	if failures > 0 {
		return 1
	}
	return 0
}
