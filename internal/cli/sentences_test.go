package cli

import (
	"bytes"
	"errors"
	"log/slog"
	"testing"
)

func TestSentences(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		log  func(*slog.Logger)
		want string
	}{
		"an error": {
			func(l *slog.Logger) {
				l.With("workflow", "w1", "task", "a").Warn("beat failed", "run_id", 7, "error", errors.New("the disk is full"))
			},
			"jobq: beat failed (workflow w1, task a, run id 7): the disk is full\n",
		},
		"nothing but a message": {func(l *slog.Logger) { l.Error("it is so") }, "jobq: it is so\n"},
		"what is empty":         {func(l *slog.Logger) { l.Warn("it is so", "task", "") }, "jobq: it is so\n"},
		"a group":               {func(l *slog.Logger) { l.WithGroup("g").Warn("it is so", "n", 1) }, "jobq: it is so (n 1)\n"},
		"what moves the cursor": {
			func(l *slog.Logger) { l.Warn("a\nb", "error", errors.New("c\x1b[2J\rd\ne")) },
			"jobq: a b: c\uFFFD[2J d … e\n",
		},
		"below the level": {func(l *slog.Logger) { l.Info("it is so") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b bytes.Buffer
			tc.log(slog.New(sentences{to: &b, level: slog.LevelWarn}))
			if got := b.String(); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
