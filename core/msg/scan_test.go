package msg_test

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"jobq/core/msg"
)

// within puts text, byte for byte, into the place that it has in a message: 0 is
// the message itself, 1 its kwargs, 2 the report in them.
func within(level int, text string) []byte {
	switch level {
	case 0:
		return []byte(text)
	case 1:
		return []byte(`{"version": 1, "kwargs": ` + quoted(text) + `}`)
	default:
		return within(1, `{"__completion_body": `+quoted(text)+`}`)
	}
}

func quoted(s string) string {
	var b strings.Builder
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ':
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			b.WriteByte(c)
		}
	}
	return `"` + b.String() + `"`
}

// agrees holds that the scanner reads body as encoding/json does, or leaves it
// alone. It returns whether the scanner read it.
func agrees(tb testing.TB, body []byte) bool {
	tb.Helper()
	before := bytes.Clone(body)
	got, ok := msg.ScanCompletion(body)
	if !bytes.Equal(body, before) {
		tb.Fatalf("ScanCompletion changed %q to %q", before, body)
	}
	want, err := msg.DecodeInboxAsJSON(body)
	if ok && (err != nil || !reflect.DeepEqual(got, want.Completion)) {
		tb.Fatalf("%q: the scanner reads %+v, encoding/json %+v, %v", body, got, want.Completion, err)
	}
	in, again := msg.DecodeInbox(body)
	if (again == nil) != (err == nil) || err != nil && again.Error() != err.Error() || !reflect.DeepEqual(in, want) {
		tb.Fatalf("%q: DecodeInbox reads %+v, %v, encoding/json %+v, %v", body, in, again, want, err)
	}
	return ok
}

// unusual are documents at one level of a message that the scanner must leave
// alone, or read as encoding/json does.
var unusual = []struct {
	level int
	text  string
}{
	{0, ``},
	{0, `{}`},
	{0, `null`},
	{0, `{"version": 1, "kwargs": "{\"__wake\": {\"workflow_id\": \"w\"}}"}`},
	{0, `{"version": 2, "kwargs": "{\"__completion_body\": \"{\\\"workflow_id\\\":\\\"w\\\",\\\"task_name\\\":\\\"t\\\",\\\"success\\\":true}\"}"}`},
	{0, `{"Version": 1, "KWARGS": "{\"__completion_body\": \"{\\\"workflow_id\\\":\\\"w\\\",\\\"task_name\\\":\\\"t\\\",\\\"success\\\":true}\"}"}`},
	{0, `{"version": null, "reply_requested": null, "num_retries": null, "id": null, "kwargs": null}`},
	{0, `{"version": 1, "version": 0, "num_retries": -0, "id": "a", "kwargs": "{}", "kwargs": "{\"__completion_body\": \"{\\\"workflow_id\\\":\\\"w\\\",\\\"task_name\\\":\\\"t\\\",\\\"success\\\":true}\"}"}`},
	{1, `{"__completion_body": "{}", "__completion_body": "{\"workflow_id\":\"w\",\"task_name\":\"t\",\"success\":true}"}`},
	{1, `{"__completion_body": "{\"workflow_id\":\"w\",\"task_name\":\"t\",\"success\":true}", "__wake": {}}`},
	{1, `{"__wake": {"workflow_id": "w"}, "__completion_body": "{}"}`},
	{1, `{"__completion_body": null}`},
	{1, `{"cmd": "{\"workflow_id\":\"w\",\"task_name\":\"t\",\"success\":true}"}`},
	{1, `{"cmd": "true", "__completion_body": "{\"workflow_id\":\"w\",\"task_name\":\"t\",\"success\":true}"}`},
	{1, `{"__completion_body": "{\"workflow_id\":\"w\",\"task_name\":\"t\",\"success\":true}"} x`},
	{1, `{"workflow_id":"w","task_name":"t","success":true}`},
	{2, `{"workflow_id":"w","task_name":"t","success":true}`},
	{2, " {\t\"workflow_id\" :\n\"w\" ,\r\"task_name\":\"t\",\"success\":false } "},
	{2, `{"workflow_id":"w","task_name":"t","success":true,}`},
	{2, `{"workflow_id":"w","task_name":"t","success":true}}`},
	{2, `{"workflow_id":"w","task_name":"t","success":true} {}`},
	{2, `{,"workflow_id":"w","task_name":"t","success":true}`},
	{2, `{"workflow_id":"w" "task_name":"t","success":true}`},
	{2, `{"workflow_id":"w","task_name":"t","success":trueish}`},
	{2, `{"workflow_id":"w","task_name":"t","success":True}`},
	{2, `{"workflow_id":"w","task_name":"t","success":null}`},
	{2, `{"workflow_id":"w","task_name":"t","success":true,"success":null}`},
	{2, `{"workflow_id":"w","task_name":"t","success":true,"success":false}`},
	{2, `{"workflow_id":"w","task_name":"t","success":true,"Success":false}`},
	{2, `{"workflow_id":"w","task_name":"t","success":true,"TASK_NAME":"u"}`},
	{2, `{"workflow_id":"w","task_name":"t","success":true,"task_name":"u"}`},
	{2, `{"workflow_id":"w","task_name":"t","success":true,"task_name":null}`},
	{2, `{"workflow_id":"w","task_name":"t","success":true,"error":"x","error":null}`},
	{2, `{"workflow_id":"w","task_name":"t","success":true,"output_ref":{"a":1}}`},
	{2, `{"workflow_id":"w","task_name":"t","success":true,"task_etag":"0x1"}`},
	{2, `{"workflow_id":"w","task_name":"t","success":true,"t\u0061sk_name":"u"}`},
	{2, `{"workflow_id":"","task_name":"t","success":true}`},
	{2, `{"workflow_id":"w","task_name":"t","success":true,"error":"\u00e9\u20AC\ud83d\ude00"}`},
	{2, `{"workflow_id":"w","task_name":"t","success":true,"error":"\u00e9\u20AC\uFFFF\u0000\b\f\n\r\t\/\\\""}`},
	{2, `{"workflow_id":"w","task_name":"t","success":true,"error":"\ud83d"}`},
	{2, `{"workflow_id":"w","task_name":"t","success":true,"error":"\u00g9"}`},
	{2, `{"workflow_id":"w","task_name":"t","success":true,"error":"\u+0e9"}`},
	{2, `{"workflow_id":"w","task_name":"t","success":true,"error":"\u00e"}`},
	{2, `{"workflow_id":"w","task_name":"t","success":true,"error":"\x41"}`},
	{2, `{"workflow_id":"w","task_name":"t","success":true,"error":"é"}`},
	{2, `{"workflow_id":"w","task_name":"t","success":true,"error":"` + "\x7f" + `"}`},
	{2, `{"workflow_id":"w","task_name":"t","success":true,"error":"` + "\x80" + `"}`},
	{2, "{\"workflow_id\":\"w\",\"task_name\":\"t\",\"success\":true,\"error\":\"a\tb\"}"},
	{2, "{\"workflow_id\":\"w\",\"task_name\":\"t\",\"success\":true\x00}"},
	{2, `{"workflow_id":"w","task_name":"t","success":true,"attempt_no":-1}`},
	{2, `{"workflow_id":"w","task_name":"t","success":true,"attempt_no":-0}`},
	{2, `{"workflow_id":"w","task_name":"t","success":true,"attempt_no":01}`},
	{2, `{"workflow_id":"w","task_name":"t","success":true,"attempt_no":0}`},
	{2, `{"workflow_id":"w","task_name":"t","success":true,"attempt_no":1.0}`},
	{2, `{"workflow_id":"w","task_name":"t","success":true,"attempt_no":1e2}`},
	{2, `{"workflow_id":"w","task_name":"t","success":true,"attempt_no":999999999}`},
	{2, `{"workflow_id":"w","task_name":"t","success":true,"attempt_no":4294967295}`},
	{2, `{"workflow_id":"w","task_name":"t","success":true,"attempt_no":4294967296}`},
	{2, `{"workflow_id":"w","task_name":"t","success":true,"attempt_no":"1"}`},
	{2, `{"workflow_id":"w","task_name":"t","success":true,"exit_code":-9}`},
	{2, `{"workflow_id":"w","task_name":"t","success":true,"exit_code":-0}`},
	{2, `{"workflow_id":"w","task_name":"t","success":true,"exit_code":- 9}`},
	{2, `{"workflow_id":"w","task_name":"t","success":true,"exit_code":-}`},
	{2, `{"workflow_id":"w","task_name":"t","success":true,"exit_code":1,"exit_code":2}`},
	{2, `{"workflow_id":"w","task_name":"t","success":true,"exit_code":1,"exit_code":null}`},
	{2, `{"workflow_id":"w","task_name":"t","success":true,"started_at":"2026-01-02T03:04:05.006Z","ended_at":"2026-01-02T03:04:05+02:00"}`},
	{2, `{"workflow_id":"w","task_name":"t","success":true,"started_at":"2026\u002d01-02T03:04:05.006Z"}`},
	{2, `{"workflow_id":"w","task_name":"t","success":true,"started_at":"2026-01-02 03:04:05"}`},
	{2, `{"workflow_id":"w","task_name":"t","success":true,"started_at":""}`},
	{2, `{"workflow_id":"w","task_name":"t","success":true,"started_at":null}`},
	{2, `{"workflow_id":"w","task_name":"t","success":true,"started_at":1}`},
}

func TestScannerAgreesWithJSON(t *testing.T) {
	t.Parallel()
	for _, u := range unusual {
		body := within(u.level, u.text)
		agrees(t, body)
		for cut := range body {
			agrees(t, body[:cut])
		}
	}
}

// TestScannerReadsWhatWorkersWrite holds that the quick way is taken for what it is
// made for: every message of a worker that holds no character beyond U+FFFF.
func TestScannerReadsWhatWorkersWrite(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"completion", "completion_no_attempt", "completion_ours"} {
		if !agrees(t, golden(t, name)) {
			t.Errorf("the scanner left %s alone", name)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.Custom(func(t *rapid.T) string {
			return strings.Map(func(r rune) rune { return min(r, 0xFFFD) }, rapid.String().Draw(t, "text"))
		})
		c := msg.Completion{
			Workflow: "w", Task: "t" + text.Draw(t, "task"), Success: rapid.Bool().Draw(t, "success"),
			OutputRef: text.Draw(t, "output"), Error: text.Draw(t, "error"), Attempt: rapid.Uint32Max(999_999_999).Draw(t, "attempt"),
			ExitCode: new(rapid.IntRange(-64, 255).Draw(t, "code")), Signal: text.Draw(t, "signal"),
			Reason: msg.Reason(text.Draw(t, "reason")), Worker: text.Draw(t, "worker"), Start: rapid.Uint32Max(20).Draw(t, "start"),
			StartedAt: time.UnixMilli(rapid.Int64Range(1, 1<<41).Draw(t, "started")), Log: text.Draw(t, "log"),
		}
		body, err := msg.EncodeCompletion(c)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := msg.ScanCompletion(body); !ok {
			t.Fatalf("the scanner left %s alone", body)
		} else if want, err := msg.DecodeInboxAsJSON(body); err != nil || !reflect.DeepEqual(got, want.Completion) {
			t.Fatalf("%s: the scanner reads %+v, encoding/json %+v, %v", body, got, want.Completion, err)
		}
	})
}

func FuzzDecodeInboxEqualsJSON(f *testing.F) {
	for _, u := range unusual {
		f.Add(u.level, u.text)
	}
	for _, name := range []string{"completion_ours", "in_completion_kwargs", "wake", "command"} {
		f.Add(0, string(golden(f, name)))
	}
	f.Fuzz(func(t *testing.T, level int, text string) { agrees(t, within(level&3, text)) })
}
