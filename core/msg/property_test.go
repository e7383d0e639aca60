package msg_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"jobq/core/fault"
	"jobq/core/msg"
)

func drawRefs(t *rapid.T) *msg.Refs {
	var r msg.Refs
	for _, parent := range rapid.SliceOfDistinct(rapid.String(), rapid.ID).Draw(t, "parents") {
		ref := rapid.OneOf(
			rapid.Just(""), rapid.Just("blob:w/"+parent+".json"), rapid.Just(`{"a": [1, "é"]}`), rapid.Just("blob:w/x.json"),
		).Draw(t, "ref")
		r.Add("w", parent, ref)
	}
	if len(r.Canonical)+len(r.Literal)+len(r.None) == 0 {
		return nil
	}
	return &r
}

func TestTaskRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := msg.Task{
			ID: rapid.StringN(1, 20, -1).Draw(t, "id"), NumRetries: rapid.Int().Draw(t, "retries"),
			ReplyRequested: rapid.Bool().Draw(t, "reply"),
			Workflow:       "w", Name: rapid.StringN(1, 30, -1).Draw(t, "name"),
			Attempt: rapid.Uint32().Draw(t, "attempt"), Epoch: rapid.Uint64().Draw(t, "epoch"),
			Prefix: rapid.String().Draw(t, "prefix"), Inbox: rapid.String().Draw(t, "inbox"),
			TimeoutSeconds: rapid.Float64Range(0, 1e9).Draw(t, "timeout"),
			Upstream:       drawRefs(t),
		}
		if rapid.Bool().Draw(t, "some parent failed") {
			want.Statuses = map[string][]string{"failed": {"a", "é \"b\""}, "skipped": {"c"}}
		}
		for _, key := range rapid.SliceOfDistinct(rapid.StringMatching(`[a-zé"\\ ]*`), rapid.ID).Draw(t, "keys") {
			value := `"` + strings.Map(func(r rune) rune {
				if r < ' ' || r > '~' || r == '"' || r == '\\' {
					return -1
				}
				return r
			}, rapid.String().Draw(t, "value")) + `"`
			want.Kwargs = append(want.Kwargs, msg.Kwarg{Key: key, Value: json.RawMessage(value)})
		}
		body, err := msg.EncodeTask(want)
		if err != nil {
			t.Fatalf("EncodeTask: %v", err)
		}
		got, err := msg.DecodeTask(body)
		if err != nil {
			t.Fatalf("DecodeTask(%s): %v", body, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("round trip (-want +got):\n%s", diff)
		}
	})
}

func TestCompletionRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := msg.Completion{
			Workflow: rapid.StringN(1, 20, -1).Draw(t, "workflow"), Task: rapid.StringN(1, 20, -1).Draw(t, "task"),
			Success: rapid.Bool().Draw(t, "success"), OutputRef: rapid.String().Draw(t, "output"),
			Error: rapid.String().Draw(t, "error"), Attempt: rapid.Uint32().Draw(t, "attempt"),
			Signal: rapid.String().Draw(t, "signal"), Worker: rapid.String().Draw(t, "worker"),
			Start: rapid.Uint32().Draw(t, "start"), Log: rapid.String().Draw(t, "log"),
			StartedAt: time.UnixMilli(rapid.Int64Range(1, 1<<41).Draw(t, "started")).UTC(),
		}
		if rapid.Bool().Draw(t, "exited") {
			want.ExitCode = new(rapid.IntRange(0, 255).Draw(t, "code"))
		}
		body, err := msg.EncodeCompletion(want)
		if err != nil {
			t.Fatalf("EncodeCompletion: %v", err)
		}
		got, err := msg.DecodeInbox(body)
		if err != nil {
			t.Fatalf("DecodeInbox(%s): %v", body, err)
		}
		if diff := cmp.Diff(&want, got.Completion); diff != "" {
			t.Fatalf("round trip (-want +got):\n%s", diff)
		}
	})
}

func TestEscapeIsReversible(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[./~A-Za-z0-9_ -]{0,8}`)).Draw(t, "text")
		escaped := msg.Escape(text)
		if strings.Trim(escaped, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-~") != "" {
			t.Fatalf("Escape(%q) = %q holds other characters", text, escaped)
		}
		if escaped == "" || escaped[0] == '.' || escaped[len(escaped)-1] == '.' {
			t.Fatalf("Escape(%q) = %q is empty or has a dot at an end", text, escaped)
		}
		if back, err := msg.Unescape(escaped); err != nil || back != text {
			t.Fatalf("Unescape(%q) = %q, %v, want %q", escaped, back, err, text)
		}
	})
}

func TestUnescapeAcceptsOnlyWhatEscapeWrites(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringMatching(`[~A-F0-9a-f.x/]{0,6}`).Draw(t, "s")
		text, err := msg.Unescape(s)
		if err == nil && msg.Escape(text) != s {
			t.Fatalf("Unescape(%q) = %q, which Escape writes as %q", s, text, msg.Escape(text))
		}
		if err != nil && !fault.Is(err, fault.Invalid) {
			t.Fatalf("Unescape(%q) = %v, want invalid", s, err)
		}
	})
}

func TestMessageIDsDifferAndAreBounded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(rapid.StringMatching(`[ab/1v]{1,4}`), rapid.StringN(100, 256, 256))
		type send struct {
			Task    string
			Attempt uint32
			Kind    int
			N       uint64
		}
		draw := rapid.Custom(func(t *rapid.T) send {
			return send{
				name.Draw(t, "task"), rapid.Uint32Range(1, 3).Draw(t, "attempt"),
				rapid.IntRange(0, 2).Draw(t, "kind"), rapid.Uint64Range(1, 3).Draw(t, "n"),
			}
		})
		id := func(s send) string {
			switch s.Kind {
			case 1:
				return msg.ResendID("w", s.Task, s.Attempt, s.N)
			case 2:
				return msg.RepairID("w", s.Task, s.Attempt, s.N)
			default:
				return msg.FirstSendID("w", s.Task, s.Attempt)
			}
		}
		a, b := draw.Draw(t, "a"), draw.Draw(t, "b")
		if a.Kind == 0 {
			a.N = 0
		}
		if b.Kind == 0 {
			b.N = 0
		}
		if (id(a) == id(b)) != (a == b) {
			t.Fatalf("%+v has id %q, %+v has %q", a, id(a), b, id(b))
		}
		if len(id(a)) > 128 {
			t.Fatalf("%+v has an id of %d bytes", a, len(id(a)))
		}
	})
}
