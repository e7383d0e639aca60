package storetest

import (
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"jobq/core/fault"
	"jobq/core/port"
)

const inboxName = "main-workflow-completions"

// calls is every kind of call that differential makes.
var calls = map[string]func(*machine){
	"CreateDefinition": func(m *machine) {
		wf, body := m.workflow(), m.text()
		if m.verdict(m.store().States.CreateDefinition(m.ctx.Context(), wf, []byte(body)), vacant(m.definitions, wf)) {
			m.definitions[wf] = body
		}
	},
	"Definition": func(m *machine) {
		wf := m.workflow()
		body, err := m.store().States.Definition(m.ctx.Context(), wf)
		if m.verdict(err, absent(m.definitions, wf)) {
			m.equal(string(body), m.definitions[wf])
		}
	},
	"DeleteDefinition": func(m *machine) {
		wf := m.workflow()
		m.verdict(m.store().States.DeleteDefinition(m.ctx.Context(), wf), success)
		delete(m.definitions, wf)
	},
	"CreateState": func(m *machine) {
		wf, body := m.workflow(), m.text()
		tag, err := m.store().States.Create(m.ctx.Context(), wf, []byte(body))
		if m.wrote(tag, err, vacant(m.states, wf)) {
			m.states[wf] = versioned{body, tag}
		}
	},
	"Load": func(m *machine) {
		wf := m.workflow()
		known := m.tag(m.states[wf].tag)
		doc, err := m.store().States.Load(m.ctx.Context(), wf, known)
		if !m.verdict(err, absent(m.states, wf)) {
			return
		}
		want := port.Document{Body: []byte(m.states[wf].value), Tag: m.states[wf].tag}
		if known == want.Tag {
			want = port.Document{Tag: known, Unchanged: true}
		}
		m.equal(doc, want)
	},
	"Save": func(m *machine) {
		wf, body := m.workflow(), m.text()
		ifMatch := m.tag(m.states[wf].tag)
		tag, err := m.store().States.Save(m.ctx.Context(), wf, []byte(body), ifMatch)
		if m.wrote(tag, err, swap(m.states, wf, ifMatch)) {
			m.states[wf] = versioned{body, tag}
		}
	},
	"CreateRecord": func(m *machine) {
		k, body := m.recordKey(), m.text()
		tag, err := m.store().Records.Create(m.ctx.Context(), k, port.Record{Owner: body, Body: []byte(body)})
		if m.wrote(tag, err, vacant(m.records, k)) {
			m.records[k] = versioned{body, tag}
		}
	},
	"ReadRecord": func(m *machine) {
		k := m.recordKey()
		got, err := m.store().Records.Read(m.ctx.Context(), k)
		if m.verdict(err, absent(m.records, k)) {
			m.equal([]string{got.Owner, string(got.Body), string(got.Tag)}, []string{m.records[k].value, m.records[k].value, string(m.records[k].tag)})
		}
	},
	"ChangeRecord": func(m *machine) {
		k, body := m.recordKey(), m.text()
		ifMatch := m.tag(m.records[k].tag)
		tag, err := m.store().Records.Change(m.ctx.Context(), k, port.Record{Owner: body, Body: []byte(body)}, ifMatch)
		if m.wrote(tag, err, swap(m.records, k, ifMatch)) {
			m.records[k] = versioned{body, tag}
		}
	},
	"DeleteRecord": func(m *machine) {
		k := m.recordKey()
		ifMatch := m.tag(m.records[k].tag)
		want := swap(m.records, k, ifMatch)
		if absent(m.records, k) == fault.NotFound {
			want = success
		}
		if m.verdict(m.store().Records.Delete(m.ctx.Context(), k, ifMatch), want) {
			delete(m.records, k)
		}
	},
	"DeleteRecords": func(m *machine) {
		wf := m.workflow()
		last := uint32(rapid.IntRange(0, 3).Draw(m.T, "last attempt"))
		m.verdict(m.store().Records.DeleteAll(m.ctx.Context(), wf, last), success)
		for k := range m.records {
			if k.Workflow == wf && k.Attempt <= last {
				delete(m.records, k)
			}
		}
	},
	"GetRow": func(m *machine) {
		wf := m.workflow()
		got, err := m.store().Index.Get(m.ctx.Context(), wf)
		if m.verdict(err, absent(m.rows, wf)) {
			m.equal(got, m.rows[wf])
		}
	},
	"Project": func(m *machine) {
		r := row(m.workflow(), time.Duration(rapid.IntRange(0, 3).Draw(m.T, "age"))*time.Minute)
		r.Status, r.Error = m.pick("status", "running", "failed", "completed"), m.text()
		ifMatch := m.tag(m.rows[r.Workflow].Tag)
		tag, err := m.store().Index.Project(m.ctx.Context(), r, ifMatch)
		if m.wrote(tag, err, m.row(r.Workflow, ifMatch)) {
			m.rows[r.Workflow] = port.StoredRow{Row: r, Cancel: m.rows[r.Workflow].Cancel, Tag: tag}
		}
	},
	"SetCancel": func(m *machine) {
		wf := m.workflow()
		c := port.CancelRequest{Requested: rapid.Bool().Draw(m.T, "requested"), Epoch: rapid.Uint64Range(0, 2).Draw(m.T, "epoch")}
		ifMatch := m.tag(m.rows[wf].Tag)
		tag, err := m.store().Index.SetCancel(m.ctx.Context(), wf, c, ifMatch)
		if m.wrote(tag, err, m.row(wf, ifMatch)) {
			r := m.rows[wf]
			r.Workflow, r.Cancel, r.Tag = wf, c, tag
			m.rows[wf] = r
		}
	},
	"DeleteRow": func(m *machine) {
		wf := m.workflow()
		m.verdict(m.store().Index.Delete(m.ctx.Context(), wf), success)
		delete(m.rows, wf)
	},
	"ListRows": func(m *machine) {
		f := port.Filter{Prefix: m.pick("prefix", "", "w", "w2", "x"), Limit: rapid.IntRange(1, 4).Draw(m.T, "limit")}
		if rapid.Bool().Draw(m.T, "by status") {
			f.Status = []string{"failed", "completed"}[:rapid.IntRange(1, 2).Draw(m.T, "statuses")]
		}
		var all []port.StoredRow
		for {
			rows, next, err := m.store().Index.List(m.ctx.Context(), f)
			m.verdict(err, success)
			if all = append(all, rows...); next == "" || len(all) > len(m.rows) {
				break
			}
			f.After = next
		}
		m.equal(all, m.list(f))
	},
	"CancelRequests": func(m *machine) {
		rows, err := m.store().Index.CancelRequests(m.ctx.Context(), 10)
		m.verdict(err, success)
		var ids []string
		for _, r := range rows {
			ids = append(ids, r.Workflow)
		}
		slices.Sort(ids)
		m.equal(ids, m.requests())
	},
	"PutDue": func(m *machine) {
		d := port.Due{Key: m.pick("key", "w", "w!1", "v"), Workflow: "w", StateVersion: rapid.Uint64Range(0, 2).Draw(m.T, "version"), DueAt: birth.Add(time.Duration(rapid.IntRange(0, 3).Draw(m.T, "due")) * time.Minute), Note: m.text()}
		m.verdict(m.store().Index.PutDue(m.ctx.Context(), d), success)
		if m.dues[d.Key].StateVersion <= d.StateVersion {
			m.dues[d.Key] = d
		}
	},
	"DeleteDue": func(m *machine) {
		key, last := m.pick("key", "w", "w!1", "v"), rapid.Uint64Range(0, 2).Draw(m.T, "last")
		m.verdict(m.store().Index.DeleteDue(m.ctx.Context(), key, last), success)
		if m.dues[key].StateVersion <= last {
			delete(m.dues, key)
		}
	},
	"DueBefore": func(m *machine) {
		at, most := birth.Add(2*time.Minute), rapid.IntRange(0, 3).Draw(m.T, "most")
		due, err := m.store().Index.DueBefore(m.ctx.Context(), at, most)
		m.verdict(err, success)
		want := m.due(at)
		m.equal(due, want[:min(most, len(want))])
	},
	"PutBlob": func(m *machine) {
		name, body := m.pick("name", "w/a", "w/a/b", "w2"), strings.Repeat(m.text(), rapid.SampledFrom([]int{0, 1, 50_000}).Draw(m.T, "times"))
		if m.verdict(m.store().Outputs.Put(m.ctx.Context(), name, []byte(body)), vacant(m.outputs, name)) {
			m.outputs[name] = body
		}
	},
	"GetBlob": func(m *machine) {
		name := m.pick("name", "w/a", "w/a/b", "w2")
		body, err := m.store().Outputs.Get(m.ctx.Context(), name)
		if m.verdict(err, absent(m.outputs, name)) && string(body) != m.outputs[name] {
			m.Fatalf("Get(%s) gave %d bytes that differ from the %d stored", name, len(body), len(m.outputs[name]))
		}
	},
	"ListBlobs": func(m *machine) {
		prefix := m.pick("prefix", "", "w/", "w2", "x")
		m.equal(m.names(m.store().Outputs.List(m.ctx.Context(), prefix)), namesBelow(m.outputs, prefix))
	},
	"DeleteBlobs": func(m *machine) {
		prefix := m.pick("prefix", "w/a/", "w2", "x")
		m.verdict(m.store().Outputs.DeletePrefix(m.ctx.Context(), prefix, nil), success)
		deleteBelow(m.outputs, prefix)
	},
	"Append": func(m *machine) {
		name, data := m.pick("name", "w/a", "w/a/b", "w2"), m.text()
		m.verdict(m.store().TaskLogs.Append(m.ctx.Context(), name, []byte(data)), success)
		m.streams[name] += data
	},
	"ReadLog": func(m *machine) {
		name, offset, most := m.pick("name", "w/a", "w/a/b", "w2"), rapid.IntRange(0, 20).Draw(m.T, "offset"), rapid.IntRange(0, 20).Draw(m.T, "most")
		data, err := m.store().TaskLogs.Read(m.ctx.Context(), name, int64(offset), most)
		m.verdict(err, success)
		rest := m.streams[name][min(offset, len(m.streams[name])):]
		m.equal(string(data), rest[:min(most, len(rest))])
		size, err := m.store().TaskLogs.Size(m.ctx.Context(), name)
		m.verdict(err, success)
		m.equal(size, int64(len(m.streams[name])))
	},
	"ListLogs": func(m *machine) {
		prefix := m.pick("prefix", "", "w/", "w2", "x")
		m.equal(m.names(m.store().TaskLogs.Names(m.ctx.Context(), prefix)), namesBelow(m.streams, prefix))
	},
	"DeleteLogs": func(m *machine) {
		prefix := m.pick("prefix", "w/a/", "w2", "x")
		m.verdict(m.store().TaskLogs.DeletePrefix(m.ctx.Context(), prefix, nil), success)
		deleteBelow(m.streams, prefix)
	},
	"AcquireLease": func(m *machine) {
		name, holder := m.pick("lease", "x", "y"), m.pick("holder", "me", "you")
		want := success
		if current := m.leases[name]; current != "" && current != holder {
			want = fault.Conflict
		}
		if m.verdict(m.store().Leases.Acquire(m.ctx.Context(), name, holder, longLock), want) {
			m.leases[name] = holder
		}
	},
	"ReleaseLease": func(m *machine) {
		name, holder := m.pick("lease", "x", "y"), m.pick("holder", "me", "you")
		m.verdict(m.store().Leases.Release(m.ctx.Context(), name, holder), success)
		if m.leases[name] == holder {
			delete(m.leases, name)
		}
	},
	"LeaseHolder": func(m *machine) {
		name := m.pick("lease", "x", "y")
		holder, err := m.store().Leases.Holder(m.ctx.Context(), name)
		m.verdict(err, success)
		m.equal(holder, m.leases[name])
	},
	"Send":        sendCall,
	"Receive":     receiveCall,
	"Extend":      extendCall,
	"Acknowledge": acknowledgeCall,
	"Release":     releaseCall,
	"Poison":      poisonCall,
	"CountQueue":  countCall,
	"Peek":        peekCall,
	"Clear":       clearCall,
	"Finish":      finishCall,
}

// names collects a listing.
func (m *machine) names(list func(func(string, error) bool)) []string {
	var all []string
	for name, err := range list {
		if err != nil {
			m.verdict(err, success)
		}
		all = append(all, name)
	}
	m.reached[m.call]++
	return all
}

// queue returns a queue or the poison queue of one.
func (m *machine) queue() port.Queue {
	q := m.store().Queues.Queue(m.pick("queue", "cpu", inboxName))
	if rapid.IntRange(0, 4).Draw(m.T, "poison queue") == 0 {
		return q.PoisonQueue()
	}
	return q
}

// delivery returns one that was received at some time, from the newest back.
func (m *machine) delivery() (d received, q port.Queue, found bool) {
	if len(m.deliveries) == 0 {
		return received{}, nil, false
	}
	d = m.deliveries[len(m.deliveries)-1-rapid.IntRange(0, min(3, len(m.deliveries)-1)).Draw(m.T, "delivery")]
	return d, m.store().Queues.Queue(d.queue), true
}

func sendCall(m *machine) {
	q := m.queue()
	messages := make([]port.Message, rapid.IntRange(1, 3).Draw(m.T, "messages"))
	for i := range messages {
		messages[i] = m.message()
		if rapid.IntRange(0, 4).Draw(m.T, "delayed") == 0 {
			messages[i].Delay = longLock
		}
	}
	errs := q.Send(m.ctx.Context(), messages)
	if q.Props().NoSend {
		for _, err := range errs {
			m.verdict(err, fault.Invalid)
		}
		return
	}
	for _, err := range errs {
		m.verdict(err, success)
	}
	m.reached[m.call]++
	for _, msg := range messages {
		m.queues[q.Name()] = append(m.queues[q.Name()], &modelMessage{body: string(msg.Body), hidden: msg.Delay > 0})
	}
}

func receiveCall(m *machine) {
	q := m.queue()
	most := rapid.IntRange(1, 3).Draw(m.T, "most")
	ds, err := q.Receive(m.ctx.Context(), port.ReceiveOptions{Max: most, Lock: longLock})
	if m.verdict(err, success); len(ds) != min(most, m.visible(q.Name())) {
		m.Fatalf("Receive(%d) gave %d messages, the model has %d visible", most, len(ds), m.visible(q.Name()))
	}
	for _, d := range ds {
		msg := m.find(q.Name(), string(d.Body))
		if msg == nil || msg.hidden {
			m.Fatalf("Receive gave %q, which the model has hidden or removed", d.Body)
		}
		msg.count++
		msg.delivered(d.Receipt)
		m.equal([]any{d.Count, d.Reason}, []any{msg.count, msg.reason})
		m.deliveries = append(m.deliveries, received{q.Name(), d})
	}
}

func extendCall(m *machine) {
	d, q, found := m.delivery()
	if !found {
		return
	}
	extended := d.Delivery
	if m.verdict(q.Extend(m.ctx.Context(), &extended, longLock), m.holds(d.queue, d.Delivery)) {
		m.of(d.queue, d.Delivery).delivered(extended.Receipt)
		m.deliveries = append(m.deliveries, received{d.queue, extended})
	}
}

func acknowledgeCall(m *machine) {
	d, q, found := m.delivery()
	if !found {
		return
	}
	errs := q.Acknowledge(m.ctx.Context(), []port.Delivery{d.Delivery})
	if errs == nil {
		errs = []error{nil}
	}
	want := m.acknowledges(d.queue, d.Delivery)
	if want == fault.LeaseLost && errs[0] == nil && q.Props().LostLooksGone {
		// It counts as done and has removed nothing, which Count will show.
		m.reached[m.call]++
		return
	}
	if m.verdict(errs[0], want) {
		m.remove(d.queue, m.of(d.queue, d.Delivery))
	}
}

func releaseCall(m *machine) {
	d, q, found := m.delivery()
	if !found {
		return
	}
	delay := time.Duration(rapid.IntRange(0, 1).Draw(m.T, "delay")) * longLock
	if q.Props().NoSend {
		delay = 0
	}
	if m.verdict(q.Release(m.ctx.Context(), d.Delivery, delay), m.holds(d.queue, d.Delivery)) {
		msg := m.of(d.queue, d.Delivery)
		msg.delivered("released")
		msg.hidden, msg.locked = delay > 0, false
		if !q.Props().NativeRelease {
			msg.receipts = nil
		}
	}
}

func poisonCall(m *machine) {
	d, q, found := m.delivery()
	if !found {
		return
	}
	if q.Name() != "cpu" && q.Name() != inboxName {
		// Nobody poisons what is poisoned.
		return
	}
	reason := m.text()
	if m.verdict(q.Poison(m.ctx.Context(), d.Delivery, reason), m.holds(d.queue, d.Delivery)) {
		m.remove(d.queue, m.of(d.queue, d.Delivery))
		poison := q.PoisonQueue().Name()
		m.queues[poison] = append(m.queues[poison], &modelMessage{body: string(d.Body), reason: reason})
	}
}

func countCall(m *machine) {
	q := m.queue()
	if !q.Props().CountReadable {
		_, err := q.Count(m.ctx.Context())
		m.verdict(err, fault.Invalid)
		m.reached[m.call]++
		return
	}
	n, err := q.Count(m.ctx.Context())
	m.verdict(err, success)
	m.equal(n, len(m.queues[q.Name()]))
}

func peekCall(m *machine) {
	q := m.queue()
	ds, err := q.Peek(m.ctx.Context(), 100)
	m.verdict(err, success)
	seen := map[string]bool{}
	for _, d := range ds {
		if msg := m.find(q.Name(), string(d.Body)); msg == nil || seen[string(d.Body)] {
			m.Fatalf("Peek gave %q, which the model has removed or gave already", d.Body)
		}
		seen[string(d.Body)] = true
	}
	for _, msg := range m.queues[q.Name()] {
		if !msg.hidden && !seen[msg.body] {
			m.Fatalf("Peek did not give %q, which is visible", msg.body)
		}
	}
}

func clearCall(m *machine) {
	q := m.queue()
	// Rarely, so that the others have something to work on.
	if rapid.IntRange(0, 4).Draw(m.T, "clear") > 0 {
		return
	}
	_, err := q.Clear(m.ctx.Context())
	m.verdict(err, success)
	m.clear(q.Name(), q.Props().ClearLeavesLocked)
}

func finishCall(m *machine) {
	s := m.store()
	if s.Finisher == nil {
		// The driver cannot make several writes one, and says so.
		m.reached[m.call]++
		return
	}
	d, _, found := m.delivery()
	if !found {
		return
	}
	k, body, completion := m.recordKey(), m.text(), m.message()
	ifMatch := m.tag(m.records[k].tag)
	tag, err := s.Finisher.Finish(m.ctx.Context(), port.Finish{
		Key: k, Record: port.Record{Owner: body, Body: []byte(body)}, IfMatch: ifMatch,
		Inbox: inboxName, Completion: completion, Queue: d.queue, Delivery: d.Delivery,
	})
	var allowed []fault.Code
	for _, code := range []fault.Code{swap(m.records, k, ifMatch), m.acknowledges(d.queue, d.Delivery)} {
		if code != success {
			allowed = append(allowed, code)
		}
	}
	if allowed == nil {
		allowed = []fault.Code{success}
	}
	if m.wrote(tag, err, allowed...) {
		m.records[k] = versioned{body, tag}
		m.remove(d.queue, m.of(d.queue, d.Delivery))
		m.queues[inboxName] = append(m.queues[inboxName], &modelMessage{body: string(completion.Body)})
	}
}
