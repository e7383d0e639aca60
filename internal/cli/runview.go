package cli

import (
	"context"
	"fmt"
	"hash/fnv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/text"

	"jobq/core/coord"
	"jobq/core/port"
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
	// resumed says that the run goes on from an earlier process.
	resumed bool
	// begun says that the run is stored, and ours: only then there is something to go
	// on with.
	begun atomic.Bool

	mu sync.Mutex
	// told is when the last line about a success was written, where there are too
	// many for one each.
	told time.Time
	// toldBack is when the last line about a start that came to nothing was.
	toldBack time.Time
}

func newRunView(a *app, o local.Options, p *progress) *runView {
	v := &runView{a: a, p: p, o: o, out: palette(a.colored(a.out)), err: palette(a.colored(a.err))}
	for _, n := range p.names {
		v.width = max(v.width, min(text.StringWidth(line(n)), maxNameWidth))
	}
	return v
}

func (v *runView) begin() {
	_, isTerminal := v.a.lively(v.a.err)
	v.live = isTerminal && !v.a.quiet()
	if v.live {
		v.screen = v.a.newScreen(v.region)
	} else {
		v.screen = v.a.newScreen(nil)
	}
	if v.a.quiet() {
		return
	}
	v.screen.setFarewell("jobq: nobody reads standard output any more; the run goes on, and %s prints what tasks write\n", v.a.commandLine("logs", v.o.WorkflowID))
	tasks := count(len(v.p.names), "task")
	counts := v.p.snapshot(time.Now()).counts
	switch kept := counts.Completed + counts.Skipped; {
	case v.o.Retry:
		v.resumed = true
		tasks = fmt.Sprintf("%d of %s kept", kept, tasks)
	case counts.Ended() > 0:
		v.resumed = true
		tasks = fmt.Sprintf("%d of %s ended already", counts.Ended(), tasks)
	}
	v.screen.printf("jobq: run %s, %s, %d at a time", v.o.WorkflowID, tasks, v.o.Workers)
}

// held tells that another process runs the workflow.
func (v *runView) held(m port.Member) {
	v.screen.printf("jobq: run %s is being run by process %d%s; waiting a moment for it to end", v.o.WorkflowID, m.PID, sinceText(m))
}

func sinceText(m port.Member) string {
	if m.Started.IsZero() {
		return ""
	}
	return " since " + m.Started.Local().Format(time.TimeOnly)
}

// givenBack tells of a start that came to nothing. After a stop that is no news.
func (v *runView) givenBack(task string, why error) {
	if v.a.quiet() || v.p.stopped() || !v.turn(&v.toldBack, time.Now()) {
		return
	}
	v.screen.printf("jobq: %s could not be run to its end and is started again: %s", line(task), brief(why.Error()))
}

// trouble tells that the store takes nothing, which no quiet hides: the run stands
// still meanwhile.
func (v *runView) trouble(err error) {
	if err == nil {
		v.screen.printf("jobq: what tasks left could be written down; the run goes on")
		return
	}
	v.screen.printf("jobq: what tasks left cannot be written down: %s\n  next: correct that; the run waits for it and goes on by itself", plain(err.Error()))
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
	// The summary counts all of a save: each line counts one further.
	number := n.View.Counts.Ended()
	for _, m := range n.Moves {
		if terminalWord(m.To) {
			number--
		}
	}
	for _, m := range n.Moves {
		if terminalWord(m.To) {
			number++
		}
		v.tell(m, number, n.View.Total, now)
	}
}

// tell writes a line for a task that ended or is to run again. On a terminal the
// region shows what succeeded, so only trouble gets a line.
func (v *runView) tell(m coord.Move, number, total int, now time.Time) {
	retrying := m.Cause == state.CauseRetrying
	success := m.To == state.Completed.String()
	if !terminalWord(m.To) && !retrying || success && (v.live || v.inSum(number, total, now)) {
		return
	}
	var text string
	if retrying {
		text = fmt.Sprintf("%s: attempt %d failed", v.err.paint("retrying", statusColor(state.Cancelled.String())), m.Attempt)
	} else {
		text = v.err.paint(m.To, statusColor(m.To))
	}
	text = fmt.Sprintf("[%*d/%d] %s %s", len(fmt.Sprint(total)), number, total, line(m.Task), text)
	if m.Exit != nil {
		text += " after " + lasted(time.Duration(m.Seconds*float64(time.Second)))
	}
	if m.Attempt > 1 && !retrying {
		text += fmt.Sprintf(", attempt %d", m.Attempt)
	}
	if m.Reason != "" && !success {
		text += ": " + brief(m.Reason)
	}
	v.screen.printf("%s", text)
}

// manyTasks is from how many tasks on successes are told of together, tellEvery
// in which rhythm.
const (
	manyTasks = 200
	tellEvery = time.Second
)

// inSum reports whether a success needs no line of its own. Where there are many,
// a line a second says how far it is.
func (v *runView) inSum(number, total int, now time.Time) bool {
	if total <= manyTasks {
		return false
	}
	if !v.turn(&v.told, now) {
		return true
	}
	s := v.p.snapshot(now)
	text := fmt.Sprintf("[%*d/%d] %s running", len(fmt.Sprint(total)), number, total, fmt.Sprint(s.active))
	if s.rate > 0 {
		text += ", " + rateText(s.rate)
	}
	if s.left >= 0 {
		text += ", about " + seconds(s.left.Round(time.Second)) + " left"
	}
	v.screen.printf("%s", text)
	return true
}

// turn reports whether there may be a line again of what was last told at told.
func (v *runView) turn(told *time.Time, now time.Time) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if now.Sub(*told) < tellEvery {
		return false
	}
	*told = now
	return true
}

// output writes a line of a task with its name in front. What tasks write to
// standard error is no error of ours, so quiet leaves it to the logs.
func (v *runView) output(l local.Line) {
	toErr := l.Stream == "stderr"
	if toErr && v.a.quiet() {
		return
	}
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
	if strings.IndexFunc(s, unicode.IsControl) < 0 && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		if n := colorSequence(s); n > 0 {
			b.WriteString(s[:n])
			s = s[n:]
			continue
		}
		// Some terminals obey control characters above 0x7f too, also as bare bytes.
		r, n := utf8.DecodeRuneInString(s)
		if !unicode.IsControl(r) || r == '\t' {
			b.WriteRune(r)
		}
		s = s[n:]
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
	v.p.stop()
	text := "jobq: stopping; Ctrl-C again kills"
	if v.begun.Load() {
		text += "; either way, go on: " + v.resumeLine()
	}
	v.screen.urgent([]byte(text+"\n"+v.waitedFor()), lastLines)
}

// waitedFor says which commands a stop waits for.
func (v *runView) waitedFor() string {
	s := v.p.snapshot(time.Now())
	if s.active == 0 {
		return ""
	}
	names := strings.TrimPrefix(runningLine(s), "  running: ")
	if more := s.active - len(s.running); more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	limit := "without a limit (--kill-timeout)"
	if v.o.KillTimeout > 0 {
		limit = "up to " + seconds(v.o.KillTimeout)
	}
	return fmt.Sprintf("jobq: SIGTERM was sent to %s; waiting for the end %s\n", names, limit)
}

// killed closes the screen and answers the second Ctrl-C.
func (v *runView) killed() {
	v.closeWithin(lastLines)
	v.a.unread.Store(true) // perhaps of standard error
	if !v.begun.Load() {
		v.a.tell(fmt.Sprintf("jobq: killed before run %s had begun here\n", v.o.WorkflowID))
		return
	}
	v.a.tell(fmt.Sprintf("jobq: killed; nothing is lost but what was running\n  go on: %s\n", v.resumeLine()))
}

// resumeLine returns what to type to go on.
func (v *runView) resumeLine() string { return v.a.commandLine("run", "--resume", v.o.WorkflowID) }

// closeWithin closes the screen and reports false where nobody reads what it writes.
func (v *runView) closeWithin(d time.Duration) bool {
	closed := atMost(d, v.close)
	v.a.unread.Store(!closed)
	return closed
}

// closeBefore closes the screen for whoever reads it, in a pager for as long as it
// takes, but after a stop no longer than readTime; it reports whether it was closed.
func (v *runView) closeBefore(ctx context.Context) bool {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		v.close()
	}()
	select {
	case <-closed:
		return true
	case <-ctx.Done():
	}
	if v.closeWithin(lastLines) {
		return true
	}
	v.a.tell(fmt.Sprintf("jobq: %v; waiting for a reader up to %s\n", errUnread, seconds(readTime)))
	return v.closeWithin(readTime)
}

// unread tells that the run has ended and its last lines were not waited for.
func (v *runView) unread() {
	v.a.tell(fmt.Sprintf("jobq: ended while nobody reads what it prints; how the run stands: %s\n", v.a.commandLine("status", v.o.WorkflowID)))
}

// overdue tells that the stop was not waited for any longer. The screen is closed.
func (v *runView) overdue(why error) {
	v.a.tell(fmt.Sprintf("jobq: ended without what could not be written down (%s); those tasks run again\n  go on: %s\n",
		plain(why.Error()), v.resumeLine()))
}

func (v *runView) close() { v.screen.close() }

// interrupted says how to go on.
func (v *runView) interrupted(s coord.Summary) {
	left := s.Counts.Open()
	goOn := v.resumeLine()
	if v.o.Retry && endedWord(s.Status) {
		goOn = v.a.commandLine("retry", v.o.WorkflowID, "--run")
	}
	v.a.tell(fmt.Sprintf("jobq: stopped; %d of %s ended, nothing is lost\n  go on: %s\n", s.Total-left, count(s.Total, "task"), goOn))
}
