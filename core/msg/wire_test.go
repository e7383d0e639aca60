package msg_test

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"jobq/core/fault"
	"jobq/core/msg"
)

// golden returns the bytes of a message as Python's json.dumps wrote them.
// These files are never edited, only added to.
func golden(t testing.TB, name string) []byte {
	t.Helper()
	body, err := os.ReadFile(filepath.Join("testdata", "wire", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func kwargs(pairs ...string) []msg.Kwarg {
	var all []msg.Kwarg
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, msg.Kwarg{Key: pairs[i], Value: json.RawMessage(pairs[i+1])})
	}
	return all
}

func TestTaskMessagesAreThoseOfPython(t *testing.T) {
	t.Parallel()
	for name, task := range map[string]msg.Task{
		"plain": {
			NumRetries: 2, Kwargs: kwargs("cmd", `"echo hello"`),
		},
		"plain_unicode": {
			Kwargs: kwargs(
				"cmd", `"printf '%s\\n' \"gr\u00fc\u00df \ud83d\ude00\"\t\u007f\u0001/"`,
				"env", `{"A": "it's $HOME \"x\"\n2nd", "B": ""}`,
				"n", `[1, 2.5, true, null, {}]`),
		},
		"root": {
			ID: "abc-123/A/1", Kwargs: kwargs("cmd", `"true"`),
			Workflow: "abc-123", Name: "A", Attempt: 1,
		},
		"child": {
			ID: "abc-123/D/2", Kwargs: kwargs("cmd", `"python train.py"`, "cwd", `"work"`),
			Workflow: "abc-123", Name: "D", Attempt: 2,
			Upstream: &msg.Refs{
				Canonical: []string{"B", "C"},
				Literal: map[string]string{
					"E": `{"mae": 0.03}`,
					"F": "blob:abc-123/__outputs/F/2.1.json:0123456789abcdef0123456789abcdef",
				},
				None: []string{"G"},
			},
		},
		"child_ours": {
			ID: "abc-123/D/2/v9", Kwargs: kwargs("cmd", `"true"`),
			Workflow: "abc-123", Name: "D", Attempt: 2, Epoch: 7,
			UpstreamRef: "abc-123/__refs/D/2.json",
			Prefix:      "acct/Proj", Queues: "sb://ns", Inbox: "proj-workflow-completions",
			TimeoutSeconds: 1.5,
		},
		"child_statuses": {
			ID: "abc-123/D/1", Kwargs: kwargs("cmd", `"true"`),
			Workflow: "abc-123", Name: "D", Attempt: 1, Epoch: 1,
			Upstream: &msg.Refs{Canonical: []string{"B"}, None: []string{"C"}},
			Statuses: map[string][]string{"skipped": {"C"}, "failed": {"A", "E"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := golden(t, name)
			decoded, err := msg.DecodeTask(want)
			if err != nil {
				t.Fatalf("DecodeTask: %v", err)
			}
			if task.ID == "" {
				decoded.ID = "" // it must come out again below, as the MD5
			}
			if diff := cmp.Diff(task, decoded); diff != "" {
				t.Errorf("DecodeTask (-want +got):\n%s", diff)
			}
			got, err := msg.EncodeTask(task)
			if err != nil {
				t.Fatalf("EncodeTask: %v", err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("EncodeTask (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEncodeTaskWritesAnyJSONAsPythonDoes(t *testing.T) {
	t.Parallel()
	body, err := msg.EncodeTask(msg.Task{Kwargs: kwargs(
		"cmd", `"printf '%s\\n' \"grüß 😀\"\t`+"\x7f"+`\u0001\/"`,
		"env", " {\n\"A\" :\"it's $HOME \\u0022x\\u0022\\n2nd\",\"B\":\"\"} ",
		"n", "[1,2.5,true,null,{}]")})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(golden(t, "plain_unicode")), string(body)); diff != "" {
		t.Errorf("EncodeTask (-want +got):\n%s", diff)
	}
}

func TestInboxMessagesAreThoseOfPython(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]msg.Inbox{
		"completion": {Completion: &msg.Completion{
			Workflow: "abc-123", Task: "featurize", Success: true, Attempt: 1,
			OutputRef: `{"output": "abfs://data/features.parquet"}`,
		}},
		"completion_no_attempt": {Completion: &msg.Completion{
			Workflow: "abc-123", Task: "featurize", Error: "boom é",
		}},
		"completion_ours": {Completion: &msg.Completion{
			Workflow: "abc-123", Task: "featurize", Attempt: 2, Error: "exit 3",
			OutputRef: "blob:abc-123/featurize.json:0123456789abcdef0123456789abcdef",
			ExitCode:  new(3), Signal: "SIGTERM", Reason: msg.TimedOut, Worker: "vm-1:2", Start: 2,
			StartedAt: time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC),
			EndedAt:   time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC),
			Log:       "logs/abc-123/featurize/2.2",
		}},
		"wake": {Wake: &msg.Wake{Workflow: "abc-123", Tries: 3}},
		"command": {Command: &msg.Command{
			ID: "c1", Workflow: "abc-123", Kind: "cancel", By: "me", Args: json.RawMessage(`{"tasks": ["a"]}`),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := golden(t, name)
			decoded, err := msg.DecodeInbox(want)
			if err != nil {
				t.Fatalf("DecodeInbox: %v", err)
			}
			if diff := cmp.Diff(in, decoded); diff != "" {
				t.Errorf("DecodeInbox (-want +got):\n%s", diff)
			}
			got, err := encodeInbox(in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("encode (-want +got):\n%s", diff)
			}
		})
	}
}

func encodeInbox(in msg.Inbox) ([]byte, error) {
	switch {
	case in.Completion != nil:
		return msg.EncodeCompletion(*in.Completion)
	case in.Wake != nil:
		return msg.EncodeWake(*in.Wake)
	default:
		return msg.EncodeCommand(*in.Command)
	}
}

func TestOlderFormsAreRead(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]msg.Task{
		"in_version0":    {ID: "x", NumRetries: 1, Kwargs: kwargs("cmd", `"true"`)},
		"in_versionless": {ID: "x", NumRetries: 1, Kwargs: kwargs("cmd", `"true"`)},
		"in_legacy_refs": {
			ID: "x", Kwargs: kwargs("cmd", `"true"`), Workflow: "w", Name: "D",
			Upstream: &msg.Refs{Literal: map[string]string{"A": "blob:w/A.json", "B": "5"}, None: []string{"C"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := msg.DecodeTask(golden(t, name))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("DecodeTask (-want +got):\n%s", diff)
			}
		})
	}
}

func TestKwargsAreTriedAsACompletion(t *testing.T) {
	t.Parallel()
	got, err := msg.DecodeInbox(golden(t, "in_completion_kwargs"))
	if err != nil {
		t.Fatal(err)
	}
	want := msg.Inbox{Completion: &msg.Completion{Workflow: "w", Task: "t", Success: true}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("DecodeInbox (-want +got):\n%s", diff)
	}
}

func TestCompactReferencesWinOverOlderOnes(t *testing.T) {
	t.Parallel()
	for name, order := range map[string]string{
		"compact first": `"__upstream_outputs_compact":{"s":["P"]},"__upstream_output_refs":{"Q":"1"}`,
		"legacy first":  `"__upstream_output_refs":{"Q":"1"},"__upstream_outputs_compact":{"s":["P"]}`,
		"with a blob":   `"__upstream_outputs_ref":"w/__refs/T/1.json","__upstream_outputs_compact":{"s":["P"]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := msg.DecodeTask(envelope(t, `{"__workflow_id":"w","__workflow_task":"T",`+order+`}`))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&msg.Refs{Canonical: []string{"P"}}, got.Upstream); diff != "" || got.UpstreamRef != "" {
				t.Errorf("Upstream (-want +got):\n%s and UpstreamRef %q", diff, got.UpstreamRef)
			}
		})
	}
}

func TestReservedKeysOfUsersDoNotReachTheWire(t *testing.T) {
	t.Parallel()
	body, err := msg.EncodeTask(msg.Task{
		Kwargs:   kwargs("cmd", `"true"`, "__workflow_id", `"evil"`, "__mine", `1`),
		Workflow: "w", Name: "t", Attempt: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := msg.DecodeTask(body)
	if err != nil {
		t.Fatal(err)
	}
	if got.Workflow != "w" || strings.Contains(string(body), "evil") || strings.Contains(string(body), "__mine") {
		t.Errorf("EncodeTask let a reserved key pass: %s", body)
	}
}

// envelope wraps kwargs as a message by hand.
func envelope(t *testing.T, kwargs string) []byte {
	t.Helper()
	body, err := json.Marshal(map[string]any{"version": 1, "kwargs": kwargs, "num_retries": 0, "id": "x", "reply_requested": false})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func TestBadMessagesSayWhatIsWrong(t *testing.T) {
	t.Parallel()
	plain := string(golden(t, "root"))
	once := base64.StdEncoding.EncodeToString([]byte(plain))
	twice := base64.StdEncoding.EncodeToString([]byte(once))
	for name, tc := range map[string]struct{ body, says string }{
		"empty":                     {"", "not a JSON envelope"},
		"text":                      {"hello", "not a JSON envelope"},
		"base64":                    {once, "is base64 of JSON"},
		"base64 twice":              {twice, "is base64 of base64 of JSON"},
		"a later version":           {`{"version":2,"kwargs":"{}"}`, "envelope version 2"},
		"no kwargs":                 {`{"version":1}`, `no "kwargs"`},
		"kwargs as an object":       {`{"version":1,"kwargs":{}}`, "not a JSON envelope"},
		"kwargs as a list":          {`{"version":1,"kwargs":"[]"}`, "one JSON object"},
		"two documents in kwargs":   {`{"version":1,"kwargs":"{}{}"}`, "one JSON object"},
		"kwargs cut off":            {`{"version":1,"kwargs":"{\"cmd\":"}`, "one JSON object"},
		"a workflow without a task": {`{"version":1,"kwargs":"{\"__workflow_id\":\"w\"}"}`, "both or neither"},
		"a negative attempt":        {`{"version":1,"kwargs":"{\"__attempt_no\":-1}"}`, `"__attempt_no"`},
		"a negative timeout":        {`{"version":1,"kwargs":"{\"__timeout_s\":-1}"}`, `"__timeout_s"`},
		"references as a list":      {`{"version":1,"kwargs":"{\"__upstream_outputs_compact\":[]}"}`, "upstream references"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := msg.DecodeTask([]byte(tc.body))
			if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("DecodeTask(%q) = %v, want invalid with %q", tc.body, err, tc.says)
			}
		})
	}
}

func TestBadInboxMessagesAreInvalid(t *testing.T) {
	t.Parallel()
	for name, kwargs := range map[string]string{
		"nothing":              `{}`,
		"no success":           `{"__completion_body": "{\"workflow_id\":\"w\",\"task_name\":\"t\"}"}`,
		"no task":              `{"__completion_body": "{\"workflow_id\":\"w\",\"success\":true}"}`,
		"body as an object":    `{"__completion_body": {"workflow_id":"w"}}`,
		"body that is no JSON": `{"__completion_body": "x"}`,
		"wake of nothing":      `{"__wake": {}}`,
		"command without kind": `{"__command": {"id":"1","workflow_id":"w"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := msg.DecodeInbox(envelope(t, kwargs)); !fault.Is(err, fault.Invalid) {
				t.Errorf("DecodeInbox(%s) = %v, want invalid", kwargs, err)
			}
		})
	}
}

func TestHalfAddressedMessagesAreNotWritten(t *testing.T) {
	t.Parallel()
	for name, task := range map[string]msg.Task{
		"no task name":  {Workflow: "w"},
		"no workflow":   {Name: "t"},
		"bad value":     {Kwargs: kwargs("cmd", `"`)},
		"refs and blob": {Workflow: "w", Name: "t", Upstream: &msg.Refs{}, UpstreamRef: "x"},
	} {
		if body, err := msg.EncodeTask(task); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: EncodeTask = %s, %v, want invalid", name, body, err)
		}
	}
	if body, err := msg.EncodeCompletion(msg.Completion{Workflow: "w"}); !fault.Is(err, fault.Invalid) {
		t.Errorf("EncodeCompletion = %s, %v, want invalid", body, err)
	}
	if body, err := msg.EncodeWake(msg.Wake{}); !fault.Is(err, fault.Invalid) {
		t.Errorf("EncodeWake = %s, %v, want invalid", body, err)
	}
}
