package local

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestPathOf(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		stream string
		folds  bool
		want   string
	}{
		"plain names stay readable":      {"run-1/Align_reads.2/1.1", false, "run-1/Align_reads.2/1.1.log"},
		"a slash in a task is a folder":  {"w/a/b/1.1", false, "w/a/b/1.1.log"},
		"nothing climbs":                 {"w/../1.1", false, "w/%2E./1.1.log"},
		"nothing is hidden":              {".profile", false, "%2Eprofile.log"},
		"blanks and percents":            {"a b%20", false, "a%20b%2520.log"},
		"an empty segment":               {"a//b", false, "a/%/b.log"},
		"a folder is never like a file":  {"a.log/b", false, "a.lo%67/b.log"},
		"letters of all languages":       {"日本/é", false, "日本/é.log"},
		"case where it is folded":        {"Aé", true, "%41%C3%A9.log"},
		"bytes that are no text":         {"a\xff", false, "a%FF.log"},
		"long segments go on in folders": {strings.Repeat("x", 256), false, strings.Repeat("x", 200) + "%+/" + strings.Repeat("x", 56) + ".log"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := pathOf(tc.stream, tc.folds)
			if got != tc.want {
				t.Errorf("pathOf(%q, %v) = %q, want %q", tc.stream, tc.folds, got, tc.want)
			}
			if back, ok := nameOf(got); !ok || back != tc.stream {
				t.Errorf("nameOf(%q) = %q, %v, want %q", got, back, ok, tc.stream)
			}
		})
	}
}

func TestForeignFilesHaveNoName(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"a", "a.txt", "a%2.log", "a%zz.log", "%e9.log", "a%+.log"} {
		if name, ok := nameOf(path); ok {
			t.Errorf("nameOf(%q) = %q, want no name", path, name)
		}
	}
}

func TestPathsUndoAndNeverMeet(t *testing.T) {
	t.Parallel()
	text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[aA.%/+ g-]{0,12}(\.log)?`), rapid.StringOfN(rapid.SampledFrom([]rune("é/. %x")), 0, 600, -1))
	rapid.Check(t, func(t *rapid.T) {
		a, b, folds := text.Draw(t, "a"), text.Draw(t, "b"), rapid.Bool().Draw(t, "folds")
		pa, pb := pathOf(a, folds), pathOf(b, folds)
		if back, ok := nameOf(pa); !ok || back != a {
			t.Fatalf("nameOf(pathOf(%q)) = %q, %v by way of %q", a, back, ok, pa)
		}
		if a != b && (pa == pb || strings.HasPrefix(pb, pa+"/")) {
			t.Fatalf("the streams %q and %q meet at %q and %q", a, b, pa, pb)
		}
		if folds && a != b && strings.EqualFold(pa, pb) {
			t.Fatalf("the streams %q and %q meet where case is folded: %q and %q", a, b, pa, pb)
		}
		for segment := range strings.SplitSeq(pa, "/") {
			if segment == "" || segment == "." || segment == ".." || len(segment) > 255 {
				t.Fatalf("pathOf(%q) = %q has a segment that no file system takes", a, pa)
			}
		}
	})
}
