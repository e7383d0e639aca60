package dag

import (
	"strings"
	"testing"

	"jobq/core/fault"
)

func TestNames(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		check func(string) error
		in    string
		want  string // part of the message; empty: accepted
	}{
		"task: plain":                         {CheckTaskName, "prep-clean", ""},
		"task: slash, hash, question":         {CheckTaskName, `prep/a#b?c\d`, ""},
		"task: spaces, brackets, quotes":      {CheckTaskName, `Merge "x" [y] (z)`, ""},
		"task: Arabic letter":                 {CheckTaskName, "ـ", ""},
		"task: 256 bytes":                     {CheckTaskName, strings.Repeat("n", 256), ""},
		"task: 257 bytes":                     {CheckTaskName, strings.Repeat("n", 257), "is 257 bytes long; at most 256"},
		"task: bytes, not characters, count":  {CheckTaskName, strings.Repeat("é", 129), "is 258 bytes long"},
		"task: empty":                         {CheckTaskName, "", "is empty"},
		"task: reserved":                      {CheckTaskName, "__merge_x_0", "reserved"},
		"task: one underscore":                {CheckTaskName, "_a", ""},
		"task: tab":                           {CheckTaskName, "a\tb", "control character U+0009"},
		"task: newline":                       {CheckTaskName, "a\nb", "control character U+000A"},
		"task: zero width":                    {CheckTaskName, "a\u200bb", "U+200B, which is not printable"},
		"task: direction override":            {CheckTaskName, "a\u202eb", "U+202E, which is not printable"},
		"task: bad UTF-8":                     {CheckTaskName, "a\xff", "not valid UTF-8"},
		"id: all kinds of characters":         {CheckWorkflowID, "0aZ._-", ""},
		"id: 63 bytes":                        {CheckWorkflowID, strings.Repeat("i", 63), ""},
		"id: 64 bytes":                        {CheckWorkflowID, strings.Repeat("i", 64), "is 64 bytes long; at most 63"},
		"id: empty":                           {CheckWorkflowID, "", "is empty"},
		"id: leading dot":                     {CheckWorkflowID, ".a", "does not start with a letter or digit"},
		"id: slash":                           {CheckWorkflowID, "a/b", `contains "/"`},
		"id: space":                           {CheckWorkflowID, "a b", "contains a space"},
		"id: beyond ASCII":                    {CheckWorkflowID, "aéb", `contains "é"`},
		"id: a rune whose low byte is legal":  {CheckWorkflowID, "a\u0161", `contains "š"`},
		"prefix: two letters":                 {CheckPrefix, "Ab", ""},
		"prefix: 35 letters":                  {CheckPrefix, strings.Repeat("p", 35), ""},
		"prefix: 36 letters":                  {CheckPrefix, strings.Repeat("p", 36), "is 36 bytes long"},
		"prefix: one letter":                  {CheckPrefix, "a", "at least 2"},
		"prefix: empty":                       {CheckPrefix, "", "is empty"},
		"prefix: digit first":                 {CheckPrefix, "1a", "does not start with a letter"},
		"prefix: hyphen":                      {CheckPrefix, "a-b", `contains "-"`},
		"queue: plain":                        {CheckQueue, "gpu-a100", ""},
		"queue: digits":                       {CheckQueue, "123", ""},
		"queue: 56 bytes":                     {CheckQueue, strings.Repeat("q", 56), ""},
		"queue: 57 bytes":                     {CheckQueue, strings.Repeat("q", 57), "is 57 bytes long; at most 56"},
		"queue: two bytes":                    {CheckQueue, "ab", "is 2 bytes long; at least 3"},
		"queue: empty":                        {CheckQueue, "", "is empty"},
		"queue: upper case and underscore":    {CheckQueue, "GPU_A100", `contains "G"`},
		"queue: underscore":                   {CheckQueue, "gpu_a100", `contains "_"`},
		"queue: double hyphen":                {CheckQueue, "a--b", "two hyphens in a row"},
		"queue: leading hyphen":               {CheckQueue, "-ab", "starts or ends with a hyphen"},
		"queue: trailing hyphen":              {CheckQueue, "ab-", "starts or ends with a hyphen"},
		"queue: account":                      {CheckQueue, "myaccount/gpu-a100", ""},
		"queue: account with a hyphen":        {CheckQueue, "my-account/gpu", `"my-account" is not a storage account name`},
		"queue: account and a bad name":       {CheckQueue, "myaccount/GPU", `contains "G"`},
		"queue: two slashes":                  {CheckQueue, "myaccount/a/b", `contains "/"`},
		"queue: Service Bus":                  {CheckQueue, "sb://my-ns/gpu-a100", ""},
		"queue: Service Bus host":             {CheckQueue, "sb://my-ns.servicebus.windows.net/gpu-a100", ""},
		"queue: Service Bus without a name":   {CheckQueue, "sb://my-ns", "not of the form sb://namespace/name"},
		"queue: Service Bus, empty namespace": {CheckQueue, "sb:///gpu", "not of the form sb://namespace/name"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := tc.check(tc.in)
			if tc.want == "" {
				if err != nil {
					t.Fatalf("check(%q) = %v, want nil", tc.in, err)
				}
				return
			}
			if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("check(%q) = %v, want an invalid error with %q", tc.in, err, tc.want)
			}
			if fault.RemedyOf(err) == fault.Invalid.Remedy() {
				t.Errorf("check(%q) has no remedy of its own", tc.in)
			}
		})
	}
}

func TestQuoteCutsAtACharacter(t *testing.T) {
	t.Parallel()
	if got, want := Quote(strings.Repeat("é", 70)), `"`+strings.Repeat("é", 64)+`"…`; got != want {
		t.Errorf("Quote = %s, want %s", got, want)
	}
	if got, want := Quote("a\tb"), `"a\tb"`; got != want {
		t.Errorf("Quote = %s, want %s", got, want)
	}
}
