package cli

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"jobq/core/fault"
	"jobq/core/state"
)

func TestSplitPlace(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		args  string
		place string
		rest  string
	}{
		"no place":                        {"list --json", "", "list --json"},
		"in front of the verb":            {"acct/Proj list", "acct/Proj", "list"},
		"after workflow":                  {"workflow acct/Proj status w1", "acct/Proj", "status w1"},
		"workflow alone":                  {"workflow list", "", "list"},
		"a second workflow is a verb":     {"workflow workflow", "", "workflow"},
		"flags in front":                  {"-v --home /a/b acct/Proj list", "acct/Proj", "-v --home /a/b list"},
		"a flag with its value in one":    {"--home=/a/b list", "", "--home=/a/b list"},
		"what follows the verb is its":    {"run dir/file.yaml", "", "run dir/file.yaml"},
		"a namespace of Service Bus":      {"sb://ns/cpu worker", "sb://ns/cpu", "worker"},
		"help needs no verb":              {"acct/Proj --help", "acct/Proj", "--help"},
		"two dashes end what stands here": {"-- list", "", "-- list"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			place, rest, err := splitPlace(strings.Fields(tc.args))
			if err != nil || place != tc.place || strings.Join(rest, " ") != tc.rest {
				t.Errorf("splitPlace(%q) = %q, %q, %v, want %q, %q", tc.args, place, rest, err, tc.place, tc.rest)
			}
		})
	}
}

func TestParsePlace(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]string{
		"local/default": {"local", "default"}, "acct/Proj": {"acct", "Proj"}, "sb://ns/cpu": {"sb://ns", "cpu"},
	} {
		storage, name, err := parsePlace("it", "PREFIX", text)
		if err != nil || storage != want[0] || name != want[1] {
			t.Errorf("parsePlace(%q) = %q, %q, %v, want %q", text, storage, name, err, want)
		}
	}
	for _, text := range []string{"", "default", "/default", "local/", "a/b/c", "https://x/y", "UseDevelopmentStorage=true/x", "a;b/c", "sb://ns"} {
		if storage, name, err := parsePlace("it", "PREFIX", text); !fault.Is(err, fault.Invalid) {
			t.Errorf("parsePlace(%q) = %q, %q, %v, want an error of code invalid", text, storage, name, err)
		}
	}
}

func TestTame(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ line, want string }{
		"plain text passes":               {"100 % done ü", "100 % done ü"},
		"colours pass and end":            {"\x1b[31mred\x1b[0m", "\x1b[31mred\x1b[0m\x1b[0m"},
		"the cursor is not moved":         {"a\x1b[2Jb\x1b[10;1Hc", "a[2Jb[10;1Hc\x1b[0m"},
		"of a progress bar the last":      {"10%\r20%\r30%", "30%"},
		"a carriage return before the LF": {"windows\r", "windows"},
		"an unfinished sequence":          {"x\x1b[31", "x[31\x1b[0m"},
		"controls of eight bits":          {"a\u009b2Jb\x9b2Jc\x7fd", "a2Jb\uFFFD2Jcd\x1b[0m"},
		"a tab stays":                     {"a\tb", "a\tb\x1b[0m"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := tame(tc.line); got != tc.want {
				t.Errorf("tame(%q) = %q, want %q", tc.line, got, tc.want)
			}
		})
	}
}

func TestSeconds(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 0: "0s", time.Microsecond: "1ms", 250 * time.Millisecond: "250ms", 2500 * time.Millisecond: "2.50s",
		41 * time.Second: "41s", 200 * time.Second: "3m20s", 5*time.Hour + 4*time.Minute: "5h04m", 51 * time.Hour: "2d03h",
	} {
		if got := seconds(d); got != want {
			t.Errorf("seconds(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestShellQuote(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{"w1": "w1", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "local/default": "local/default", "$HOME": "'$HOME'"} {
		if got := shellQuote(word); got != want {
			t.Errorf("shellQuote(%q) = %s, want %s", word, got, want)
		}
	}
}

// TestErrorsSayWhatWhereAndWhatNext pins the form of every message.
func TestErrorsSayWhatWhereAndWhatNext(t *testing.T) {
	t.Parallel()
	var stderr strings.Builder
	a := &app{err: &stderr, where: "local/default in /home/me"}
	err := errors.Join(
		fault.New(fault.NotFound, "workflow a\x1b[2J does not exist").WithRemedy("look at the list"),
		errors.Join(fault.New(fault.Conflict, "workflow b\nis being run")),
	)
	if code := a.finish(t.Context(), "purge", err); code != exitNotFound {
		t.Errorf("finish = %d, want the code of the first error", code)
	}
	want := "jobq purge: workflow a\ufffd[2J does not exist\n  and: workflow b\n  is being run\n  where: local/default in /home/me\n  next: look at the list\n"
	if diff := cmp.Diff(want, stderr.String()); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
}

func TestViewOfManyGroupsShowsWhereSomethingGoesOn(t *testing.T) {
	t.Parallel()
	s := snapshot{total: 40, left: -1}
	for i := range 10 {
		g := groupCounts{name: string(rune('a' + i)), counts: state.Counts{Completed: 4}}
		switch i {
		case 7:
			g.counts, g.active = state.Counts{Running: 1, Ready: 1, Pending: 2}, 1
		case 9:
			g.counts = state.Counts{Pending: 4}
		}
		s.groups = append(s.groups, g)
	}
	got := groupLines(s, 4, false)
	want := []string{
		"  a [==========] 4/4",
		"  h [          ] 0/4  1 running  1 queued",
		"  j [          ] 0/4",
		"  … and 7 more groups",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("groupLines (-want +got):\n%s", diff)
	}
	if got := groupLines(s, 1, false); got != nil {
		t.Errorf("groupLines in one line = %q, want none", got)
	}
}

// TestANarrowTerminalCutsNames holds that a long name does not push the other
// columns off the screen.
func TestANarrowTerminalCutsNames(t *testing.T) {
	t.Parallel()
	g := tableOf("task", "status", "attempts", "time")
	g.add(strings.Repeat("n", 60), "completed", "1", "2.50s")
	g.add("short", "upstream_failed", "-", "-")
	want := []string{
		"TASK" + strings.Repeat(" ", 42) + "  STATUS           ATTEMPTS  TIME",
		strings.Repeat("n", 45) + "…  completed        1         2.50s",
		"short" + strings.Repeat(" ", 41) + "  upstream_failed  -         -",
	}
	got := g.fit(80)
	for i, l := range got {
		got[i] = strings.TrimRight(l, " ")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fit(80) (-want +got):\n%s", diff)
	}
	for _, l := range g.fit(30) {
		if len([]rune(l)) > 30 {
			t.Errorf("fit(30) has the line %q", l)
		}
	}
}
