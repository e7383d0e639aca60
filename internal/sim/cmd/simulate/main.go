// Command simulate plays the campaigns of package sim (make simulate).
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"

	"jobq/internal/sim"
)

func main() {
	first := flag.Uint64("first", 1, "first seed")
	last := flag.Uint64("last", 10_000, "last seed")
	faults := flag.String("faults", "all", "faults to draw from")
	stop := flag.Int("stop", 5, "violations after which to stop")
	complete := flag.Bool("complete", false, "fail where a fault or a path never happened")
	asJSON := flag.Bool("json", false, "print the first violation as JSON")
	flag.Parse()
	os.Exit(play(*first, *last, *faults, *stop, *complete, *asJSON))
}

func play(first, last uint64, faults string, stop int, complete, asJSON bool) int {
	set, ok := sim.ParseFaults(faults)
	if !ok {
		fmt.Fprintln(os.Stderr, "simulate: unknown fault in", faults)
		return 2
	}
	c := sim.Campaign{First: first, Last: last, Personalities: sim.Personalities(), Faults: set, StopAt: stop}
	c.Progress = func(s sim.Summary) {
		if s.Histories%1000 == 0 {
			fmt.Fprintf(os.Stderr, "%6d histories, %d violations, %v\n", s.Histories, len(s.Failures), s.Took.Round(time.Second))
		}
	}
	sum := c.Run(time.Now)
	if asJSON {
		return printJSON(sum)
	}
	sum.Print(os.Stdout)
	missing := sum.Missing(set)
	for _, what := range missing {
		fmt.Println("never happened:", what)
	}
	if len(sum.Failures) > 0 || complete && len(missing) > 0 {
		return 1
	}
	return 0
}

// printJSON prints what the table of mutants needs.
func printJSON(sum sim.Summary) int {
	result := struct {
		Histories    int
		Oracle, Text string
	}{Histories: sum.Histories}
	if len(sum.Failures) > 0 {
		v := sum.Failures[0].Violation
		result.Oracle, result.Text = v.Oracle, v.Text
	}
	body, err := json.Marshal(result)
	if err != nil {
		fmt.Fprintln(os.Stderr, "simulate:", err)
		return 2
	}
	fmt.Println(string(body))
	if result.Oracle != "" {
		return 1
	}
	return 0
}
