package obs

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"regexp"
	"testing"
)

func TestLevel(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		base      slog.Level
		verbosity int
		quiet     bool
		want      slog.Level
	}{
		"a command warns":            {slog.LevelWarn, 0, false, slog.LevelWarn},
		"-v tells what happens":      {slog.LevelWarn, 1, false, slog.LevelInfo},
		"-vv tells every step":       {slog.LevelWarn, 2, false, slog.LevelDebug},
		"there is nothing below":     {slog.LevelWarn, 9, false, slog.LevelDebug},
		"a service tells by itself":  {slog.LevelInfo, 0, false, slog.LevelInfo},
		"quiet leaves errors":        {slog.LevelInfo, 0, true, slog.LevelError},
		"quiet wins over verbose":    {slog.LevelInfo, 2, true, slog.LevelError},
		"a verbose service goes low": {slog.LevelInfo, 1, false, slog.LevelDebug},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Level(tc.base, tc.verbosity, tc.quiet); got != tc.want {
				t.Errorf("Level(%v, %d, %t) = %v, want %v", tc.base, tc.verbosity, tc.quiet, got, tc.want)
			}
		})
	}
}

func TestLinesHaveTheirTimeInUTC(t *testing.T) {
	t.Parallel()
	var text, object bytes.Buffer
	NewLogger(&text, Options{}).Info("message not read", KeyQueue, "cpu")
	NewLogger(&object, Options{JSON: true}).Info("message not read", KeyQueue, "cpu")

	form := regexp.MustCompile(`^time=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z level=INFO msg="message not read" queue=cpu\n$`)
	if !form.MatchString(text.String()) {
		t.Errorf("text line = %q", text.String())
	}
	var line struct{ Time, Level, Msg, Queue string }
	if err := json.Unmarshal(object.Bytes(), &line); err != nil {
		t.Fatalf("JSON line %q: %v", object.String(), err)
	}
	if !regexp.MustCompile(`Z$`).MatchString(line.Time) || line.Queue != "cpu" {
		t.Errorf("JSON line = %+v", line)
	}
}
