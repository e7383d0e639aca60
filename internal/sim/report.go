package sim

import (
	"fmt"
	"io"
	"strings"
)

// Explain plays a failure once more and writes its history as text: what there
// is, then one line a call (time, process, call, effect) and a state, and what
// was broken.
func Explain(out io.Writer, f Failure) {
	f.Config.Record = true
	w := Run(f.Config)
	c := f.Config
	fmt.Fprintf(out, "BROKEN PROMISE: %s\n  %s\n\n", f.Violation.Oracle, f.Violation.Text)
	fmt.Fprintf(out, "repeat with: %s\n", f.Command())
	fmt.Fprintf(out, "queues like %s, faults: %s, sweeps: %v, %d coordinators, %d workers, %d foreign\n",
		c.Personality, c.Faults, c.Sweeps, c.Coordinators, c.Workers, c.Foreign)
	for _, wl := range c.Workloads {
		fmt.Fprintf(out, "workflow %s:\n", wl.ID)
		for i := range wl.Definition.Tasks {
			t := &wl.Definition.Tasks[i]
			fmt.Fprintf(out, "  %s", t.Name)
			if len(t.DependsOn) > 0 {
				fmt.Fprintf(out, " < %s", strings.Join(t.DependsOn, " "))
			}
			if t.Condition != "" {
				fmt.Fprintf(out, "  if %s", t.Condition)
			}
			fmt.Fprintf(out, "  (retries %d, queue %s)\n", t.NumRetries, t.Queue)
		}
	}
	fmt.Fprintln(out)
	for _, line := range w.Lines() {
		if !idle(line) {
			fmt.Fprintln(out, line)
		}
	}
}

// idle reports whether a line says nothing but that somebody looked and found
// nothing.
func idle(line string) bool {
	return strings.HasSuffix(line, ": ok") &&
		(strings.Contains(line, " receive ") || strings.Contains(line, " acquire lease ") || strings.Contains(line, " list "))
}
