package storetest

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"jobq/core/fault"
	"jobq/core/port"
)

// success stands among fault codes for a call that gave no error.
const success fault.Code = 255

func codeOf(err error) fault.Code {
	if err == nil {
		return success
	}
	return fault.CodeOf(err)
}

// model is the reference: what core/port says, in maps, one call at a time. It
// learns tags and receipts from the store and knows which one is the newest.
// Locks and delays of the operations outlive the test, so time plays no part.
type model struct {
	definitions map[string]string
	states      map[string]versioned
	records     map[port.RecordKey]versioned
	rows        map[string]port.StoredRow
	dues        map[string]port.Due
	outputs     map[string]string
	streams     map[string]string
	leases      map[string]string
	queues      map[string][]*modelMessage
}

type versioned struct {
	value string
	tag   port.Tag
}

// modelMessage is a message; its body is unique and names it.
type modelMessage struct {
	body, reason string
	count        int
	hidden       bool
	// locked says that hidden is the work of a receiver.
	locked bool
	// receipts are those of its deliveries so far, the newest last. A copy that
	// takes the place of a released message begins without any.
	receipts []string
}

// delivered notes a receipt, which hides the message.
func (msg *modelMessage) delivered(receipt string) {
	msg.hidden, msg.locked = true, true
	msg.receipts = append(msg.receipts, receipt)
}

func (msg *modelMessage) newest() string {
	if len(msg.receipts) == 0 {
		return ""
	}
	return msg.receipts[len(msg.receipts)-1]
}

func newModel() *model {
	return &model{
		definitions: map[string]string{},
		states:      map[string]versioned{},
		records:     map[port.RecordKey]versioned{},
		rows:        map[string]port.StoredRow{},
		dues:        map[string]port.Due{},
		outputs:     map[string]string{},
		streams:     map[string]string{},
		leases:      map[string]string{},
		queues:      map[string][]*modelMessage{},
	}
}

// absent is the verdict on a read of a key, vacant that on a create-only write.
func absent[K comparable, V any](values map[K]V, key K) fault.Code {
	if _, ok := values[key]; !ok {
		return fault.NotFound
	}
	return success
}

func vacant[K comparable, V any](values map[K]V, key K) fault.Code {
	if _, ok := values[key]; ok {
		return fault.Exists
	}
	return success
}

// swap is the verdict on a conditional write.
func swap[K comparable](values map[K]versioned, key K, ifMatch port.Tag) fault.Code {
	if v, ok := values[key]; !ok || v.tag != ifMatch {
		return fault.Conflict
	}
	return success
}

// row is the verdict on a write of an index row.
func (m *model) row(wf string, ifMatch port.Tag) fault.Code {
	stored, ok := m.rows[wf]
	switch {
	case ifMatch == "" && ok:
		return fault.Exists
	case ifMatch != "" && (!ok || stored.Tag != ifMatch):
		return fault.Conflict
	default:
		return success
	}
}

// list is the whole listing that f selects.
func (m *model) list(f port.Filter) []port.StoredRow {
	rows := slices.DeleteFunc(slices.Collect(maps.Values(m.rows)), func(r port.StoredRow) bool {
		return len(f.Status) > 0 && !slices.Contains(f.Status, r.Status) || !strings.HasPrefix(r.Workflow, f.Prefix)
	})
	slices.SortFunc(rows, func(a, b port.StoredRow) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), strings.Compare(b.Workflow, a.Workflow))
	})
	return rows
}

// requests are the ids of workflows with an unanswered cancel flag.
func (m *model) requests() []string {
	var ids []string
	for wf, r := range m.rows {
		if r.Cancel.Requested && r.Cancel.Epoch == 0 && (r.Status == "running" || r.Status == "pending" || r.Status == "") {
			ids = append(ids, wf)
		}
	}
	slices.Sort(ids)
	return ids
}

// due are the due rows at t, oldest first.
func (m *model) due(t time.Time) []port.Due {
	due := slices.DeleteFunc(slices.Collect(maps.Values(m.dues)), func(d port.Due) bool { return d.DueAt.After(t) })
	slices.SortFunc(due, func(a, b port.Due) int {
		return cmp.Or(a.DueAt.Compare(b.DueAt), strings.Compare(a.Key, b.Key))
	})
	return due
}

func namesBelow(values map[string]string, prefix string) []string {
	names := slices.Sorted(maps.Keys(values))
	return slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, prefix) })
}

func deleteBelow(values map[string]string, prefix string) {
	maps.DeleteFunc(values, func(name, _ string) bool { return strings.HasPrefix(name, prefix) })
}

// find returns the message with body, or nil when it is gone.
func (m *model) find(queue, body string) *modelMessage {
	for _, msg := range m.queues[queue] {
		if msg.body == body {
			return msg
		}
	}
	return nil
}

// of returns the message that a delivery delivered, or nil when it is gone.
func (m *model) of(queue string, d port.Delivery) *modelMessage {
	if msg := m.find(queue, string(d.Body)); msg != nil && slices.Contains(msg.receipts, d.Receipt) {
		return msg
	}
	return nil
}

func (m *model) remove(queue string, gone *modelMessage) {
	m.queues[queue] = slices.DeleteFunc(m.queues[queue], func(msg *modelMessage) bool { return msg == gone })
}

func (m *model) clear(queue string, leaveLocked bool) {
	m.queues[queue] = slices.DeleteFunc(m.queues[queue], func(msg *modelMessage) bool { return !leaveLocked || !msg.locked })
}

func (m *model) visible(queue string) int {
	n := 0
	for _, msg := range m.queues[queue] {
		if !msg.hidden {
			n++
		}
	}
	return n
}

// holds is the verdict on a call by the receipt of a delivery.
func (m *model) holds(queue string, d port.Delivery) fault.Code {
	if msg := m.of(queue, d); msg == nil || msg.newest() != d.Receipt {
		return fault.LeaseLost
	}
	return success
}

// acknowledges is holds where a message that is gone counts as done.
func (m *model) acknowledges(queue string, d port.Delivery) fault.Code {
	if m.of(queue, d) == nil {
		return success
	}
	return m.holds(queue, d)
}
