// Command exhaustive plays every history of the small cases: each process
// stopped, and each answer lost, at every store call; two coordinators
// interleaved in every way with up to three changes.
package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"jobq/internal/sim"
)

func main() {
	tasks := flag.Int("tasks", 4, "largest graph")
	only := flag.String("only", "", "play the parts whose name has this text")
	doc := flag.String("doc", "", "file whose figures of exhaustive histories are to be rewritten")
	flag.Parse()
	os.Exit(play(*tasks, *only, *doc))
}

func play(tasks int, only, doc string) int {
	failures, histories := 0, 0
	began := time.Now()
	var names []string
	var parts []func() sim.Summary
	rows := map[string]int{}
	add := func(name string, run func() sim.Summary) {
		if strings.Contains(name, only) {
			names, parts = append(names, name), append(parts, run)
		}
	}
	for _, p := range sim.Personalities() {
		for _, c := range sim.Crashes(tasks) {
			add("stop or lost answer: "+c.Name, func() sim.Summary { return c.Run(p, time.Now, nil) })
		}
		for _, r := range sim.Races() {
			add("two coordinators: "+r.Name, func() sim.Summary { return r.Run(p, time.Now, nil) })
		}
	}
	sim.Play(parts, runtime.GOMAXPROCS(0), func(part int, s sim.Summary) {
		rows[names[part]] += s.Histories
		fmt.Printf("%-52s %8d histories %10d calls %8v\n", names[part], s.Histories, s.Calls, s.Took.Round(time.Millisecond))
		for _, f := range s.Failures {
			fmt.Printf("VIOLATION %v\n  in: %s, %s\n", f.Violation, f.Config.Workloads[0].Definition.Name, f.Config.What)
		}
		failures += len(s.Failures)
		histories += s.Histories
	})
	fmt.Printf("%d histories in %v, %d violations\n", histories, time.Since(began).Round(time.Second), failures)
	if doc != "" {
		if err := sim.RewriteDocument(doc, "exhaustive", func(string) string { return table(rows, histories, failures) }); err != nil {
			fmt.Fprintln(os.Stderr, "exhaustive:", err)
			return 2
		}
	}
	if failures > 0 {
		return 1
	}
	return 0
}

// table returns the histories of every part, those of both kinds of queues
// together, as Markdown.
func table(rows map[string]int, histories, failures int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d histories, %d violations.\n\n| part | histories |\n|---|---|\n", histories, failures)
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		fmt.Fprintf(&b, "| %s | %d |\n", name, rows[name])
	}
	return b.String()
}
