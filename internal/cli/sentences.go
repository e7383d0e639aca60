package cli

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"strings"

	"jobq/internal/obs"
)

// sentences writes log records for people at a terminal, in the words of everything
// else that they read there: one line a record, which moves no cursor.
type sentences struct {
	to    io.Writer
	level slog.Level
	attrs []slog.Attr
}

var _ slog.Handler = sentences{}

// Enabled implements slog.Handler.
func (s sentences) Enabled(_ context.Context, l slog.Level) bool { return l >= s.level }

// WithAttrs implements slog.Handler.
func (s sentences) WithAttrs(attrs []slog.Attr) slog.Handler {
	s.attrs = slices.Concat(s.attrs, attrs)
	return s
}

// WithGroup implements slog.Handler. The names of groups are of no use to people.
func (s sentences) WithGroup(string) slog.Handler { return s }

// Handle implements slog.Handler.
func (s sentences) Handle(_ context.Context, r slog.Record) error {
	why := ""
	var about []string
	add := func(a slog.Attr) bool {
		switch value := a.Value.Resolve().String(); {
		case a.Key == obs.KeyError || a.Key == "because":
			why = ": " + brief(value)
		case value != "":
			about = append(about, strings.ReplaceAll(a.Key, "_", " ")+" "+brief(value))
		}
		return true
	}
	for _, a := range s.attrs {
		add(a)
	}
	r.Attrs(add)
	text := "jobq: " + line(r.Message)
	if len(about) > 0 {
		text += " (" + strings.Join(about, ", ") + ")"
	}
	_, err := io.WriteString(s.to, text+why+"\n")
	return err
}
