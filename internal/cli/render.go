package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"

	"jobq/core/fault"
	"jobq/internal/config"
)

// printJSON writes v as one line.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return unwritten(err)
	}
	return nil
}

// terminal returns the file behind w if that is a terminal.
func terminal(w io.Writer) (*os.File, bool) {
	f, ok := w.(*os.File)
	return f, ok && term.IsTerminal(int(f.Fd()))
}

// lively returns the file behind w if that is a terminal on which the cursor can be
// moved: some editors have one on which it cannot.
func (a *app) lively(w io.Writer) (*os.File, bool) {
	f, isTerminal := terminal(w)
	return f, isTerminal && a.env["TERM"] != "dumb"
}

// unwritten is an answer that standard output did not take.
func unwritten(err error) error {
	return fault.Wrap(fault.Unavailable, err, "the answer could not be written").
		WithRemedy("see that what standard output leads to can be written to")
}

// terminalInput is terminal for what is read.
func terminalInput(r io.Reader) (*os.File, bool) {
	f, ok := r.(*os.File)
	return f, ok && term.IsTerminal(int(f.Fd()))
}

// terminalSize returns width and height of the terminal behind w, or the bounds
// of a plain one.
func terminalSize(w io.Writer) (width, height int) {
	if f, ok := terminal(w); ok {
		if width, height, err := term.GetSize(int(f.Fd())); err == nil && width > 0 && height > 0 {
			return width, height
		}
	}
	return 80, 24
}

// colored reports whether w gets colours.
func (a *app) colored(w io.Writer) bool {
	switch a.values.Text(config.Color) {
	case "always":
		return true
	case "never":
		return false
	}
	_, isTerminal := terminal(w)
	return isTerminal && a.env["NO_COLOR"] == "" && a.env["TERM"] != "dumb"
}

// grid is a table without lines, for people and for awk.
type grid struct {
	table.Writer
	// first is the width of the first column, which names things.
	first int
}

func tableOf(header ...any) *grid {
	t := &grid{Writer: table.NewWriter()}
	t.AppendHeader(header)
	t.SetStyle(plainStyle())
	t.SuppressTrailingSpaces()
	return t
}

// add adds a row.
func (g *grid) add(row ...any) {
	g.first = max(g.first, text.StringWidth(fmt.Sprint(row[0])))
	g.AppendRow(row)
}

// leastName is the width to which the first column is cut at most.
const leastName = 24

// fit returns the lines of g for a terminal of that width: the first column gives
// way before the others are cut.
func (g *grid) fit(width int) []string {
	lines := strings.Split(g.Render(), "\n")
	widest := 0
	for _, l := range lines {
		widest = max(widest, text.StringWidth(l))
	}
	if over := widest - width; over > 0 && g.first > leastName {
		g.SetColumnConfigs([]table.ColumnConfig{{
			Number: 1, WidthMax: max(g.first-over, leastName),
			WidthMaxEnforcer: func(s string, most int) string { return text.Snip(s, most, "…") },
		}})
		lines = strings.Split(g.Render(), "\n")
	}
	for i := range lines {
		lines[i] = text.Snip(lines[i], width, "…")
	}
	return lines
}

func plainStyle() table.Style {
	s := table.StyleDefault
	s.Options = table.OptionsNoBordersAndSeparators
	s.Box.PaddingLeft, s.Box.PaddingRight = "", "  "
	s.Format.Header = text.FormatUpper
	return s
}

// printTable writes g. On a terminal each line fits its width, so that a row stays
// a line.
func printTable(w io.Writer, g *grid) error {
	lines := g.Render()
	if _, ok := terminal(w); ok {
		width, _ := terminalSize(w)
		lines = strings.Join(g.fit(width), "\n")
	}
	if _, err := fmt.Fprintln(w, lines); err != nil {
		return unwritten(err)
	}
	return nil
}

// plain keeps control characters of data away from terminals.
func plain(s string) string {
	clean := func(r rune) rune {
		switch {
		case r == '\t', r == '\r':
			return ' '
		case r != '\n' && unicode.IsControl(r):
			return unicode.ReplacementChar
		}
		return r
	}
	return strings.Map(clean, s)
}

// line is plain in one line.
func line(s string) string { return strings.ReplaceAll(plain(s), "\n", " ") }

// maxBrief is how many columns of a reason fit a line of progress or a table.
const maxBrief = 160

// brief writes the reason of a failure in one line that is not too long: of an
// error text of many lines the first and the last, which tell most.
func brief(reason string) string {
	rows := strings.Split(strings.TrimSpace(plain(reason)), "\n")
	text := rows[0]
	if last := strings.TrimSpace(rows[len(rows)-1]); len(rows) > 1 {
		text = strings.TrimSuffix(snipText(text, maxBrief/2), "…") + " … " + last
	}
	return snipText(text, maxBrief)
}

func snipText(s string, width int) string { return text.Snip(s, width, "…") }

// lasted writes how long a command ran.
func lasted(d time.Duration) string {
	if d < time.Millisecond {
		return "<1ms"
	}
	return seconds(d)
}

// age writes how long ago t was, with one or two units.
func age(now, t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return seconds(now.Sub(t).Truncate(time.Second))
}

// seconds writes d as people read it: "250ms", "2.50s", "41s", "3m20s", "5h04m", "2d03h".
func seconds(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d > 0 && d < time.Second:
		return fmt.Sprintf("%dms", max(d.Milliseconds(), 1))
	case d < 10*time.Second && d%time.Second != 0:
		return fmt.Sprintf("%.2fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%.0fs", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	default:
		return fmt.Sprintf("%dd%02dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
	}
}

// count writes n things.
func count(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// orDash writes "-" for nothing.
func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
