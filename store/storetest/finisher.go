package storetest

import (
	"testing"

	"jobq/core/fault"
	"jobq/core/port"
)

// finishing is a task in the hands of a worker.
type finishing struct {
	env
	tasks, inbox port.Queue
	call         port.Finish
}

func finishCase(test func(t *testing.T, f finishing)) func(*testing.T, env) {
	return func(t *testing.T, e env) {
		if e.store.Finisher == nil {
			t.Skip("the driver makes no several writes one")
		}
		f := finishing{env: e, tasks: e.open(t, "cpu"), inbox: e.open(t, "main-workflow-completions")}
		send(t, f.tasks, texts("task")...)
		d := receiveOne(t, f.tasks, 2*e.tick)
		tag, err := e.store.Records.Create(t.Context(), key("a"), port.Record{Owner: "me", Body: []byte("held")})
		ok(t, err, "Create")
		f.call = port.Finish{
			Key: key("a"), Record: port.Record{Body: []byte("ended")}, IfMatch: tag,
			Inbox: f.inbox.Name(), Completion: port.Message{ID: "c", Body: []byte("completion")},
			Queue: f.tasks.Name(), Delivery: d,
		}
		test(t, f)
	}
}

// untouched checks that a refused call wrote nothing.
func (f finishing) untouched(t *testing.T, body string) {
	t.Helper()
	got, err := f.store.Records.Read(t.Context(), key("a"))
	ok(t, err, "Read")
	same(t, string(got.Body), body, "the record after a refused Finish")
	same(t, len(receive(t, f.inbox, 1, longLock)), 0, "completions after a refused Finish")
	same(t, string(receiveOne(t, f.tasks, longLock).Body), "task", "the task's message after a refused Finish")
}

var finisherCases = []testCase{
	{"record, completion and acknowledgement are one", finishCase(func(t *testing.T, f finishing) {
		tag, err := f.store.Finisher.Finish(t.Context(), f.call)
		ok(t, err, "Finish")
		got, err := f.store.Records.Read(t.Context(), key("a"))
		ok(t, err, "Read")
		same(t, []any{string(got.Body), got.Owner, got.Tag}, []any{"ended", "", tag}, "the record")
		d := receiveOne(t, f.inbox, longLock)
		same(t, []any{d.ID, string(d.Body), d.Count}, []any{"c", "completion", 1}, "the completion")
		f.pass(3)
		same(t, len(receive(t, f.tasks, 1, longLock)), 0, "messages of the task queue")
	})},
	{"a record that changed refuses everything", finishCase(func(t *testing.T, f finishing) {
		_, err := f.store.Records.Change(t.Context(), key("a"), port.Record{Body: []byte("fenced")}, f.call.IfMatch)
		ok(t, err, "Change")
		_, err = f.store.Finisher.Finish(t.Context(), f.call)
		fails(t, err, fault.Conflict, "Finish")
		f.untouched(t, "fenced")
	})},
	{"an absent record refuses everything", finishCase(func(t *testing.T, f finishing) {
		f.call.Key = key("b")
		_, err := f.store.Finisher.Finish(t.Context(), f.call)
		fails(t, err, fault.Conflict, "Finish")
		f.untouched(t, "held")
	})},
	{"a receipt that is not the newest refuses everything", finishCase(func(t *testing.T, f finishing) {
		d := receiveOne(t, f.tasks, longLock)
		_, err := f.store.Finisher.Finish(t.Context(), f.call)
		fails(t, err, fault.LeaseLost, "Finish")
		ok(t, f.tasks.Release(t.Context(), d, 0), "Release")
		f.untouched(t, "held")
	})},
	{"a completion above the limit refuses everything", finishCase(func(t *testing.T, f finishing) {
		limit := f.inbox.Props().MaxMessage
		if limit == 0 {
			t.Skip("the driver declares no limit")
		}
		f.call.Completion.Body = make([]byte, limit+1)
		_, err := f.store.Finisher.Finish(t.Context(), f.call)
		fails(t, err, fault.TooLarge, "Finish")
		f.untouched(t, "held")
	})},
	{"a missing inbox refuses everything", finishCase(func(t *testing.T, f finishing) {
		f.call.Inbox = "absent"
		_, err := f.store.Finisher.Finish(t.Context(), f.call)
		fails(t, err, fault.NotFound, "Finish")
		f.untouched(t, "held")
	})},
	{"a message that is gone counts as acknowledged", finishCase(func(t *testing.T, f finishing) {
		acknowledge(t, f.tasks, f.call.Delivery)
		_, err := f.store.Finisher.Finish(t.Context(), f.call)
		ok(t, err, "Finish")
		same(t, string(receiveOne(t, f.inbox, longLock).Body), "completion", "the completion")
	})},
}
