package state_test

import (
	"crypto/md5"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"jobq/core/state"
)

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// exported compares states without the sections that they do not know.
var exported = cmpopts.IgnoreUnexported(state.Workflow{})

func encode(t testing.TB, w *state.Workflow) []byte {
	t.Helper()
	b, err := state.Encode(w)
	if err != nil {
		t.Fatalf("Encode: %v", err)
	}
	return b
}

func decode(t testing.TB, b []byte) *state.Workflow {
	t.Helper()
	w, err := state.Decode(b)
	if err != nil {
		t.Fatalf("Decode: %v", err)
	}
	return w
}

// everything returns a state in which each column and each kind of entry is used.
func everything() *state.Workflow {
	all := state.TaskStatuses()
	w := state.New("nightly-1", len(all)+2)
	w.Definition, w.Version, w.Epoch, w.BornEpoch, w.HighestAttempt = "sha256:abc", 7, 3, 1, 9
	w.Status, w.CancelRequested, w.Namespace = state.WorkflowRunning, true, "run-1-"
	w.CreatedAt, w.UpdatedAt = epoch, epoch.Add(time.Minute)
	w.Error = "1 failed"
	w.Commands = []state.CommandResult{{ID: "c1", Kind: "cancel", Epoch: 3, Answer: json.RawMessage(`{"done":true}`)}}
	for i, s := range all {
		w.TaskStatus[i] = s
		w.Attempt[i] = uint32(i)
		w.StartedAt[i] = epoch.Add(time.Duration(i) * time.Second).UnixMilli()
	}
	w.EndedAt[4] = epoch.Add(-time.Hour).UnixMilli() // by the clock of a worker that is late
	w.Failures[5] = 2
	w.Outputs[0] = state.Output{Kind: state.InlineOutput, Text: `{"π": 3}`}
	w.Outputs[3] = state.Output{Kind: state.CanonicalOutput, HasMD5: true, MD5: md5.Sum([]byte("x"))}
	w.Outputs[4] = state.Output{Kind: state.CanonicalOutput}
	w.Outputs[5] = state.Output{Kind: state.OtherOutput, Text: "blob:w/__outputs/t/2.1.json"}
	w.Reasons[5] = "exit 1\nsecond line"
	w.Exits[5] = state.Exit{Code: 1, Known: true, Word: "exited", Worker: "vm-1", Start: 2}
	w.Exits[8] = state.Exit{Code: -1, Signal: "SIGKILL", Worker: "vm-1"}
	w.NotBefore[1] = epoch.Add(time.Hour).UnixMilli()
	w.GiveBacks[1] = 4
	w.Frozen[2] = []int32{0, 1, 130}
	w.Frozen[3] = []int32{}
	return w
}

// dump writes a state for people.
func dump(w *state.Workflow) string {
	var b strings.Builder
	fmt.Fprintf(&b, "id %q definition %q namespace %q\n", w.ID, w.Definition, w.Namespace)
	fmt.Fprintf(&b, "version %d epoch %d born %d highest attempt %d\n", w.Version, w.Epoch, w.BornEpoch, w.HighestAttempt)
	fmt.Fprintf(&b, "status %s cancel requested %t error %q\n", w.Status, w.CancelRequested, w.Error)
	fmt.Fprintf(&b, "created %s updated %s\n", w.CreatedAt.Format(time.RFC3339Nano), w.UpdatedAt.Format(time.RFC3339Nano))
	for _, c := range w.Commands {
		fmt.Fprintf(&b, "command %q %s epoch %d answer %s\n", c.ID, c.Kind, c.Epoch, c.Answer)
	}
	for i, s := range w.TaskStatus {
		fmt.Fprintf(&b, "task %d %c attempt %d failures %d started %d ended %d\n", i, s, w.Attempt[i], w.Failures[i], w.StartedAt[i], w.EndedAt[i])
	}
	for _, k := range slices.Sorted(maps.Keys(w.Outputs)) {
		o := w.Outputs[k]
		fmt.Fprintf(&b, "output %d kind %d hash %t %x text %q\n", k, o.Kind, o.HasMD5, o.MD5, o.Text)
	}
	for _, k := range slices.Sorted(maps.Keys(w.Reasons)) {
		fmt.Fprintf(&b, "reason %d %q\n", k, w.Reasons[k])
	}
	for _, k := range slices.Sorted(maps.Keys(w.Exits)) {
		fmt.Fprintf(&b, "exit %d %+v\n", k, w.Exits[k])
	}
	for _, k := range slices.Sorted(maps.Keys(w.NotBefore)) {
		fmt.Fprintf(&b, "not before %d %d\n", k, w.NotBefore[k])
	}
	for _, k := range slices.Sorted(maps.Keys(w.GiveBacks)) {
		fmt.Fprintf(&b, "give-backs %d %d\n", k, w.GiveBacks[k])
	}
	for _, k := range slices.Sorted(maps.Keys(w.Frozen)) {
		fmt.Fprintf(&b, "frozen %d %v\n", k, w.Frozen[k])
	}
	return b.String()
}

// drawWorkflow draws any state that Encode must keep.
func drawWorkflow(t *rapid.T) *state.Workflow {
	n := rapid.IntRange(0, 20).Draw(t, "tasks")
	w := state.New(rapid.String().Draw(t, "id"), n)
	w.Definition = rapid.StringN(0, 10, 20).Draw(t, "definition")
	w.Namespace = rapid.StringN(0, 5, 10).Draw(t, "namespace")
	w.Version, w.Epoch, w.BornEpoch = rapid.Uint64().Draw(t, "version"), rapid.Uint64().Draw(t, "epoch"), rapid.Uint64().Draw(t, "born")
	w.HighestAttempt, w.BornAttempt = rapid.Uint32().Draw(t, "highest"), rapid.Uint32().Draw(t, "born")
	w.Status = rapid.SampledFrom(state.WorkflowStatuses()).Draw(t, "status")
	w.CancelRequested = rapid.Bool().Draw(t, "cancel")
	millis := rapid.Int64Range(-1<<50, 1<<50)
	w.CreatedAt, w.UpdatedAt = time.UnixMilli(millis.Draw(t, "created")).UTC(), time.UnixMilli(millis.Draw(t, "updated")).UTC()
	w.Error = rapid.String().Draw(t, "error")
	for i := range w.TaskStatus {
		w.TaskStatus[i] = rapid.SampledFrom(state.TaskStatuses()).Draw(t, "status")
		w.Attempt[i] = rapid.Uint32().Draw(t, "attempt")
		w.Failures[i] = rapid.Uint32Max(3).Draw(t, "failures")
		w.StartedAt[i] = millis.Draw(t, "started")
		w.EndedAt[i] = rapid.SampledFrom([]int64{0, w.CreatedAt.UnixMilli(), millis.Draw(t, "ended")}).Draw(t, "end")
	}
	if n == 0 {
		return w
	}
	key := rapid.Int32Range(0, int32(n)-1)
	text := rapid.String()
	w.Reasons = rapid.MapOf(key, text).Draw(t, "reasons")
	w.NotBefore = rapid.MapOf(key, millis).Draw(t, "not before")
	w.GiveBacks = rapid.MapOf(key, rapid.Uint32()).Draw(t, "give-backs")
	w.Frozen = rapid.MapOf(key, rapid.Custom(drawFrozen)).Draw(t, "frozen")
	w.Outputs = rapid.MapOf(key, rapid.Custom(drawOutput)).Draw(t, "outputs")
	w.Exits = rapid.MapOf(key, rapid.Custom(func(t *rapid.T) state.Exit {
		word := rapid.SampledFrom([]string{"", "exited", "SIGKILL", "vm-1"})
		return state.Exit{
			Code: rapid.IntRange(-1, 255).Draw(t, "code"), Known: rapid.Bool().Draw(t, "known"),
			Signal: word.Draw(t, "signal"), Word: word.Draw(t, "word"), Worker: word.Draw(t, "worker"), Start: rapid.Uint32().Draw(t, "start"),
		}
	})).Draw(t, "exits")
	return w
}

func drawFrozen(t *rapid.T) []int32 {
	v := rapid.SliceOfDistinct(rapid.Int32Min(0), rapid.ID[int32]).Draw(t, "parents")
	slices.Sort(v)
	return v
}

func drawOutput(t *rapid.T) state.Output {
	o := state.Output{Kind: state.OutputKind(rapid.IntRange(0, 3).Draw(t, "kind")), HasMD5: rapid.Bool().Draw(t, "hash")}
	if o.Kind != state.CanonicalOutput {
		o.Text = rapid.String().Draw(t, "text")
	}
	if o.HasMD5 {
		o.MD5 = md5.Sum([]byte(o.Text))
	}
	return o
}

// section is one part of a document that a test builds by hand.
type section struct {
	id   uint64
	body string
}

// document builds a stored state with a right checksum.
func document(format, minReader, minWriter uint64, sections ...section) []byte {
	b := []byte("JQST")
	for _, v := range []uint64{format, minReader, minWriter} {
		b = binary.AppendUvarint(b, v)
	}
	for _, s := range sections {
		b = binary.AppendUvarint(b, s.id)
		b = binary.AppendUvarint(b, uint64(len(s.body)))
		b = append(b, s.body...)
	}
	return checksummed(b)
}

func checksummed(b []byte) []byte { return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b)) }
