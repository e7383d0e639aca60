package protocol_test

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"jobq/core/msg"
	"jobq/core/port"
	"jobq/store/memory"
	"jobq/worker/protocol"
)

func producing(output string) func(context.Context, protocol.Start) protocol.Outcome {
	return func(context.Context, protocol.Start) protocol.Outcome {
		out := exit(0)
		out.Output = []byte(output)
		return out
	}
}

func sumOf(s string) string {
	sum := md5.Sum([]byte(s))
	return hex.EncodeToString(sum[:])
}

func TestWhereAnOutputGoes(t *testing.T) {
	t.Parallel()
	small := `{"mae": 0.03}`
	quoted := "[" + strings.Repeat(`"\"é",`, 3000) + `0]` // 27 KB that grow when they are quoted
	numbers := "[" + strings.Repeat("1,", 16380) + `1]`
	large := "[" + strings.Repeat("1,", 16400) + `1]`
	const own = "w/__outputs/t/1.1.json"
	for name, tc := range map[string]struct {
		output string
		limit  int
		before map[string]string
		start  uint32
		want   string
		reason msg.Reason
	}{
		"small":                         {output: small, want: small},
		"32 KiB":                        {output: numbers, want: numbers},
		"over 32 KiB":                   {output: large, want: "blob:w/t.json:" + sumOf(large)},
		"within a limit":                {output: numbers, limit: 64 << 10, want: numbers},
		"small but not once it is sent": {output: quoted, limit: 64 << 10, want: "blob:w/t.json:" + sumOf(quoted)},
		"stored already":                {output: large, before: map[string]string{"w/t.json": large}, want: "blob:w/t.json:" + sumOf(large)},
		"another output is there":       {output: large, before: map[string]string{"w/t.json": "0"}, want: "blob:" + own + ":" + sumOf(large)},
		"a later start":                 {output: large, start: 1, want: "blob:w/__outputs/t/1.2.json:" + sumOf(large)},
		"no name left":                  {output: large, before: map[string]string{"w/t.json": "0", own: "0"}, reason: msg.OutputInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			props := memory.DefaultQueue()
			props.MaxMessage = tc.limit
			bubble(t, memory.Options{Queue: &props}, func(t *testing.T, r *rig) {
				for blob, body := range tc.before {
					r.must(r.port.Outputs.Put(t.Context(), blob, []byte(body)))
				}
				if tc.start > 0 {
					r.putRecord("", msg.AttemptRecord{Start: tc.start, Free: true})
				}
				r.model.run = producing(tc.output)
				r.push()
				r.expect("delivery", r.handle(t.Context()), protocol.Done)
				c := r.completion()
				if c.OutputRef != tc.want || c.Reason != tc.reason {
					t.Errorf("output = %.80q, reason %q, want %.80q and %q", c.OutputRef, c.Reason, tc.want, tc.reason)
				}
				ref, blob := strings.CutPrefix(c.OutputRef, "blob:")
				if !blob {
					return
				}
				body, err := r.port.Outputs.Get(t.Context(), ref[:strings.LastIndexByte(ref, ':')])
				if err != nil || string(body) != tc.output {
					t.Errorf("the blob holds %d bytes (%v), want the output", len(body), err)
				}
			})
		})
	}
}

func TestAnOutputThatNoStoreTakesFailsTheAttempt(t *testing.T) {
	t.Parallel()
	bubble(t, memory.Options{Props: port.Props{MaxBlob: 40_000}}, func(t *testing.T, r *rig) {
		r.model.run = producing("[" + strings.Repeat("1,", 30_000) + "1]")
		r.push()
		r.expect("delivery", r.handle(t.Context()), protocol.Done)
		if c := r.completion(); c.Success || c.Reason != msg.OutputInvalid || !strings.Contains(c.Error, "60003 bytes") {
			t.Errorf("completion = %+v, want a failure that names the size", c)
		}
	})
}

// deniedBlobs refuse their callers until a moment.
type deniedBlobs struct {
	port.Blobs
	until time.Time
}

func (b deniedBlobs) Put(ctx context.Context, name string, body []byte) error {
	if time.Now().Before(b.until) {
		return errDenied
	}
	return b.Blobs.Put(ctx, name, body)
}

func (b deniedBlobs) Get(ctx context.Context, name string) ([]byte, error) {
	if time.Now().Before(b.until) {
		return nil, errDenied
	}
	return b.Blobs.Get(ctx, name)
}

// TestARightToOutputsIsWaitedForAWhile: a role may be given late, or its change
// may take minutes. One that was never given must not hold the task for ever.
func TestARightToOutputsIsWaitedForAWhile(t *testing.T) {
	t.Parallel()
	large := "[" + strings.Repeat("1,", 16400) + `1]`
	for name, tc := range map[string]struct {
		denied time.Duration
		reason msg.Reason
	}{
		"it comes":  {8 * time.Minute, ""},
		"it is not": {100 * time.Hour, msg.OutputInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, memory.Options{}, func(t *testing.T, r *rig) {
				r.port.Outputs = deniedBlobs{r.port.Outputs, time.Now().Add(tc.denied)}
				r.model.run = producing(large)
				r.push()
				began := time.Now()
				r.expect("delivery", r.handle(t.Context()), protocol.Done)
				c := r.completion()
				if c.Success != (tc.reason == "") || c.Reason != tc.reason || tc.reason != "" && !strings.Contains(c.Error, "not allowed") {
					t.Errorf("completion = %+v, want reason %q", c, tc.reason)
				}
				if took := time.Since(began); took > 15*time.Minute {
					t.Errorf("that took %v", took)
				}
				r.model.runs(t, 1)
			})
		})
	}
}

// TestParentsThatMayNotBeReadAreNoFailure: the data are there, the right is not.
func TestParentsThatMayNotBeReadAreNoFailure(t *testing.T) {
	t.Parallel()
	bubble(t, memory.Options{}, func(t *testing.T, r *rig) {
		r.must(r.outside.Outputs.Put(t.Context(), "w/__refs/t/1.json", msg.EncodeRefs(msg.Refs{Canonical: []string{"a"}})))
		r.port.Outputs = deniedBlobs{r.port.Outputs, time.Now().Add(2 * time.Minute)}
		r.push(func(m *msg.Task) { m.UpstreamRef = "w/__refs/t/1.json" })
		r.expect("denied", r.handle(t.Context()), protocol.Returned)
		for r.handle(t.Context()) != protocol.Done {
		}
		if c := r.completion(); !c.Success {
			t.Errorf("completion = %+v, want success once it may be read", c)
		}
		r.model.runs(t, 1)
	})
}

func TestParentsOutputsReachTheCommand(t *testing.T) {
	t.Parallel()
	const body = `{"rows": 5}`
	for name, tc := range map[string]struct {
		refs   func(*msg.Refs)
		spill  bool
		blobs  map[string]string
		want   map[string]string
		reason msg.Reason
	}{
		"canonical, literal and inline": {
			refs: func(r *msg.Refs) {
				r.Add("w", "a", "blob:w/a.json")
				r.Add("w", "b", "blob:w/__outputs/b/2.1.json:"+sumOf(body))
				r.Add("w", "c", "5")
			},
			blobs: map[string]string{"w/a.json": body, "w/__outputs/b/2.1.json": body},
			want:  map[string]string{"a": body, "b": body, "c": "5"},
		},
		"references in a blob": {
			refs:  func(r *msg.Refs) { r.Add("w", "c", "5") },
			spill: true, want: map[string]string{"c": "5"},
		},
		"a blob that is gone": {
			refs: func(r *msg.Refs) { r.Add("w", "a", "blob:w/a.json") }, reason: msg.SpawnFailed,
		},
		"a blob that is another": {
			refs:  func(r *msg.Refs) { r.Add("w", "b", "blob:w/b2.json:"+sumOf(body)) },
			blobs: map[string]string{"w/b2.json": "0"}, reason: msg.SpawnFailed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, memory.Options{}, func(t *testing.T, r *rig) {
				for blob, content := range tc.blobs {
					r.must(r.port.Outputs.Put(t.Context(), blob, []byte(content)))
				}
				refs := &msg.Refs{}
				tc.refs(refs)
				got := map[string]string{}
				r.model.run = func(ctx context.Context, s protocol.Start) protocol.Outcome {
					for parent, ref := range s.Task.Upstream.All("w") {
						output, err := s.Fetch(ctx, ref)
						if err != nil {
							return protocol.Unprepare(err)
						}
						got[parent] = string(output)
					}
					return exit(0)
				}
				r.push(func(m *msg.Task) {
					m.Upstream = refs
					if tc.spill {
						m.Upstream, m.UpstreamRef = nil, msg.RefsBlob("w", "t", 1)
						r.must(r.port.Outputs.Put(t.Context(), m.UpstreamRef, msg.EncodeRefs(*refs)))
					}
				})
				r.expect("delivery", r.handle(t.Context()), protocol.Done)
				c := r.completion()
				if c.Reason != tc.reason {
					t.Fatalf("completion = %+v, want reason %q", c, tc.reason)
				}
				for parent, want := range tc.want {
					if got[parent] != want {
						t.Errorf("output of %q = %q, want %q", parent, got[parent], want)
					}
				}
			})
		})
	}
}

func TestAMissingReferenceListFailsTheAttempt(t *testing.T) {
	t.Parallel()
	bubble(t, memory.Options{}, func(t *testing.T, r *rig) {
		r.push(func(m *msg.Task) { m.UpstreamRef = msg.RefsBlob("w", "t", 1) })
		r.expect("delivery", r.handle(t.Context()), protocol.Done)
		if c := r.completion(); c.Reason != msg.SpawnFailed || !strings.Contains(c.Error, "parents") {
			t.Errorf("completion = %+v", c)
		}
		r.model.runs(t, 0)
	})
}
