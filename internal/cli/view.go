package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"

	"jobq/core/state"
)

// palette paints, or does not.
type palette bool

func (p palette) paint(s string, c ...text.Color) string {
	if !p || s == "" {
		return s
	}
	// Colors.Sprint asks the environment of the process; we have asked ours.
	return text.Colors(c).EscapeSeq() + s + text.EscapeReset
}

// statusColor is the colour of a status wherever it is shown.
func statusColor(word string) text.Color {
	switch word {
	case state.Completed.String():
		return text.FgGreen
	case state.Failed.String(), state.UpstreamFailed.String():
		return text.FgRed
	case state.Running.String():
		return text.FgCyan
	case state.Skipped.String(), state.Cancelled.String():
		return text.FgYellow
	default:
		return text.FgHiBlack
	}
}

// headline is a workflow in one line.
func headline(s snapshot, p palette) string {
	c := s.counts
	parts := []string{fmt.Sprintf("%s %d/%d", bar(s.counts.Ended(), s.total, 20), c.Ended(), s.total)}
	add := func(n int, word string) {
		if n > 0 {
			parts = append(parts, p.paint(fmt.Sprintf("%d %s", n, word), statusColor(word)))
		}
	}
	if s.stopping {
		parts = append(parts, "stopping")
		s.left = -1
	}
	if s.cancel {
		parts = append(parts, "being cancelled")
	}
	add(c.Failed, "failed")
	add(c.UpstreamFailed, "upstream_failed")
	add(c.Cancelled, "cancelled")
	add(c.Skipped, "skipped")
	for _, part := range liveParts(s.counts, s.active, s.more) {
		if part.word == wordRunning || part.word == wordQueued {
			parts = append(parts, p.paint(part.String(), statusColor(part.word)))
		}
	}
	if s.rate > 0 {
		parts = append(parts, rateText(s.rate))
	}
	parts = append(parts, seconds(s.elapsed.Truncate(time.Second)))
	if s.left >= 0 {
		parts = append(parts, "about "+seconds(s.left.Round(time.Second))+" left")
	}
	return strings.Join(parts, "  ")
}

func rateText(rate float64) string {
	switch {
	case rate >= 10:
		return fmt.Sprintf("%.0f/s", rate)
	case rate >= 0.1:
		return fmt.Sprintf("%.1f/s", rate)
	default:
		return fmt.Sprintf("%.1f/min", rate*60)
	}
}

// bar is a bar of the given width that is done/total full.
func bar(done, total, width int) string {
	full := 0
	if total > 0 {
		full = done * width / total
	}
	return "[" + strings.Repeat("=", full) + strings.Repeat(" ", width-full) + "]"
}

// runningLine names what runs.
func runningLine(s snapshot) string {
	if len(s.running) == 0 {
		return ""
	}
	names := make([]string, len(s.running))
	for i, n := range s.running {
		names[i] = line(n)
	}
	return "  running: " + strings.Join(names, ", ")
}

// groupLines are the rows of a table of groups, at most most of them: first the
// groups in which something goes on, all in the order of the file.
func groupLines(s snapshot, most int, p palette) []string {
	if most < 2 || len(s.groups) < 2 {
		return nil
	}
	shown := chooseGroups(s.groups, most-1)
	width := 0
	for _, g := range shown {
		width = max(width, text.StringWidth(g.name))
	}
	width = min(width, 32)
	lines := make([]string, 0, most)
	for _, g := range shown {
		c := g.counts
		name := text.Pad(text.Snip(line(g.name), width, "…"), width, ' ')
		parts := []string{fmt.Sprintf("  %s %s %d/%d", name, bar(c.Ended(), c.Total(), 10), c.Ended(), c.Total())}
		for _, part := range liveParts(c, g.active, false) {
			if part.word != state.Completed.String() && part.word != state.Pending.String() {
				parts = append(parts, p.paint(part.String(), statusColor(part.word)))
			}
		}
		lines = append(lines, strings.Join(parts, "  "))
	}
	if more := len(s.groups) - len(shown); more > 0 {
		lines = append(lines, "  … and "+plural(more, "more group", "more groups"))
	}
	return lines
}

// chooseGroups returns at most most groups in their order: those in which
// something runs or failed before those that wait, those before the done.
func chooseGroups(all []groupCounts, most int) []groupCounts {
	if len(all) <= most+1 {
		return all
	}
	take := make([]bool, len(all))
	left := most
	for _, wanted := range []func(groupCounts) bool{
		func(g groupCounts) bool { return g.active+g.counts.Failed > 0 },
		func(g groupCounts) bool { return g.counts.Running+g.counts.Ready > 0 },
		func(g groupCounts) bool { return g.counts.Open() > 0 },
		func(groupCounts) bool { return true },
	} {
		for i, g := range all {
			if left > 0 && !take[i] && wanted(g) {
				take[i] = true
				left--
			}
		}
	}
	var out []groupCounts
	for i, g := range all {
		if take[i] {
			out = append(out, g)
		}
	}
	return out
}

// levelColor is the colour of the level of a finding.
func levelColor(level string) text.Color {
	switch level {
	case levelOK:
		return text.FgGreen
	case levelWarn:
		return text.FgYellow
	case levelFail:
		return text.FgRed
	default:
		return text.FgCyan
	}
}
