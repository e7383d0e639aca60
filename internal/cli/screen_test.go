package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// display is the least terminal that shows what a screen draws: 80 columns, no
// scrolling, the sequences that screen.go uses.
type display struct {
	rows     []string
	row, col int
}

func (t *display) Write(p []byte) (int, error) {
	s := string(p)
	for s != "" {
		var n int
		switch {
		case strings.HasPrefix(s, "\x1b[K"):
			t.cut(t.row)
			s = s[3:]
		case strings.HasPrefix(s, "\x1b[J"):
			t.cut(t.row)
			t.rows = t.rows[:t.row+1]
			s = s[3:]
		case s[0] == '\r':
			t.col, s = 0, s[1:]
		case s[0] == '\n':
			t.row, t.col, s = t.row+1, 0, s[1:]
			t.grow()
		case scan(s, &n):
			t.row -= n
			s = s[strings.IndexByte(s, 'A')+1:]
		default:
			t.put(s[0])
			s = s[1:]
		}
	}
	return len(p), nil
}

func scan(s string, n *int) bool {
	got, err := fmt.Sscanf(s, "\x1b[%dA", n)
	return err == nil && got == 1
}

func (t *display) grow() {
	for len(t.rows) <= t.row {
		t.rows = append(t.rows, "")
	}
}

func (t *display) cut(row int) {
	t.grow()
	t.rows[row] = t.rows[row][:min(t.col, len(t.rows[row]))]
}

func (t *display) put(c byte) {
	if t.col == 80 {
		t.row, t.col = t.row+1, 0
	}
	t.grow()
	line := []byte(t.rows[t.row])
	for len(line) <= t.col {
		line = append(line, ' ')
	}
	line[t.col] = c
	t.rows[t.row] = string(line)
	t.col++
}

func TestScreenKeepsTheRegionBelowTheLines(t *testing.T) {
	t.Parallel()
	shown := &display{}
	region := []string{"first", "second"}
	s := &screen{out: shown, err: shown, same: true, undivert: func() {}, region: func(int, int) []string { return region }}
	draw := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.flush(true)
	}
	draw()
	s.add(false, []byte("a line of a task\n"))
	s.add(true, []byte("trouble\n"))
	draw()
	want := []string{"a line of a task", "trouble", "first", "second"}
	if diff := cmp.Diff(want, shown.rows); diff != "" {
		t.Errorf("after two lines (-want +got):\n%s", diff)
	}
	region = []string{"less"}
	s.add(false, []byte(strings.Repeat("x", 100)+"\n"))
	draw()
	want = []string{"a line of a task", "trouble", strings.Repeat("x", 80), strings.Repeat("x", 20), "less"}
	if diff := cmp.Diff(want, shown.rows); diff != "" {
		t.Errorf("after a long line and a smaller region (-want +got):\n%s", diff)
	}
	s.mu.Lock()
	s.flush(false)
	s.mu.Unlock()
	want[4] = ""
	if diff := cmp.Diff(want, shown.rows); diff != "" {
		t.Errorf("at the end (-want +got):\n%s", diff)
	}
}

func TestScreenWritesNothingTwice(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	a := &app{out: &out, err: &errs}
	s := a.newScreen(func(int, int) []string { return []string{"not shown: this is no terminal"} })
	for i := range 1000 {
		s.add(i%2 == 0, fmt.Appendf(nil, "%d\n", i))
	}
	s.close()
	for name, got := range map[string]string{"stdout": out.String(), "stderr": errs.String()} {
		lines := strings.Fields(got)
		if len(lines) != 500 || strings.Contains(got, "\x1b") {
			t.Errorf("%s has %d lines, want 500 without control sequences", name, len(lines))
		}
	}
}

func TestAnUrgentLineIsWrittenBeforeWhatStandardOutputGets(t *testing.T) {
	t.Parallel()
	var both bytes.Buffer
	for name, tc := range map[string]struct {
		same bool
		want string
	}{
		"two streams": {false, "first\nurgent\nout\n"},
		"a terminal":  {true, "first\nout\nurgent\n"},
	} {
		both.Reset()
		s := &screen{out: &both, err: &both, same: tc.same}
		s.add(true, []byte("first\n"))
		s.add(false, []byte("out\n"))
		s.urgent([]byte("urgent\n"), time.Minute)
		if got := strings.ReplaceAll(both.String(), "\x1b[K", ""); got != tc.want {
			t.Errorf("%s: written was %q, want %q", name, got, tc.want)
		}
		s.closed = true
		s.urgent([]byte("late\n"), time.Minute)
		if strings.Contains(both.String(), "late") {
			t.Errorf("%s: a closed screen writes %q", name, both.String())
		}
	}
}

func TestFitCutsToTheTerminal(t *testing.T) {
	t.Parallel()
	got := fit([]string{"short", strings.Repeat("é", 30), "gone"}, 10, 3)
	want := []string{"short", strings.Repeat("é", 8) + "…"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fit to 10x3 (-want +got):\n%s", diff)
	}
}
