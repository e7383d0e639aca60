package sim

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
)

// historyLog writes log records of programs into the history.
type historyLog struct {
	w     *World
	p     *process
	attrs string
}

func (h historyLog) Enabled(context.Context, slog.Level) bool { return true }

func (h historyLog) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	r.Attrs(func(a slog.Attr) bool {
		fmt.Fprintf(&b, " %s=%v", a.Key, a.Value)
		return true
	})
	h.w.lines = append(h.w.lines, fmt.Sprintf("%12v  %-14s    .. %s%s%s", h.w.s.now, h.p.name, r.Message, h.attrs, b.String()))
	return nil
}

func (h historyLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	for _, a := range attrs {
		h.attrs += fmt.Sprintf(" %s=%v", a.Key, a.Value)
	}
	return h
}

func (h historyLog) WithGroup(string) slog.Handler { return h }
