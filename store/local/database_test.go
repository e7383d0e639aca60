package local

import "testing"

func TestBelow(t *testing.T) {
	t.Parallel()
	for prefix, want := range map[string]string{"a": "b", "w/": "w0", "a\xff\xff": "b", "\uFFFD": "\xef\xbf\xbe", "é": "\xc3\xaa"} {
		if from, to := below(prefix); from != prefix || to != want {
			t.Errorf("below(%q) = %q, %q, want an end of %q", prefix, from, to, want)
		}
	}
	for _, prefix := range []string{"", "\xff"} {
		if _, to := below(prefix); to == nil || len(to.([]byte)) != 0 {
			t.Errorf("below(%q) ends at %v, want the empty blob, which is above all texts", prefix, to)
		}
	}
}
