package obs

import (
	"io"
	"log/slog"
)

// The attribute keys of log lines.
const (
	KeyError    = "error"
	KeyWorkflow = "workflow"
	KeyTask     = "task"
	KeyAttempt  = "attempt"
	KeyStart    = "start"
	KeyQueue    = "queue"
	KeyPrefix   = "prefix"
	KeyWorker   = "worker"
	KeyPID      = "pid"
	KeyVersion  = "version"
)

// Options say how a logger writes.
type Options struct {
	// Level is the lowest level that is written; the zero value is Info.
	Level slog.Level
	// JSON writes one object a line instead of text.
	JSON bool
}

// NewLogger returns a logger that writes to w, with times in UTC to the
// millisecond.
func NewLogger(w io.Writer, o Options) *slog.Logger {
	handler := &slog.HandlerOptions{Level: o.Level, ReplaceAttr: utc}
	if o.JSON {
		return slog.New(slog.NewJSONHandler(w, handler))
	}
	return slog.New(slog.NewTextHandler(w, handler))
}

// Level returns the lowest level that a program writes which normally writes
// from base on: each verbosity adds a level, quiet leaves errors alone.
func Level(base slog.Level, verbosity int, quiet bool) slog.Level {
	if quiet {
		return slog.LevelError
	}
	const step = slog.LevelInfo - slog.LevelDebug
	return max(base-slog.Level(verbosity)*step, slog.LevelDebug)
}

func utc(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey {
		return slog.String(slog.TimeKey, a.Value.Time().UTC().Format("2006-01-02T15:04:05.000Z"))
	}
	return a
}
