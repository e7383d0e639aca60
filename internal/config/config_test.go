package config

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"jobq/core/fault"
)

var update = flag.Bool("update", false, "rewrite generated files")

func TestEverySettingIsComplete(t *testing.T) {
	t.Parallel()
	names, variables, flags := map[string]bool{}, map[string]bool{}, map[string]string{}
	for _, s := range Settings() {
		if !regexp.MustCompile(`^[a-z][a-z-]*[a-z]$`).MatchString(s.Name) || names[s.Name] {
			t.Errorf("setting %q: the name repeats or has another form than words with hyphens", s.Name)
		}
		names[s.Name] = true
		if len(s.Env) == 0 {
			t.Errorf("setting %s has no environment variable", s.Name)
		}
		for _, e := range s.Env {
			if !strings.HasPrefix(e, "JOBQ_") || variables[e] {
				t.Errorf("setting %s: variable %q repeats or does not begin with JOBQ_", s.Name, e)
			}
			variables[e] = true
		}
		if len(s.Verbs)+len(s.Readers) == 0 {
			t.Errorf("setting %s is used by no verb", s.Name)
		}
		if !strings.HasSuffix(s.Doc, ".") || strings.ContainsAny(s.Doc, "\t\n|") {
			t.Errorf("setting %s: %q is not one sentence that fits a table", s.Name, s.Doc)
		}
		if _, err := s.check(s.Default); err != nil {
			t.Errorf("setting %s: its default: %v", s.Name, err)
		}
		for verb, text := range s.Defaults {
			if _, err := s.check(text); err != nil || !s.UsedBy(verb) {
				t.Errorf("setting %s: its default for %s: %v", s.Name, verb, err)
			}
		}
		for _, v := range s.Verbs {
			if other, taken := flags[v+" "+s.Letter]; s.Letter != "" && taken {
				t.Errorf("settings %s and %s share -%s of %s", s.Name, other, s.Letter, v)
			}
			flags[v+" "+s.Letter] = s.Name
		}
	}
}

// TestTheSeedsKnobsAreThere pins names and defaults that users brought along.
func TestTheSeedsKnobsAreThere(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"JOBQ_COMPLETION_BATCH_SIZE":                "32",
		"JOBQ_COMPLETION_VISIBILITY_TIMEOUT_S":      "60",
		"JOBQ_COORDINATOR_IDLE_SLEEP_S":             "0.5",
		"JOBQ_COORDINATOR_CANCEL_POLL_INTERVAL_S":   "1.0",
		"JOBQ_COORDINATOR_FLUSH_RETRY_LIMIT":        "2",
		"JOBQ_COORDINATOR_READY_SWEEP_INTERVAL_S":   "60",
		"JOBQ_COORDINATOR_READY_REPAIR_THRESHOLD_S": "300",
		"JOBQ_CANCEL_POLL_INTERVAL":                 "30",
		"JOBQ_MAX_IDLE_BACKOFF":                     "30",
		"JOBQ_COMPLETION_SEND_MAX_ATTEMPTS":         "5",
		"JOBQ_KILL_TIMEOUT":                         "600",
		"JOBQ_WORKFLOW_QUEUES":                      "",
		"JOBQ_WORKFLOW_BLOBS":                       "",
		"JOBQ_QUEUE":                                "",
		"JOBQ_HTTP_POOL_SIZE":                       "100",
	}
	got := map[string]string{}
	for _, s := range Settings() {
		for _, e := range s.Env {
			text, asked := want[e]
			if !asked {
				continue
			}
			got[e] = s.Default
			// The seed writes seconds; a default with its unit is the same value.
			theirs, err := s.check(text)
			if ours, bad := s.check(s.Default); err == nil && bad == nil && ours == theirs {
				got[e] = text
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("defaults of the seed's variables (-want +got):\n%s", diff)
	}
}

func TestDocumentIsCurrent(t *testing.T) {
	t.Parallel()
	path := filepath.Join("..", "..", "docs", "config.md")
	if *update {
		if err := os.WriteFile(path, []byte(Markdown()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Markdown(), string(got)); diff != "" {
		t.Errorf("docs/config.md is not what the table says; run `make gen` (-table +file):\n%s", diff)
	}
}

func TestWhereAValueComesFrom(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		env, flags       map[string]string
		wantText, source string
	}{
		"nobody set it":                       {nil, nil, "32", FromDefault},
		"the variable of the user's document": {map[string]string{"JOBQ_COMPLETION_BATCH_SIZE": "7"}, nil, "7", "JOBQ_COMPLETION_BATCH_SIZE"},
		"the other spelling":                  {map[string]string{"JOBQ_COORDINATOR_BATCH_SIZE": "8"}, nil, "8", "JOBQ_COORDINATOR_BATCH_SIZE"},
		"the first spelling wins": {map[string]string{"JOBQ_COORDINATOR_BATCH_SIZE": "8", "JOBQ_COMPLETION_BATCH_SIZE": "7"}, nil,
			"7", "JOBQ_COMPLETION_BATCH_SIZE"},
		"an empty variable is none":  {map[string]string{"JOBQ_COMPLETION_BATCH_SIZE": ""}, nil, "32", FromDefault},
		"the flag wins over all":     {map[string]string{"JOBQ_COMPLETION_BATCH_SIZE": "7"}, map[string]string{BatchSize: "9"}, "9", "--batch-size"},
		"another setting is no flag": {nil, map[string]string{Slots: "9"}, "32", FromDefault},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, err := Resolve("coordinator", lookup(tc.env), tc.flags)
			if err != nil {
				t.Fatal(err)
			}
			if got := v.Get(BatchSize); got.Text != tc.wantText || got.Source != tc.source {
				t.Errorf("batch-size = %q from %s, want %q from %s", got.Text, got.Source, tc.wantText, tc.source)
			}
		})
	}
}

func TestEveryWrongSettingIsNamed(t *testing.T) {
	t.Parallel()
	env := map[string]string{
		"JOBQ_COMPLETION_BATCH_SIZE":    "many",
		"JOBQ_COORDINATOR_IDLE_SLEEP_S": "-1",
		"JOBQ_KILL_TIMEOUT":             "not read by this verb",
	}
	v, err := Resolve("coordinator", lookup(env), map[string]string{FlushRetryLimit: "0"})
	if !fault.Is(err, fault.Invalid) {
		t.Fatalf("Resolve = %v, want an error of code invalid", err)
	}
	for _, part := range []string{"JOBQ_COMPLETION_BATCH_SIZE", "JOBQ_COORDINATOR_IDLE_SLEEP_S", "--flush-retry-limit"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not name %s: %v", part, err)
		}
	}
	if strings.Contains(err.Error(), "JOBQ_KILL_TIMEOUT") {
		t.Errorf("the error names a setting that the verb does not use: %v", err)
	}
	if got := v.Int(BatchSize); got != 32 {
		t.Errorf("batch-size = %d, want the default where the value is wrong", got)
	}
}

func TestParseDuration(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"0": 0, "30": 30 * time.Second, "0.5": 500 * time.Millisecond, "90s": 90 * time.Second, "5m": 5 * time.Minute,
		"1h30m": 90 * time.Minute, "1d": 24 * time.Hour, "1w": 168 * time.Hour, "1d12h": 36 * time.Hour, "250ms": 250 * time.Millisecond,
		"1.5d": 36 * time.Hour,
	} {
		if got, err := ParseDuration(text); err != nil || got != want {
			t.Errorf("ParseDuration(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "-1", "-5m", "5 m", "m", "1y", "NaN", "Inf", "1e300", "99999999w", "5m-", "1h 30m", "1m1"} {
		if got, err := ParseDuration(text); !fault.Is(err, fault.Invalid) {
			t.Errorf("ParseDuration(%q) = %v, %v, want an error of code invalid", text, got, err)
		}
	}
}

func TestParseSize(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"0": 0, "1024": 1024, "5B": 5, "512KiB": 512 << 10, "64MiB": 64 << 20, "2 GiB": 2 << 30} {
		if got, err := ParseSize(text); err != nil || got != want {
			t.Errorf("ParseSize(%q) = %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "-1", "1.5MiB", "MiB", "5MB", "9999999999GiB"} {
		if got, err := ParseSize(text); !fault.Is(err, fault.Invalid) {
			t.Errorf("ParseSize(%q) = %d, %v, want an error of code invalid", text, got, err)
		}
	}
}

func TestSettingsOfEveryKindAreUsed(t *testing.T) {
	t.Parallel()
	var kinds []Kind
	for _, s := range Settings() {
		if !slices.Contains(kinds, s.Kind) {
			kinds = append(kinds, s.Kind)
		}
	}
	if len(kinds) != 5 {
		t.Errorf("the table has %d kinds, want all of text, bool, number, duration and size", len(kinds))
	}
}

func lookup(env map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		v, ok := env[name]
		return v, ok
	}
}

func TestAVerbMayHaveADefaultOfItsOwn(t *testing.T) {
	t.Parallel()
	unset := func(string) (string, bool) { return "", false }
	set := func(name string) (string, bool) { return "77", name == "JOBQ_KILL_TIMEOUT" }
	for _, tc := range []struct {
		verb   string
		lookup func(string) (string, bool)
		want   time.Duration
	}{
		{"run", unset, 10 * time.Second}, {"worker", unset, 10 * time.Minute}, {"run", set, 77 * time.Second}, {"worker", set, 77 * time.Second},
	} {
		v, err := Resolve(tc.verb, tc.lookup, nil)
		if got := v.Duration(KillTimeout); err != nil || got != tc.want {
			t.Errorf("%s: kill timeout = %v, %v, want %v", tc.verb, got, err, tc.want)
		}
	}
}
