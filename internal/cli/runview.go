package cli

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"

	"jobq/core/coord"
	"jobq/core/state"
	"jobq/internal/local"
)

const (
	// maxNameWidth is the width at which names in front of lines are cut.
	maxNameWidth = 24
	// regionShare is the part of a terminal's height that the live region of a run
	// may take; the rest shows what tasks write.
	regionShare = 3
	// maxRegion is its largest height.
	maxRegion = 10
)

// runView shows a run: what tasks write, what ends, and on a terminal a live
// region below.
type runView struct {
	a        *app
	p        *progress
	o        local.Options
	screen   *screen
	out, err palette
	width    int
	live     bool
}

func newRunView(a *app, o local.Options, p *progress) *runView {
	v := &runView{a: a, p: p, o: o, out: palette(a.colored(a.out)), err: palette(a.colored(a.err))}
	for _, n := range p.names {
		v.width = max(v.width, min(text.StringWidth(line(n)), maxNameWidth))
	}
	return v
}

func (v *runView) begin() {
	_, isTerminal := terminal(v.a.err)
	v.live = isTerminal && !v.a.quiet()
	if v.live {
		v.screen = v.a.newScreen(v.region)
	} else {
		v.screen = v.a.newScreen(nil)
	}
	if !v.a.quiet() {
		v.screen.printf("jobq: run %s, %s, %d at a time", v.o.WorkflowID, count(len(v.p.names), "task"), v.o.Workers)
	}
}

// region is the live region.
func (v *runView) region(_, height int) []string {
	s := v.p.snapshot(time.Now())
	lines := []string{headline(s, v.err)}
	if names := runningLine(s); names != "" {
		lines = append(lines, v.err.paint(names, text.FgCyan))
	}
	return append(lines, groupLines(s, min(height/regionShare, maxRegion)-len(lines), v.err)...)
}

// changed tells of what a change of the workflow ended.
func (v *runView) changed(n coord.Notice) {
	now := time.Now()
	v.p.changed(n, now)
	if v.a.quiet() {
		return
	}
	for _, m := range n.Moves {
		v.tell(m, n.View)
	}
}

// tell writes a line for a task that ended or is to run again. On a terminal the
// region shows what succeeded, so only trouble gets a line.
func (v *runView) tell(m coord.Move, w coord.Summary) {
	retrying := m.Cause == state.CauseRetrying
	success := m.To == state.Completed.String()
	if !terminalWord(m.To) && !retrying || success && v.live {
		return
	}
	word, colored := m.To, statusColor(m.To)
	if retrying {
		word, colored = "retrying", text.FgYellow
	}
	text := fmt.Sprintf("[%*d/%d] %s %s", len(fmt.Sprint(w.Total)), w.Counts.Ended(), w.Total, line(m.Task), v.err.paint(word, colored))
	if m.Seconds > 0 {
		text += " after " + seconds(time.Duration(m.Seconds*float64(time.Second)))
	}
	if m.Attempt > 1 {
		text += fmt.Sprintf(", attempt %d", m.Attempt)
	}
	if m.Reason != "" && !success {
		text += ": " + line(m.Reason)
	}
	v.screen.printf("%s", text)
}

// output writes a line of a task with its name in front.
func (v *runView) output(l local.Line) {
	if v.a.quiet() {
		return
	}
	toErr := l.Stream == "stderr"
	p, isTerminal := v.out, false
	if toErr {
		p = v.err
		_, isTerminal = terminal(v.a.err)
	} else {
		_, isTerminal = terminal(v.a.out)
	}
	content := l.Text
	if isTerminal {
		content = tame(content)
	}
	name := line(l.Task)
	name = p.paint(text.Pad(text.Snip(name, v.width, "…"), v.width, ' '), nameColor(l.Task))
	v.screen.add(toErr, []byte(name+" | "+content+"\n"))
}

// nameColor gives a task the same colour in every line.
func nameColor(task string) text.Color {
	colors := []text.Color{text.FgCyan, text.FgGreen, text.FgMagenta, text.FgYellow, text.FgBlue, text.FgHiCyan, text.FgHiGreen, text.FgHiMagenta}
	h := fnv.New32a()
	h.Write([]byte(task))
	return colors[h.Sum32()%uint32(len(colors))]
}

// tame keeps what a task writes from moving the cursor: colours pass, of the
// states of a progress bar the last remains.
func tame(s string) string {
	s = strings.TrimSuffix(s, "\r")
	if at := strings.LastIndexByte(s, '\r'); at >= 0 {
		s = s[at+1:]
	}
	if strings.IndexFunc(s, func(r rune) bool { return r < ' ' }) < 0 {
		return s
	}
	var b bytes.Buffer
	for len(s) > 0 {
		if n := colorSequence(s); n > 0 {
			b.WriteString(s[:n])
			s = s[n:]
			continue
		}
		if c := s[0]; c >= ' ' && c != 0x7f || c == '\t' {
			b.WriteByte(c)
		}
		s = s[1:]
	}
	return b.String() + text.EscapeReset
}

// colorSequence returns the length of the colour sequence that s begins with, 0
// for none.
func colorSequence(s string) int {
	if !strings.HasPrefix(s, "\x1b[") {
		return 0
	}
	n := 2 + len(s[2:]) - len(strings.TrimLeft(s[2:], "0123456789;"))
	if n < len(s) && s[n] == 'm' {
		return n + 1
	}
	return 0
}

// stopping answers the first Ctrl-C.
func (v *runView) stopping() {
	v.screen.printf("jobq: stopping; Ctrl-C again kills; either way, go on: %s", v.a.commandLine("run", "--resume", v.o.WorkflowID))
}

func (v *runView) close() { v.screen.close() }

// interrupted says how to go on.
func (v *runView) interrupted(s coord.Summary) {
	left := s.Counts.Open()
	fmt.Fprintf(v.a.err, "jobq: stopped; %d of %s ended, nothing is lost\n", s.Total-left, count(s.Total, "task"))
	fmt.Fprintf(v.a.err, "  go on: %s\n", v.a.commandLine("run", "--resume", v.o.WorkflowID))
}
