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

// storeOutputs decides where the outputs of completions that count are kept,
// moving large inline ones into blobs. An output that can never be accepted makes
// its attempt a failed one; one that cannot be stored now keeps back its message
// alone.
func (c *Coordinator) storeOutputs(ctx context.Context, j *job, e *entry, items []*item) {
	var todo []*item
	for _, it := range items {
		it.err = nil
		if m := it.inbox.Completion; m != nil && m.OutputRef != "" && it.output == nil && it.refused == nil && e.run.Awaits(m.Task, m.Attempt) {
			todo = append(todo, it)
		}
	}
	if len(todo) == 0 {
		return
	}
	ctx, cancel := c.share(ctx, j, 1, "storing the outputs of a round")
	defer cancel()
	c.sched.Parallel(ctx, len(todo), c.o.Parallel, func(ctx context.Context, i int) {
		it := todo[i]
		c.storeOutput(ctx, j.wf, it, e.run.InlineRoom(len(it.inbox.Completion.OutputRef)))
	})
}

// storeOutput sets output, refused or err of it.
func (c *Coordinator) storeOutput(ctx context.Context, wf string, it *item, room bool) {
	m := it.inbox.Completion
	ref, err := msg.ParseOutputRef(m.OutputRef)
	var out state.Output
	switch {
	case err != nil:
	case ref.Blob != "":
		out = outputAt(wf, m.Task, ref)
	case room:
		out = state.Output{Kind: state.InlineOutput, Text: ref.Inline}
	default:
		out, err = c.moveToBlob(ctx, wf, m, []byte(ref.Inline))
	}
	switch {
	case err == nil:
		it.output = &out
	case fault.Is(err, fault.Invalid), fault.Is(err, fault.TooLarge):
		it.refused = err
	default:
		it.err = err
	}
}

// moveToBlob stores an inline output under the name that the worker would have
// used. What is there already is what counts: a name is written once.
func (c *Coordinator) moveToBlob(ctx context.Context, wf string, m *msg.Completion, body []byte) (state.Output, error) {
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
