package coord

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"

	"jobq/core/fault"
	"jobq/core/msg"
	"jobq/core/state"
)

// storedOutput says where the output of a completion that counts is, after
// moving a large inline one into a blob. Fails with fault.Invalid when the
// reference cannot be read.
func (c *Coordinator) storedOutput(ctx context.Context, e *entry, m *msg.Completion) (state.Output, error) {
	ref, err := msg.ParseOutputRef(m.OutputRef)
	if err != nil {
		return state.Output{}, err
	}
	if ref.Blob != "" {
		return outputAt(e.run.State().ID, m.Task, ref), nil
	}
	if !json.Valid([]byte(ref.Inline)) {
		return state.Output{}, fault.Newf(fault.Invalid, "the output of task %q is not JSON", m.Task)
	}
	if e.run.InlineRoom(len(ref.Inline)) {
		return state.Output{Kind: state.InlineOutput, Text: ref.Inline}, nil
	}
	return c.moveToBlob(ctx, e, m, []byte(ref.Inline))
}

// moveToBlob stores an inline output under the name that the worker would have
// used. What is there already is what counts: a name is written once.
func (c *Coordinator) moveToBlob(ctx context.Context, e *entry, m *msg.Completion, body []byte) (state.Output, error) {
	wf := e.run.State().ID
	name := msg.CanonicalOutput(wf, m.Task)
	if m.Attempt > 1 || m.Start > 1 {
		name = msg.StartOutput(wf, m.Task, max(m.Attempt, 1), max(m.Start, 1))
	}
	err := c.store.Outputs.Put(ctx, name, body)
	if fault.Is(err, fault.Exists) {
		body, err = c.store.Outputs.Get(ctx, name)
	}
	if err != nil {
		return state.Output{}, err
	}
	sum := md5.Sum(body)
	return outputAt(wf, m.Task, msg.OutputRef{Blob: name, MD5: hex.EncodeToString(sum[:])}), nil
}

// outputAt returns the compact form of a reference to a blob.
func outputAt(wf, task string, ref msg.OutputRef) state.Output {
	if ref.Blob != msg.CanonicalOutput(wf, task) {
		return state.Output{Kind: state.OtherOutput, Text: msg.FormatBlobRef(ref.Blob, ref.MD5)}
	}
	out := state.Output{Kind: state.CanonicalOutput}
	if n, err := hex.Decode(out.MD5[:], []byte(ref.MD5)); err == nil && n == len(out.MD5) {
		out.HasMD5 = true
	}
	return out
}

// output fetches the output of task t: nil when it wrote none. Fails with
// fault.Corrupt when the blob is missing or is not the one that was accepted,
// and with another code when it cannot be read now.
func (c *Coordinator) output(ctx context.Context, e *entry, t int32) (json.RawMessage, error) {
	text := c.reference(e, t)
	if text == "" {
		return nil, nil
	}
	ref, err := msg.ParseOutputRef(text)
	if err != nil {
		return nil, fault.Wrapf(fault.Corrupt, err, "the output reference of task %q cannot be read", e.plan.Name(t))
	}
	if ref.Blob == "" {
		return json.RawMessage(ref.Inline), nil
	}
	body, err := c.store.Outputs.Get(ctx, ref.Blob)
	if fault.Is(err, fault.NotFound) {
		return nil, fault.Wrapf(fault.Corrupt, err, "the output of task %q is gone", e.plan.Name(t))
	}
	if err != nil {
		return nil, err
	}
	if sum := md5.Sum(body); ref.MD5 != "" && hex.EncodeToString(sum[:]) != ref.MD5 {
		return nil, fault.Newf(fault.Corrupt, "the output of task %q is not the one that was accepted", e.plan.Name(t))
	}
	if !json.Valid(bytes.TrimSpace(body)) {
		return nil, fault.Newf(fault.Corrupt, "the output of task %q is not JSON", e.plan.Name(t))
	}
	return body, nil
}
