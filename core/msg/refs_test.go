package msg_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"jobq/core/fault"
	"jobq/core/msg"
)

const sum = "0123456789abcdef0123456789abcdef"

func TestParseOutputRef(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		ref  string
		want msg.OutputRef
	}{
		"inline":                        {`{"a":1}`, msg.OutputRef{Inline: `{"a":1}`}},
		"inline text that says blob":    {`"blob:x"`, msg.OutputRef{Inline: `"blob:x"`}},
		"without a hash":                {"blob:w/t.json", msg.OutputRef{Blob: "w/t.json"}},
		"with a hash":                   {"blob:w/t.json:" + sum, msg.OutputRef{Blob: "w/t.json", MD5: sum}},
		"hash in capitals":              {"blob:w/t.json:" + strings.ToUpper(sum), msg.OutputRef{Blob: "w/t.json", MD5: sum}},
		"colons in the task's name":     {"blob:w/a:b.json", msg.OutputRef{Blob: "w/a:b.json"}},
		"a name that ends like a hash":  {"blob:w/a:" + sum + ".json", msg.OutputRef{Blob: "w/a:" + sum + ".json"}},
		"the same with a hash":          {"blob:w/a:" + sum + ".json:" + sum, msg.OutputRef{Blob: "w/a:" + sum + ".json", MD5: sum}},
		"digits too few to be a hash":   {"blob:w/t.json:" + sum[1:], msg.OutputRef{Blob: "w/t.json:" + sum[1:]}},
		"digits too many to be a hash":  {"blob:w/t.json:0" + sum, msg.OutputRef{Blob: "w/t.json:0" + sum}},
		"32 characters that are no hex": {"blob:w/t:" + strings.Repeat("g", 32), msg.OutputRef{Blob: "w/t:" + strings.Repeat("g", 32)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := msg.ParseOutputRef(tc.ref)
			if err != nil || got != tc.want {
				t.Fatalf("ParseOutputRef(%q) = %+v, %v, want %+v", tc.ref, got, err, tc.want)
			}
			if got.Blob == "" {
				return
			}
			if back := msg.FormatBlobRef(got.Blob, got.MD5); !strings.EqualFold(back, tc.ref) {
				t.Errorf("FormatBlobRef(%q, %q) = %q, want %q", got.Blob, got.MD5, back, tc.ref)
			}
		})
	}
	for _, bad := range []string{"", "hello", "blob:", "blob::" + sum, "BLOB:w/t.json"} {
		if got, err := msg.ParseOutputRef(bad); !fault.Is(err, fault.Invalid) {
			t.Errorf("ParseOutputRef(%q) = %+v, %v, want invalid", bad, got, err)
		}
	}
}

func TestRefsAddTakesTheShortestForm(t *testing.T) {
	t.Parallel()
	var r msg.Refs
	r.Add("w", "a", "blob:w/a.json")
	r.Add("w", "b", "blob:w/b.json:"+sum)
	r.Add("w", "c", "blob:w/a.json")
	r.Add("w", "d", "")
	r.Add("w", "e", "5")
	want := msg.Refs{
		Canonical: []string{"a", "b"},
		Literal:   map[string]string{"c": "blob:w/a.json", "e": "5"},
		None:      []string{"d"},
	}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Errorf("Add (-want +got):\n%s", diff)
	}
	full := map[string]string{"a": "blob:w/a.json", "b": "blob:w/b.json", "c": "blob:w/a.json", "d": "", "e": "5"}
	if diff := cmp.Diff(full, maps.Collect(r.All("w"))); diff != "" {
		t.Errorf("All (-want +got):\n%s", diff)
	}
}

func TestThreeThousandParentsFitOneMessage(t *testing.T) {
	t.Parallel()
	const parents = 3000
	var r msg.Refs
	names := 0
	for i := range parents {
		name := fmt.Sprintf("m-%07d", i)
		names += len(name)
		r.Add("cse-mindless-001", name, "blob:cse-mindless-001/"+name+".json")
	}
	body, err := msg.EncodeTask(msg.Task{
		Kwargs: kwargs("cmd", `"python aggregate.py"`), Workflow: "cse-mindless-001", Name: "leaf", Attempt: 1, Upstream: &r,
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(body) > 48<<10 {
		t.Errorf("a message with %d parents has %d bytes, want at most %d", parents, len(body), 48<<10)
	}
	without, err := msg.EncodeTask(msg.Task{Kwargs: kwargs("cmd", `"python aggregate.py"`), Workflow: "cse-mindless-001", Name: "leaf", Attempt: 1})
	if err != nil {
		t.Fatal(err)
	}
	if each := float64(len(body)-len(without)-names) / parents; each > 14 {
		t.Errorf("a canonical parent takes %.1f bytes beside its name, want at most 14", each)
	}
}

func TestPackTask(t *testing.T) {
	t.Parallel()
	const limit = 48 << 10
	wide := &msg.Refs{}
	for i := range 6000 {
		wide.Add("w", fmt.Sprintf("parent-%d", i), "5")
	}
	task := func(pad int, refs *msg.Refs) msg.Task {
		return msg.Task{
			Kwargs:   kwargs("cmd", `": `+strings.Repeat("x", pad)+`"`),
			Workflow: "w", Name: "t", Attempt: 1, Upstream: refs,
		}
	}
	for name, tc := range map[string]struct {
		task    msg.Task
		limit   int
		refs    bool
		tooBig  bool
		unknown bool
	}{
		"small":                       {task: task(10, nil), limit: limit},
		"no limit":                    {task: task(100_000, wide)},
		"references move out":         {task: task(10, wide), limit: limit, refs: true},
		"too large without any":       {task: task(limit, nil), limit: limit, tooBig: true},
		"too large without its refs":  {task: task(limit, wide), limit: limit, tooBig: true},
		"no room for a longer number": {task: task(limit-230, nil), limit: limit, tooBig: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			packed, err := msg.PackTask(tc.task, tc.limit)
			if tc.tooBig {
				if !fault.Is(err, fault.TooLarge) || !strings.Contains(err.Error(), `"t"`) {
					t.Fatalf("PackTask = %d bytes, %v, want too large with the task's name", len(packed.Body), err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if (packed.Refs != nil) != tc.refs {
				t.Fatalf("PackTask moved references out: %v, want %v", packed.Refs != nil, tc.refs)
			}
			got, err := msg.DecodeTask(packed.Body)
			if err != nil {
				t.Fatal(err)
			}
			if tc.refs {
				refs, err := msg.DecodeRefs(packed.Refs)
				if err != nil || got.UpstreamRef != packed.RefsName || packed.RefsName != msg.RefsBlob("w", "t", 1) {
					t.Fatalf("refs %v, name %q, message names %q", err, packed.RefsName, got.UpstreamRef)
				}
				got.Upstream = &refs
			}
			if diff := cmp.Diff(tc.task.Upstream, got.Upstream); diff != "" {
				t.Errorf("references (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAMessageThatFitsStillFitsWhenItIsSentAgain(t *testing.T) {
	t.Parallel()
	const limit = 2000
	task := msg.Task{Kwargs: kwargs("cmd", `""`), Workflow: "w", Name: "t", Attempt: 1, Epoch: 1, ID: msg.FirstSendID("w", "t", 1)}
	pad := 0
	for {
		task.Kwargs = kwargs("cmd", `"`+strings.Repeat("x", pad+1)+`"`)
		if _, err := msg.PackTask(task, limit); err != nil {
			break
		}
		pad++
	}
	task.Kwargs = kwargs("cmd", `"`+strings.Repeat("x", pad)+`"`)
	task.Attempt, task.Epoch, task.ID = 1<<32-1, 1<<63, msg.ResendID("w", "t", 1<<32-1, 1<<63)
	body, err := msg.EncodeTask(task)
	if err != nil || len(body) > limit {
		t.Errorf("the last attempt's message has %d bytes (%v), want at most %d", len(body), err, limit)
	}
	// It is not refused on the way there either, whatever fills it up.
	for name, upstream := range map[string]*msg.Refs{"no references": nil, "references that moved out": {Canonical: slices.Repeat([]string{"p"}, 1000)}} {
		for _, attempt := range []uint32{1, 2, 9, 10, 13, 100, 1<<32 - 1} {
			for _, epoch := range []uint64{0, 1, 10, 1 << 40, 1<<64 - 1} {
				task.Attempt, task.Epoch, task.ID = attempt, epoch, msg.FirstSendID("w", "t", attempt)
				task.Upstream = upstream
				if task.Kwargs = kwargs("cmd", `"`+strings.Repeat("x", pad)+`"`); upstream != nil {
					// The name of the blob takes its place.
					task.Kwargs = kwargs("cmd", `"`+strings.Repeat("x", pad-len(`, \"__upstream_outputs_ref\": \"w/__refs/t/1.json\"`))+`"`)
				}
				packed, err := msg.PackTask(task, limit)
				if err != nil || len(packed.Body) > limit {
					t.Errorf("%s, attempt %d at epoch %d: %d bytes, %v, want at most %d", name, attempt, epoch, len(packed.Body), err, limit)
				}
			}
		}
	}
}

func TestTruncateText(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ text, head, tail string }{
		"short":              {"boom", "boom", "boom"},
		"long":               {"start" + strings.Repeat("x", 5_000_000) + "end", "start", "end"},
		"just over":          {"start" + strings.Repeat("x", 1024) + "end", "start", "end"},
		"cut inside a rune":  {"é" + strings.Repeat("日", 900) + "本", "é日", "日本"},
		"bad bytes":          {"ok \xff\xfe ok", "ok \uFFFD", "ok"},
		"nothing but bad":    {"a" + strings.Repeat("\xff", 9000) + "z", "a\uFFFD", "\uFFFDz"},
		"grows when mended":  {strings.Repeat("\xff.", 500) + "end", "\uFFFD.", "end"},
		"exactly at a limit": {strings.Repeat("y", 1024), "yyyy", "yyyy"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := msg.TruncateText(tc.text, msg.MaxError)
			if len(got) > msg.MaxError || !utf8.ValidString(got) {
				t.Fatalf("TruncateText gave %d bytes, valid %v", len(got), utf8.ValidString(got))
			}
			if !strings.HasPrefix(got, tc.head) || !strings.HasSuffix(got, tc.tail) {
				t.Errorf("TruncateText = %.40q...%q, want it to keep %q and %q", got, got[max(0, len(got)-40):], tc.head, tc.tail)
			}
		})
	}
	if got := msg.TruncateText("日本語", 4); got != "日" {
		t.Errorf("TruncateText to fewer bytes than the note = %q, want %q", got, "日")
	}
	if got := msg.TruncateText("error", -1); got != "" {
		t.Errorf("TruncateText to less than nothing = %q, want nothing", got)
	}
}

// TestStatusesOfParentsGiveWay holds that what only tells people never makes a
// message too large.
func TestStatusesOfParentsGiveWay(t *testing.T) {
	t.Parallel()
	task := msg.Task{
		Kwargs: kwargs("cmd", `"true"`), Workflow: "w", Name: "t", Attempt: 1,
		Upstream: &msg.Refs{Canonical: []string{"good"}},
		Statuses: map[string][]string{"failed": slices.Repeat([]string{"a-parent-that-failed"}, 1000)},
	}
	packed, err := msg.PackTask(task, 1000)
	if err != nil || len(packed.Body) > 1000 {
		t.Fatalf("PackTask = %d bytes, %v, want at most 1000", len(packed.Body), err)
	}
	if got, err := msg.DecodeTask(packed.Body); err != nil || got.Statuses != nil || got.UpstreamRef == "" {
		t.Errorf("DecodeTask = %+v, %v, want the references in a blob and no statuses", got, err)
	}
}

func TestAttemptOfNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]uint32{
		msg.StartOutput("w", "t", 7, 2): 7, msg.StartOutput("w", "a/b.3", 12, 1): 12, msg.RefsBlob("w", "t", 3): 3,
		msg.CanonicalOutput("w", "t"): 0, "w/__outputs/t/x.1.json": 0, "w": 0, "w/other/t/4.1.json": 0,
		msg.CanonicalOutput("logs", "t/4"): 0,
	} {
		if got, ok := msg.AttemptOf(name); got != want || ok != (want > 0) {
			t.Errorf("AttemptOf(%q) = %d, %t, want %d", name, got, ok, want)
		}
	}
	for name, want := range map[string]uint32{
		msg.LogName("w", "t", 7, 2): 7, msg.LogName("w", "a/b.3", 12, 1): 12,
		"logs/w/t/x.1": 0, "w/t/4.1": 0, "logs": 0, "": 0,
	} {
		if got, ok := msg.AttemptOfLog(name); got != want || ok != (want > 0) {
			t.Errorf("AttemptOfLog(%q) = %d, %t, want %d", name, got, ok, want)
		}
	}
}
