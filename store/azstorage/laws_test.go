package azstorage_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"jobq/core/msg"
	"jobq/store/azstorage"
)

func TestEscapedDocumentsReadTheSame(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		body, err := json.Marshal(map[string]string{"text": text})
		if err != nil {
			t.Fatal(err)
		}
		escaped := azstorage.ASCII(body)
		for _, b := range escaped {
			if b > 127 {
				t.Fatalf("%q has a byte %#x", escaped, b)
			}
		}
		var want, got map[string]string
		if err := errors.Join(json.Unmarshal(body, &want), json.Unmarshal(escaped, &got)); err != nil || got["text"] != want["text"] {
			t.Fatalf("%q reads as %q, %v", escaped, got["text"], err)
		}
	})
}

func TestBlobNamesAreReversibleAndApart(t *testing.T) {
	t.Parallel()
	part := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", ".", "..", "a", "a.", "~", "~a", " ", `\`, "a/b", "//", "é", "%2F", "\x00", "\xff"}))
	rapid.Check(t, func(t *rapid.T) {
		name := strings.Join(rapid.SliceOfN(part, 1, 5).Draw(t, "parts"), "/")
		blob := azstorage.EncodePath(name)
		back, ok := azstorage.DecodePath(blob)
		if !ok || back != name {
			t.Fatalf("DecodePath(EncodePath(%q) = %q) = %q, %v", name, blob, back, ok)
		}
		if !utf8.ValidString(blob) || strings.Contains(blob, "//") || strings.HasPrefix(blob, "/") || strings.HasSuffix(blob, "/") || strings.HasSuffix(blob, ".") || strings.Contains(blob, "./") || strings.Contains(blob, `\`) {
			t.Fatalf("EncodePath(%q) = %q, which the service or a client changes", name, blob)
		}
	})
}

func TestOutputNamesAreThoseOfOrdinaryTasks(t *testing.T) {
	t.Parallel()
	for _, task := range []string{"prep", "prep/featurize", "step~1", "a b", "größe", "a#b?c", "v1.2"} {
		name := msg.CanonicalOutput("abc-1", task)
		if got := azstorage.EncodePath(name); got != name {
			t.Errorf("EncodePath(%q) = %q, want it as it is", name, got)
		}
	}
}

func TestTheSizeOfARequestIsKnownBefore(t *testing.T) {
	t.Parallel()
	var size int64
	s, err := azstorage.Open(t.Context(), azstorage.Options{
		Account: parse(t, scriptedAccount), Prefix: "Demo",
		Transport: transport(func(r *http.Request) (*http.Response, error) {
			size = r.ContentLength
			return answer{status: 201, body: "<QueueMessagesList></QueueMessagesList>"}.to(r)
		}).client(),
	})
	if err != nil {
		t.Fatal(err)
	}
	q := s.Queues.Queue("cpu")
	part := rapid.OneOf(rapid.StringOf(rapid.RuneFrom(nil, unicode.Letter, unicode.So)), rapid.SampledFrom([]string{`"`, "'", "&", "<", ">", "]]>", "\t", "\r\n", " ", "\u2028", "\ufffd", "\x7f", "\u0085"}))
	rapid.Check(t, func(rt *rapid.T) {
		text := strings.Join(rapid.SliceOf(part).Draw(rt, "parts"), "")
		if err := sendOne(t, q, text); err != nil {
			rt.Fatalf("Send of %q = error %v", text, err)
		}
		if want := azstorage.RequestSize(text); size != int64(want) {
			rt.Fatalf("the request for %q has %d bytes, foreseen were %d", text, size, want)
		}
	})
}

func TestPoisonFitsWhereItsMessageDid(t *testing.T) {
	t.Parallel()
	const limit = 131_584
	for name, ampersands := range map[string]int{
		"a request that is full":              17_872,
		"room for a part of the reason":       17_800,
		"room for all that a reason may have": 17_000,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := strings.Repeat("&", ampersands) + strings.Repeat("x", 60_000-ampersands)
			text := azstorage.PackPoison([]byte(body), strings.Repeat("&", 3000))
			if size := azstorage.RequestSize(text); size > limit {
				t.Errorf("the request has %d bytes, %d fit", size, limit)
			}
			kept, reason := azstorage.UnpackPoison(text)
			if string(kept) != body || (reason == "") != (ampersands == 17_872) {
				t.Errorf("the body is kept %v, with a reason of %d bytes", string(kept) == body, len(reason))
			}
		})
	}
}

func TestPoisonKeepsBodyAndReason(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		body := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "%%%", "{}", "{ }", `{"v":99}`, `{"a":"}"} `, `[1]`, `{"__poison_reason":"x"}`, "{"})).Draw(t, "body")
		reason := rapid.String().Draw(t, "reason")
		text := azstorage.PackPoison([]byte(body), reason)
		gotBody, gotReason := azstorage.UnpackPoison(text)
		if string(gotBody) != body || gotReason != strings.ToValidUTF8(reason, "\ufffd") {
			t.Fatalf("PackPoison(%q, %q) = %q, which reads as %q, %q", body, reason, text, gotBody, gotReason)
		}
	})
}

func TestAReasonNeverCostsTheBody(t *testing.T) {
	t.Parallel()
	for _, size := range []int{60_000, 65_000, 65_500, 65_535, 65_536} {
		body := `{"pad":"` + strings.Repeat("x", size-10) + `"}`
		text := azstorage.PackPoison([]byte(body), strings.Repeat("why ", 1000))
		got, reason := azstorage.UnpackPoison(text)
		if len(text) > 65_536 || string(got) != body {
			t.Errorf("a body of %d bytes became a text of %d bytes and %d bytes of body", size, len(text), len(got))
		}
		if size <= 65_000 && reason == "" {
			t.Errorf("a body of %d bytes left no room for a reason", size)
		}
	}
}

func TestPointersSortNewestFirstThenByDescendingID(t *testing.T) {
	t.Parallel()
	type place struct {
		created time.Time
		wf      string
	}
	places := rapid.Custom(func(t *rapid.T) place {
		at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(rapid.IntRange(-3, 3).Draw(t, "created")) * 100 * time.Nanosecond)
		return place{at, rapid.OneOf(rapid.String(), rapid.StringOfN(rapid.SampledFrom([]rune("ab.~")), 1, 4, -1)).Draw(t, "wf")}
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := places.Draw(t, "a"), places.Draw(t, "b")
		want := cmp.Or(b.created.Compare(a.created), strings.Compare(b.wf, a.wf))
		if got := strings.Compare(azstorage.PointerKey(a.created, a.wf), azstorage.PointerKey(b.created, b.wf)); got != want {
			t.Fatalf("keys of %v and %v compare %d, want %d", a, b, got, want)
		}
	})
	if a, b := azstorage.PointerKey(time.Time{}, "z"), azstorage.PointerKey(time.Unix(1, 0), "a"); a < b {
		t.Error("a row without a time sorts before one with a time")
	}
}

func TestShardsAreThoseOfAi4sJobq(t *testing.T) {
	t.Parallel()
	for wf, want := range map[string]string{"": "wf-00", "a": "wf-01", "ab": "wf-03", "abc-123": "wf-09", "ü": "wf-0c"} {
		if got := azstorage.Shard("wf", wf); got != want {
			t.Errorf("Shard(%q) = %q, want %q", wf, got, want)
		}
	}
}
