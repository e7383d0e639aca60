package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
)

const (
	// redrawEvery is the rhythm of a screen: often enough to look alive, seldom
	// enough not to flicker or to cost.
	redrawEvery = 100 * time.Millisecond
	// maxHeld is how much may wait for the next turn; more is written at once, so
	// that a task that writes faster than the terminal waits for it.
	maxHeld = 256 << 10
)

// screen writes lines of several goroutines in order and, on a terminal, keeps a
// live region below them. One write a turn, over what was there and never after
// clearing it, keeps the region from flickering; the size is asked for in every
// turn, so that the region follows the window. Close it before anything else is
// written.
type screen struct {
	out, err io.Writer
	// same says that both are one terminal: one write serves both.
	same bool
	// region returns the lines of the live region; nil keeps none.
	region func(width, height int) []string

	mu       sync.Mutex
	farewell string

	held   []segment
	size   int
	closed bool
	// untold is why standard output took something not.
	untold error
	// shown are the lines of the region on the terminal.
	shown []string

	stop     chan struct{}
	done     chan struct{}
	closing  sync.Once
	undivert func()
}

// screenWriter is a screen as a writer of whole lines for standard error.
type screenWriter struct{ s *screen }

// Write implements io.Writer.
func (w screenWriter) Write(p []byte) (int, error) {
	w.s.add(true, bytes.Clone(p))
	return len(p), nil
}

// segment is text for one of the two streams.
type segment struct {
	toErr bool
	text  []byte
}

// errFirst orders segments by their stream.
func errFirst(a, b segment) int {
	switch {
	case a.toErr == b.toErr:
		return 0
	case a.toErr:
		return -1
	default:
		return 1
	}
}

// newScreen returns a running screen over the streams of a, through which log
// lines go until it is closed. region is used only if standard error is a
// terminal.
func (a *app) newScreen(region func(width, height int) []string) *screen {
	s := &screen{out: a.out, err: a.err, stop: make(chan struct{}), done: make(chan struct{})}
	s.undivert = func() { a.logs.divert(a.err) }
	out, errOut := a.out, a.err
	errFile, isTerminal := a.lively(errOut)
	if isTerminal {
		s.region = region
		outFile, alsoTerminal := terminal(out)
		s.same = alsoTerminal && sameFile(outFile, errFile)
	}
	a.logs.divert(screenWriter{s})
	go s.run()
	return s
}

func sameFile(a, b *os.File) bool {
	first, err := a.Stat()
	if err != nil {
		return false
	}
	second, err := b.Stat()
	return err == nil && os.SameFile(first, second)
}

func (s *screen) run() {
	defer close(s.done)
	tick := time.NewTicker(redrawEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.mu.Lock()
			s.flush(true)
			s.mu.Unlock()
		case <-s.stop:
			return
		}
	}
}

// setFarewell says what to write on standard error once nobody reads standard
// output any more.
func (s *screen) setFarewell(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.farewell = fmt.Sprintf(format, args...)
}

// printf adds a line for standard error.
func (s *screen) printf(format string, args ...any) {
	s.add(true, fmt.Appendf(nil, format+"\n", args...))
}

// add adds text that ends in a line's end.
func (s *screen) add(toErr bool, line []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.held); n > 0 && s.held[n-1].toErr == toErr {
		s.held[n-1].text = append(s.held[n-1].text, line...)
	} else {
		s.held = append(s.held, segment{toErr, line})
	}
	if s.size += len(line); s.size >= maxHeld {
		s.flush(true)
	}
}

// urgent writes a line for standard error at once, before what waits for standard
// output, of which there may be no reader. Where the screen still waits for one after
// patience it is written past it.
func (s *screen) urgent(line []byte, patience time.Duration) {
	var said atomic.Bool
	past := time.AfterFunc(patience, func() {
		if said.CompareAndSwap(false, true) {
			s.err.Write(line) // nobody is left to tell it to
		}
	})
	defer past.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || !said.CompareAndSwap(false, true) {
		return
	}
	s.held = append(s.held, segment{true, line})
	if !s.same {
		slices.SortStableFunc(s.held, errFirst)
	}
	s.flush(true)
}

// close writes what waits and removes the region, once: the end of a verb and a signal
// that does not wait for it may meet.
func (s *screen) close() {
	s.closing.Do(func() {
		s.undivert()
		close(s.stop)
		<-s.done
		s.mu.Lock()
		defer s.mu.Unlock()
		s.closed = true
		s.flush(false)
	})
}

// flush writes what waits and, if wanted, the region below it. s.mu is held. A
// terminal or file that takes nothing any more is nothing to stop a run for.
func (s *screen) flush(withRegion bool) {
	width, height := 80, 24
	var region []string
	if s.region != nil {
		width, height = terminalSize(s.err)
		if withRegion {
			region = fit(s.region(width, height), width, height)
		}
	}
	if len(s.held) == 0 && slices.Equal(region, s.shown) {
		return
	}
	var b bytes.Buffer
	s.toTop(&b, width)
	s.shown = region
	if !s.same && len(s.held) > 0 {
		if s.region != nil {
			b.WriteString("\x1b[J")
		}
		s.write(s.err, &b)
	}
	for _, seg := range s.held {
		if s.same {
			// What is left of the region behind a line goes with its end.
			b.Write(bytes.ReplaceAll(seg.text, []byte("\n"), []byte("\x1b[K\n")))
			continue
		}
		b.Write(seg.text)
		if seg.toErr {
			s.write(s.err, &b)
		} else if err := s.write(s.out, &b); err != nil {
			s.out, s.untold = io.Discard, err
			b.WriteString(s.farewell)
			s.write(s.err, &b)
		}
	}
	s.held, s.size = nil, 0
	for i, line := range region {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(line + "\x1b[K")
	}
	if s.region != nil {
		b.WriteString("\x1b[J")
	}
	s.write(s.err, &b)
}

// write writes what is in b. See flush about errors.
func (s *screen) write(w io.Writer, b *bytes.Buffer) (err error) {
	if b.Len() > 0 {
		_, err = w.Write(b.Bytes())
	}
	b.Reset()
	return err
}

// toTop moves the cursor to the first cell of the region. Lines that were drawn
// on a wider terminal take several rows now.
func (s *screen) toTop(b *bytes.Buffer, width int) {
	if s.region == nil || len(s.shown) == 0 {
		return
	}
	rows := 0
	for _, line := range s.shown {
		rows += max(1, (text.StringWidthWithoutEscSequences(line)+width-1)/width)
	}
	b.WriteByte('\r')
	if rows > 1 {
		fmt.Fprintf(b, "\x1b[%dA", rows-1)
	}
}

// fit cuts lines to the terminal: a line that touched the last column would
// wrap on some.
func fit(lines []string, width, height int) []string {
	lines = lines[:min(len(lines), max(height-1, 1))]
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = text.Snip(l, max(width-1, 1), "…")
		if out[i] != l && strings.Contains(l, "\x1b[") {
			out[i] += "\x1b[0m"
		}
	}
	return out
}
