package sim

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Explain plays a failure once more and writes its history as text: what there
// is, then one line a call (time, process, call, effect) and a state, and what
// was broken.
func Explain(out io.Writer, f Failure) {
	f.Config.Record = true
	w := Run(f.Config)
	fmt.Fprintf(out, "BROKEN PROMISE: %s\n  %s\n\n", f.Violation.Oracle, f.Violation.Text)
	fmt.Fprintf(out, "repeat with: %s\n", f.Command())
	tellHistory(out, w)
}

// Tell plays the history of c and writes it as text.
func Tell(out io.Writer, c Config) {
	c.Record = true
	tellHistory(out, Run(c))
}

// tellHistory writes what there is in w and what happened.
func tellHistory(out io.Writer, w *World) {
	c := w.o
	if c.Hosted {
		fmt.Fprint(out, "function hosts call the coordinators, ")
	}
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

// Table returns s as Markdown.
func (s *Summary) Table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s random histories, %s store calls, %.0f hours of virtual time, %d violations.\n\n",
		grouped(int64(s.Histories)), grouped(s.Calls), s.Virtual.Hours(), len(s.Failures))
	b.WriteString("| fault | injected |\n|---|---|\n")
	for f := range faultKinds {
		fmt.Fprintf(&b, "| %s | %s |\n", f, grouped(s.Counts.Faults[f]))
	}
	b.WriteString("\n| path of recovery | taken |\n|---|---|\n")
	for p := range paths {
		fmt.Fprintf(&b, "| %s | %s |\n", p, grouped(s.Counts.Paths[p]))
	}
	fmt.Fprintf(&b, "| step in quiet, within %v | %s |\n", stepTime, grouped(s.Counts.Steps))
	b.WriteString("\n| workflows ended as | |\n|---|---|\n")
	for _, status := range sortedKeys(s.Counts.Ended) {
		fmt.Fprintf(&b, "| %s | %s |\n", status, grouped(s.Counts.Ended[status]))
	}
	return b.String()
}

// grouped writes n with a comma at each thousand.
func grouped(n int64) string {
	text := strconv.FormatInt(n, 10)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}
