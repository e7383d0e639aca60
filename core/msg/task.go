package msg

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"jobq/core/fault"
)

// Routing keys in the kwargs of a message. Those after keyLegacyRefs are ours.
const (
	keyWorkflow   = "__workflow_id"
	keyTask       = "__workflow_task"
	keyTaskLegacy = "__task_name"
	keyAttempt    = "__attempt_no"
	keyRefs       = "__upstream_outputs_compact"
	keyLegacyRefs = "__upstream_output_refs"
	keyRefsBlob   = "__upstream_outputs_ref"
	keyPrefix     = "__workflow_prefix"
	keyQueues     = "__workflow_queues"
	keyInbox      = "__workflow_inbox"
	keyEpoch      = "__workflow_epoch"
	keyStatuses   = "__upstream_statuses"
	keyTimeout    = "__timeout_s"

	reserved = "__"
)

// EncodeTask returns the message of t. Kwargs whose key starts with "__" are
// left out. An empty t.ID becomes the deterministic id of ai4s-jobq. Fails with
// fault.Invalid when a value is not JSON or t is only half addressed.
func EncodeTask(t Task) ([]byte, error) {
	if (t.Workflow == "") != (t.Name == "") {
		return nil, fault.New(fault.Invalid, "a task message needs both a workflow and a task name, or neither")
	}
	if t.Upstream != nil && t.UpstreamRef != "" {
		return nil, fault.New(fault.Invalid, "a task message carries its upstream references or the blob that holds them, not both")
	}
	o := newObject(usualSize)
	for _, k := range t.Kwargs {
		if strings.HasPrefix(k.Key, reserved) {
			continue
		}
		if !json.Valid(k.Value) {
			return nil, fault.Newf(fault.Invalid, "kwargs entry %q is not valid JSON", k.Key)
		}
		o.raw(k.Key, k.Value)
	}
	if t.Workflow != "" {
		t.encodeRouting(o)
	}
	if t.TimeoutSeconds > 0 && !math.IsInf(t.TimeoutSeconds, 0) {
		o.raw(keyTimeout, strconv.AppendFloat(nil, t.TimeoutSeconds, 'f', -1, 64))
	}
	return encodeEnvelope(o.end(), t.ReplyRequested, t.NumRetries, t.ID), nil
}

func (t *Task) encodeRouting(o *object) {
	o.text(keyWorkflow, t.Workflow)
	o.text(keyTask, t.Name)
	if t.Attempt > 0 {
		o.uint(keyAttempt, uint64(t.Attempt))
	}
	if t.Upstream != nil && !t.Upstream.empty() {
		o.key(keyRefs).buf = t.Upstream.append(o.buf)
	}
	for _, addition := range [...]struct{ key, value string }{
		{keyRefsBlob, t.UpstreamRef}, {keyPrefix, t.Prefix}, {keyQueues, t.Queues}, {keyInbox, t.Inbox},
	} {
		if addition.value != "" {
			o.text(addition.key, addition.value)
		}
	}
	if t.Epoch > 0 {
		o.uint(keyEpoch, t.Epoch)
	}
	if len(t.Statuses) > 0 {
		byStatus := newObject(0)
		for _, word := range slices.Sorted(maps.Keys(t.Statuses)) {
			byStatus.texts(word, t.Statuses[word])
		}
		o.key(keyStatuses).buf = append(o.buf, byStatus.end()...)
	}
}

// DecodeTask reads a task message. Keys that it does not know are ignored. An
// empty map of references reads as nil. Fails with fault.Invalid.
func DecodeTask(body []byte) (Task, error) {
	e, kwargs, err := decodeEnvelope(body)
	if err != nil {
		return Task{}, err
	}
	t := Task{ID: e.ID, NumRetries: e.NumRetries, ReplyRequested: e.ReplyRequested}
	var legacyName string
	var legacy *Refs
	for _, k := range kwargs {
		switch k.Key {
		case keyTaskLegacy:
			err = decodeMember(k, &legacyName)
		case keyLegacyRefs:
			legacy, err = decodeLegacyRefs(k.Value)
		default:
			err = t.decodeKwarg(k)
		}
		if err != nil {
			return Task{}, err
		}
	}
	if t.Name == "" {
		t.Name = legacyName
	}
	if t.Upstream == nil && t.UpstreamRef == "" {
		t.Upstream = legacy
	}
	if (t.Workflow == "") != (t.Name == "") {
		return Task{}, fault.Newf(fault.Invalid, "the message names a workflow %q and a task %q; it needs both or neither", t.Workflow, t.Name)
	}
	return t, nil
}

func (t *Task) decodeKwarg(k Kwarg) error {
	switch k.Key {
	case keyWorkflow:
		return decodeMember(k, &t.Workflow)
	case keyTask:
		return decodeMember(k, &t.Name)
	case keyAttempt:
		return decodeMember(k, &t.Attempt)
	case keyRefs:
		refs, err := decodeRefsMember(k.Value)
		if err == nil && !refs.empty() {
			t.Upstream, t.UpstreamRef = &refs, ""
		}
		return err
	case keyRefsBlob:
		if t.Upstream != nil {
			return nil
		}
		return decodeMember(k, &t.UpstreamRef)
	case keyPrefix:
		return decodeMember(k, &t.Prefix)
	case keyQueues:
		return decodeMember(k, &t.Queues)
	case keyInbox:
		return decodeMember(k, &t.Inbox)
	case keyEpoch:
		return decodeMember(k, &t.Epoch)
	case keyStatuses:
		return decodeMember(k, &t.Statuses)
	case keyTimeout:
		if err := decodeMember(k, &t.TimeoutSeconds); err != nil {
			return err
		}
		if t.TimeoutSeconds < 0 {
			return fault.Newf(fault.Invalid, "the message has a negative %q", k.Key)
		}
		return nil
	}
	if !strings.HasPrefix(k.Key, reserved) {
		t.Kwargs = append(t.Kwargs, k)
	}
	return nil
}

// Kwarg returns the value of the kwarg called key.
func (t *Task) Kwarg(key string) (json.RawMessage, bool) {
	for _, k := range t.Kwargs {
		if k.Key == key {
			return k.Value, true
		}
	}
	return nil, false
}
