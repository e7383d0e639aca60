package protocol

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"time"

	"jobq/core/fault"
	"jobq/core/msg"
)

// placeOutput puts output into c, inline where the encoded message has room for
// it, else into a blob. What the store refuses for good fails the attempt with a
// reason; an error means that the attempt is no longer ours, or that the worker
// stops and has waited long enough.
func (a *attempt) placeOutput(ctx context.Context, c *msg.Completion, output []byte) error {
	if output == nil {
		return nil
	}
	limit := a.h.conf.Store.Queues.Queue(a.inbox).Props().MaxMessage
	if len(output) <= msg.MaxInlineOutput {
		c.OutputRef = string(output)
		// JSON text grows each time it is quoted, so only the message itself
		// tells whether it fits.
		body, err := msg.EncodeCompletion(*c)
		if err == nil && (limit == 0 || len(body) <= limit) {
			return nil
		}
		c.OutputRef = ""
	}
	ref, err := a.putOutput(ctx, output)
	switch {
	case err == nil:
		c.OutputRef = ref
	case fault.Is(err, fault.LeaseLost), uncertain(err):
		return err
	case c.Success:
		c.Success, c.Reason = false, msg.OutputInvalid
		c.Error = fmt.Sprintf("the output of %d bytes could not be stored: %v", len(output), err)
	}
	return nil
}

// putOutput stores output under a name that no other start writes to, so that
// a start that was given up for lost cannot replace what was accepted.
func (a *attempt) putOutput(ctx context.Context, output []byte) (string, error) {
	sum := md5.Sum(output)
	own := msg.StartOutput(a.key.Workflow, a.key.Task, a.key.Attempt, a.rec.Start)
	names := []string{own}
	if a.key.Attempt == 1 && a.rec.Start == 1 {
		names = []string{msg.CanonicalOutput(a.key.Workflow, a.key.Task), own}
	}
	for _, name := range names {
		stored, err := a.createOutput(ctx, name, output)
		if err != nil {
			return "", err
		}
		if stored {
			return msg.FormatBlobRef(name, hex.EncodeToString(sum[:])), nil
		}
	}
	return "", fault.Newf(fault.Corrupt, "%q holds another output already", own)
}

// createOutput reports whether name holds output now. It goes on until the
// attempt is known to be somebody else's.
func (a *attempt) createOutput(ctx context.Context, name string, output []byte) (bool, error) {
	stored := false
	var denied time.Time // since when
	err := a.persist(ctx, func(ctx context.Context) error {
		if a.taken.Load() {
			return errTaken
		}
		err := a.h.conf.Store.Outputs.Put(ctx, name, output)
		if fault.Is(err, fault.Denied) {
			now := a.h.conf.Scheduler.Now()
			if denied.IsZero() {
				denied = now
			}
			if now.Sub(denied) >= deniedFor {
				return fault.Wrapf(fault.Invalid, err, "no right to do so for %v", deniedFor)
			}
			return err
		}
		denied = time.Time{}
		if fault.Is(err, fault.Exists) {
			var there []byte
			there, err = a.h.conf.Store.Outputs.Get(ctx, name)
			stored = err == nil && bytes.Equal(there, output)
			return err
		}
		stored = err == nil
		return err
	})
	return stored, err
}

// fetchRefs reads the references of the parents where the message only names
// the blob that holds them.
func (a *attempt) fetchRefs(ctx context.Context, task *msg.Task) error {
	if task.UpstreamRef == "" {
		return nil
	}
	body, err := a.get(ctx, task.UpstreamRef)
	if err != nil {
		return err
	}
	refs, err := msg.DecodeRefs(body)
	if err != nil {
		return err
	}
	task.Upstream, task.UpstreamRef = &refs, ""
	return nil
}

// fetch returns the output that ref points to. Fails with fault.Corrupt where
// it is not what the reference says.
func (a *attempt) fetch(ctx context.Context, ref string) ([]byte, error) {
	parsed, err := msg.ParseOutputRef(ref)
	if err != nil {
		return nil, err
	}
	if parsed.Blob == "" {
		return []byte(parsed.Inline), nil
	}
	body, err := a.get(ctx, parsed.Blob)
	if err != nil {
		return nil, err
	}
	if parsed.MD5 != "" {
		if sum := md5.Sum(body); hex.EncodeToString(sum[:]) != parsed.MD5 {
			return nil, fault.Newf(fault.Corrupt, "output %q is not the one that its reference names", parsed.Blob)
		}
	}
	return body, nil
}

func (a *attempt) get(ctx context.Context, name string) ([]byte, error) {
	var body []byte
	err := a.h.retry(ctx, 5, func(ctx context.Context) (err error) {
		body, err = a.h.conf.Store.Outputs.Get(ctx, name)
		return err
	})
	return body, err
}

// Unprepare classifies an error of Start.Fetch for a Runner: it is Unprepared
// where the store was at fault and Impossible where the data is: missing or damaged
// inputs fail the attempt, an unreachable store does not.
func Unprepare(err error) Outcome {
	kind := Impossible
	if uncertain(err) {
		kind = Unprepared
	}
	return Outcome{Kind: kind, ExitCode: -1, Error: "the outputs of its parents cannot be read: " + err.Error()}
}
