// Command simulate plays the campaigns of package sim (make simulate).
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"time"

	"jobq/internal/sim"
)

func main() {
	first := flag.Uint64("first", 1, "first seed")
	last := flag.Uint64("last", 10_000, "last seed")
	faults := flag.String("faults", "all", "faults to draw from")
	stop := flag.Int("stop", 5, "violations after which to stop")
	complete := flag.Bool("complete", false, "fail where a fault or a path never happened")
	small := flag.Int("small", 0, "size of graphs whose crashes are all played too, with every race, where the random ones break nothing")
	asJSON := flag.Bool("json", false, "print the first violation as JSON")
	history := flag.String("history", "", "print the history of the first seed on this kind of queues: storage or servicebus")
	explain := flag.Bool("explain", false, "print the first history that broke a promise, made smaller")
	file := flag.String("file", "", "a workflow to play instead of random ones")
	doc := flag.String("doc", "", "file whose figures of random histories are to be rewritten")
	flag.Parse()
	shape, err := shapeOf(*file)
	if err != nil {
		fmt.Fprintln(os.Stderr, "simulate:", err)
		os.Exit(2)
	}
	if *history != "" {
		os.Exit(tell(*first, *history, *faults, shape))
	}
	os.Exit(play(*first, *last, *faults, *stop, *small, *complete, *asJSON, *explain, *doc, shape))
}

// shapeOf reads a workflow that every history is to play, nil for none.
func shapeOf(file string) (func(*sim.Config), error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	d, err := sim.ReadWorkflow(file, text)
	if err != nil {
		return nil, err
	}
	return sim.Graph(d), nil
}

func play(first, last uint64, faults string, stop, small int, complete, asJSON, explain bool, doc string, shape func(*sim.Config)) int {
	set, ok := sim.ParseFaults(faults)
	if !ok {
		fmt.Fprintln(os.Stderr, "simulate: unknown fault in", faults)
		return 2
	}
	sum := campaign(first, last, set, stop, shape)
	if small > 0 {
		sum = exhaust(sum, small, stop)
	}
	if asJSON {
		return printJSON(sum)
	}
	sum.Print(os.Stdout)
	if explain && len(sum.Failures) > 0 {
		sim.Explain(os.Stdout, sim.Shrink(sum.Failures[0], 200))
	}
	missing := sum.Missing(set)
	for _, what := range missing {
		fmt.Println("never happened:", what)
	}
	if doc != "" {
		if err := sim.RewriteDocument(doc, "figures", func(string) string { return sum.Table() }); err != nil {
			fmt.Fprintln(os.Stderr, "simulate:", err)
			return 2
		}
	}
	if len(sum.Failures) > 0 || complete && len(missing) > 0 {
		return 1
	}
	return 0
}

// exhaust plays the small cases, until stop promises are broken.
func exhaust(sum sim.Summary, small, stop int) sim.Summary {
	for _, p := range sim.Personalities() {
		for _, c := range sim.Crashes(small) {
			if len(sum.Failures) < stop {
				sum.Add(c.Run(p, time.Now, nil))
			}
		}
	}
	for _, p := range sim.Personalities() {
		for _, r := range sim.Races() {
			if len(sum.Failures) < stop {
				sum.Add(r.Run(p, time.Now, nil))
			}
		}
	}
	return sum
}

// tell prints one history, whether a promise broke in it or not.
func tell(seed uint64, queue, faults string, shape func(*sim.Config)) int {
	set, ok := sim.ParseFaults(faults)
	if !ok {
		fmt.Fprintln(os.Stderr, "simulate: unknown fault in", faults)
		return 2
	}
	for _, p := range sim.Personalities() {
		if p.String() != queue {
			continue
		}
		c := sim.Draw(seed, p, set)
		if shape != nil {
			shape(&c)
		}
		c.Record = true
		w := sim.Run(c)
		for _, line := range w.Lines() {
			fmt.Println(line)
		}
		fmt.Println("faults", c.Faults, "sweeps", c.Sweeps, "violations", w.Violations)
		return min(len(w.Violations), 1)
	}
	fmt.Fprintln(os.Stderr, "simulate: unknown kind of queues", queue)
	return 2
}

// campaign plays the seeds in blocks, as many at a time as there are processors.
func campaign(first, last uint64, set sim.FaultSet, stop int, shape func(*sim.Config)) sim.Summary {
	const block = 250
	began := time.Now()
	var sum sim.Summary
	var parts []func() sim.Summary
	for from := first; from <= last; from += block {
		c := sim.Campaign{First: from, Last: min(last, from+block-1), Personalities: sim.Personalities(), Faults: set, StopAt: stop, Shape: shape}
		parts = append(parts, func() sim.Summary { return c.Run(time.Now) })
	}
	for len(parts) > 0 && len(sum.Failures) < stop {
		some := parts[:min(len(parts), runtime.GOMAXPROCS(0))]
		parts = parts[len(some):]
		sim.Play(some, len(some), func(_ int, s sim.Summary) {
			sum.Add(s)
			for _, f := range s.Failures {
				fmt.Fprintf(os.Stderr, "VIOLATION %v (%s)\n", f.Violation, f.Command())
			}
		})
		sum.Took = time.Since(began)
		fmt.Fprintf(os.Stderr, "%6d histories, %d violations, %v\n", sum.Histories, len(sum.Failures), sum.Took.Round(time.Second))
	}
	return sum
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
