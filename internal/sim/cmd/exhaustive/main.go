// Command exhaustive plays every history of the small cases: each process
// stopped, and each answer lost, at every store call; two coordinators
// interleaved in every way with up to three changes.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
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
	var names []string
	var parts []func() sim.Summary
	for _, p := range sim.Personalities() {
		for _, c := range sim.Crashes(tasks) {
			names = append(names, fmt.Sprintf("stop: %-34s %-10s", c.Name, p))
			parts = append(parts, func() sim.Summary { return c.Run(p, time.Now, nil) })
		}
		for _, r := range sim.Races() {
			names = append(names, fmt.Sprintf("race: %-34s %-10s", r.Name, p))
			parts = append(parts, func() sim.Summary { return r.Run(p, time.Now, nil) })
		}
	}
	sim.Play(parts, runtime.GOMAXPROCS(0), func(part int, s sim.Summary) {
		fmt.Printf("%s %8d histories %10d calls %8v\n", names[part], s.Histories, s.Calls, s.Took.Round(time.Millisecond))
		for _, f := range s.Failures {
			fmt.Printf("VIOLATION %v\n  in: %s, %s\n", f.Violation, f.Config.Workloads[0].Definition.Name, f.Config.What)
		}
		failures += len(s.Failures)
		histories += s.Histories
	})
	fmt.Printf("%d histories in %v, %d violations\n", histories, time.Since(began).Round(time.Second), failures)
	if failures > 0 {
		return 1
	}
	return 0
}
