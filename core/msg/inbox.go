package msg

import (
	"encoding/json"
	"time"

	"jobq/core/fault"
)

// Keys that tell the kinds of inbox messages apart. The first is that of
// ai4s-jobq and holds JSON text; the others are ours and hold objects.
const (
	keyCompletion = "__completion_body"
	keyWake       = "__wake"
	keyCommand    = "__command"
)

// EncodeCompletion returns the message that reports c. Its members are those
// of ai4s-jobq in its order, then ours. Fails with fault.Invalid when c names
// no workflow or no task.
func EncodeCompletion(c Completion) ([]byte, error) {
	if c.Workflow == "" || c.Task == "" {
		return nil, fault.New(fault.Invalid, "a completion needs a workflow and a task name")
	}
	b := newObject(2 * usualSize)
	b.text("workflow_id", c.Workflow)
	b.text("task_name", c.Task)
	b.bool("success", c.Success)
	b.textOrNull("output_ref", c.OutputRef)
	b.textOrNull("error", c.Error)
	if c.Attempt > 0 {
		b.uint("attempt_no", uint64(c.Attempt))
	}
	if c.ExitCode != nil {
		b.int("exit_code", int64(*c.ExitCode))
	}
	optionalText(b, "signal", c.Signal)
	optionalText(b, "reason", string(c.Reason))
	optionalText(b, "worker", c.Worker)
	if c.Start > 0 {
		b.uint("start", uint64(c.Start))
	}
	optionalTime(b, "started_at", c.StartedAt)
	optionalTime(b, "ended_at", c.EndedAt)
	optionalText(b, "log", c.Log)

	report := string(b.end())
	kwargs := newObject(usualSize + len(report))
	kwargs.text(keyCompletion, report)
	return encodeEnvelope(kwargs.end(), false, 0, ""), nil
}

func optionalText(o *object, key, v string) {
	if v != "" {
		o.text(key, v)
	}
}

func optionalTime(o *object, key string, t time.Time) {
	if !t.IsZero() {
		o.text(key, t.UTC().Format(time.RFC3339Nano))
	}
}

// EncodeWake returns the message that asks a coordinator to look at a workflow.
func EncodeWake(w Wake) ([]byte, error) { return encodeOwn(keyWake, w.Workflow, w) }

// EncodeCommand returns the message that carries c. Its Args must be JSON.
func EncodeCommand(c Command) ([]byte, error) { return encodeOwn(keyCommand, c.Workflow, c) }

func encodeOwn(key, workflow string, v any) ([]byte, error) {
	if workflow == "" {
		return nil, fault.New(fault.Invalid, "a message to the inbox needs a workflow")
	}
	body, err := json.Marshal(v)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "a message to the inbox cannot be written as JSON")
	}
	kwargs := newObject(usualSize)
	kwargs.raw(key, body)
	return encodeEnvelope(kwargs.end(), false, 0, ""), nil
}

// DecodeInbox reads a message of the completion queue. Without any of the
// known keys the kwargs themselves are tried as a completion. Fails with
// fault.Invalid.
func DecodeInbox(body []byte) (Inbox, error) {
	if c, ok := scanCompletion(body); ok {
		return Inbox{Completion: c}, nil
	}
	return decodeInbox(body)
}

// decodeInbox reads every form.
func decodeInbox(body []byte) (Inbox, error) {
	_, kwargs, err := decodeEnvelope(body)
	if err != nil {
		return Inbox{}, err
	}
	for _, k := range kwargs {
		switch k.Key {
		case keyCompletion:
			var text string
			if err := decodeMember(k, &text); err != nil {
				return Inbox{}, err
			}
			return decodeCompletion([]byte(text))
		case keyWake:
			return decodeWake(k)
		case keyCommand:
			return decodeCommand(k)
		}
	}
	whole := newObject(usualSize)
	for _, k := range kwargs {
		whole.raw(k.Key, k.Value)
	}
	return decodeCompletion(whole.end())
}

func decodeCompletion(body []byte) (Inbox, error) {
	// The outer members shadow those of Completion: what is required must be
	// told from what is absent.
	var c struct {
		Completion
		Success *bool `json:"success"`
	}
	if err := json.Unmarshal(body, &c); err != nil {
		return Inbox{}, fault.Wrap(fault.Invalid, err, "the message holds no completion")
	}
	if c.Workflow == "" || c.Task == "" || c.Success == nil {
		return Inbox{}, fault.New(fault.Invalid, `the message holds no completion: "workflow_id", "task_name" and "success" are required`)
	}
	c.Completion.Success = *c.Success
	return Inbox{Completion: &c.Completion}, nil
}

func decodeWake(k Kwarg) (Inbox, error) {
	var w Wake
	if err := decodeMember(k, &w); err != nil {
		return Inbox{}, err
	}
	if w.Workflow == "" {
		return Inbox{}, fault.New(fault.Invalid, "the wake names no workflow")
	}
	return Inbox{Wake: &w}, nil
}

func decodeCommand(k Kwarg) (Inbox, error) {
	var c Command
	if err := decodeMember(k, &c); err != nil {
		return Inbox{}, err
	}
	if c.Workflow == "" || c.ID == "" || c.Kind == "" {
		return Inbox{}, fault.New(fault.Invalid, "the command needs an id, a workflow and a kind")
	}
	return Inbox{Command: &c}, nil
}
