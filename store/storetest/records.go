package storetest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"jobq/core/fault"
	"jobq/core/port"
)

func key(task string) port.RecordKey { return port.RecordKey{Workflow: "w", Task: task, Attempt: 1} }

var recordCases = []testCase{
	{"a record is created once", func(t *testing.T, e env) {
		ctx, records := t.Context(), e.store.Records
		_, err := records.Read(ctx, key("a"))
		fails(t, err, fault.NotFound, "Read before Create")
		tag, err := records.Create(ctx, key("a"), port.Record{Owner: "me", Body: []byte("one")})
		ok(t, err, "Create")
		_, err = records.Create(ctx, key("a"), port.Record{Owner: "you", Body: []byte("two")})
		fails(t, err, fault.Exists, "Create again")
		got, err := records.Read(ctx, key("a"))
		ok(t, err, "Read")
		same(t, got.Record, port.Record{Owner: "me", Body: []byte("one")}, "Read")
		same(t, got.Tag, tag, "Tag of Read")
	}},
	{"attempts, tasks and workflows are apart", func(t *testing.T, e env) {
		ctx, records := t.Context(), e.store.Records
		keys := []port.RecordKey{
			{Workflow: "w", Task: "a", Attempt: 1}, {Workflow: "w", Task: "a", Attempt: 11}, {Workflow: "w", Task: "a/1", Attempt: 1},
			{Workflow: "w/a", Task: "1", Attempt: 1}, {Workflow: "w", Task: "A", Attempt: 1}, {Workflow: "w", Task: "a", Attempt: 1<<32 - 1},
		}
		for i, k := range keys {
			_, err := records.Create(ctx, k, port.Record{Body: []byte{byte(i)}})
			ok(t, err, "Create")
		}
		for i, k := range keys {
			got, err := records.Read(ctx, k)
			ok(t, err, "Read")
			same(t, got.Body, []byte{byte(i)}, "Read")
		}
	}},
	{"a change needs the newest tag", func(t *testing.T, e env) {
		ctx, records := t.Context(), e.store.Records
		first, err := records.Create(ctx, key("a"), port.Record{Body: []byte("one")})
		ok(t, err, "Create")
		second, err := records.Change(ctx, key("a"), port.Record{Owner: "you", Body: []byte("two")}, first)
		ok(t, err, "Change")
		for _, stale := range []port.Tag{first, "", "no-such-tag"} {
			_, err = records.Change(ctx, key("a"), port.Record{Body: []byte("three")}, stale)
			fails(t, err, fault.Conflict, "Change at a tag that is not the newest")
		}
		got, err := records.Read(ctx, key("a"))
		ok(t, err, "Read")
		same(t, got.Record, port.Record{Owner: "you", Body: []byte("two")}, "Read")
		same(t, got.Tag, second, "Tag of Read")
	}},
	{"a change of an absent record is a conflict", func(t *testing.T, e env) {
		_, err := e.store.Records.Change(t.Context(), key("a"), port.Record{}, "tag")
		fails(t, err, fault.Conflict, "Change")
	}},
	{"a deletion needs the newest tag and an absent record is no error", func(t *testing.T, e env) {
		ctx, records := t.Context(), e.store.Records
		ok(t, records.Delete(ctx, key("a"), "tag"), "Delete of an absent record")
		first, err := records.Create(ctx, key("a"), port.Record{})
		ok(t, err, "Create")
		second, err := records.Change(ctx, key("a"), port.Record{Owner: "x"}, first)
		ok(t, err, "Change")
		fails(t, records.Delete(ctx, key("a"), first), fault.Conflict, "Delete at a stale tag")
		ok(t, records.Delete(ctx, key("a"), second), "Delete")
		_, err = records.Read(ctx, key("a"))
		fails(t, err, fault.NotFound, "Read after Delete")
	}},
	{"a record made anew never has a tag of its earlier life", func(t *testing.T, e env) {
		ctx, records := t.Context(), e.store.Records
		first, err := records.Create(ctx, key("a"), port.Record{Body: []byte("x")})
		ok(t, err, "Create")
		ok(t, records.Delete(ctx, key("a"), first), "Delete")
		_, err = records.Create(ctx, key("a"), port.Record{Body: []byte("x")})
		ok(t, err, "Create")
		_, err = records.Change(ctx, key("a"), port.Record{}, first)
		fails(t, err, fault.Conflict, "Change at a tag of the earlier life")
	}},
	{"the records of one workflow go together", func(t *testing.T, e env) {
		ctx, records := t.Context(), e.store.Records
		ok(t, records.DeleteAll(ctx, "w", 7), "DeleteAll of nothing")
		other := port.RecordKey{Workflow: "w2", Task: "a", Attempt: 1}
		later := port.RecordKey{Workflow: "w", Task: "a", Attempt: 10}
		for _, k := range []port.RecordKey{key("a"), key("b"), later, other} {
			_, err := records.Create(ctx, k, port.Record{})
			ok(t, err, "Create")
		}
		ok(t, records.DeleteAll(ctx, "w", 9), "DeleteAll")
		for _, task := range []string{"a", "b"} {
			_, err := records.Read(ctx, key(task))
			fails(t, err, fault.NotFound, "Read after DeleteAll")
		}
		for _, k := range []port.RecordKey{later, other} {
			_, err := records.Read(ctx, k)
			ok(t, err, fmt.Sprintf("Read of %+v after DeleteAll", k))
		}
	}},
	{"bytes are owned by the caller on both ways", func(t *testing.T, e env) {
		ctx, records := t.Context(), e.store.Records
		body := []byte("one")
		_, err := records.Create(ctx, key("a"), port.Record{Body: body})
		ok(t, err, "Create")
		copy(body, "bad")
		got, err := records.Read(ctx, key("a"))
		ok(t, err, "Read")
		copy(got.Body, "bad")
		got, err = records.Read(ctx, key("a"))
		ok(t, err, "Read")
		same(t, string(got.Body), "one", "Read after the caller changed its slices")
	}},
	{"age counts from the last write", func(t *testing.T, e env) {
		ctx, records := t.Context(), e.store.Records
		tag, err := records.Create(ctx, key("a"), port.Record{})
		ok(t, err, "Create")
		e.pass(4)
		old, err := records.Read(ctx, key("a"))
		ok(t, err, "Read")
		if old.Age < 3*e.tick {
			t.Errorf("Age = %v after %v, want about as much", old.Age, 4*e.tick)
		}
		changed := time.Now()
		_, err = records.Change(ctx, key("a"), port.Record{}, tag)
		ok(t, err, "Change")
		young, err := records.Read(ctx, key("a"))
		ok(t, err, "Read")
		if since := time.Since(changed); young.Age > since+e.tick || young.Age < 0 {
			t.Errorf("Age = %v at most %v after a change, want about as much and not below 0", young.Age, since)
		}
	}},
	{"nobody and a stranger are unknown owners", func(t *testing.T, e env) {
		ctx, records := t.Context(), e.store.Records
		for _, owner := range []string{"", "a process of another store"} {
			k := key("a" + owner)
			_, err := records.Create(ctx, k, port.Record{Owner: owner})
			ok(t, err, "Create")
			got, err := records.Read(ctx, k)
			ok(t, err, "Read")
			same(t, got.Owned, port.UnknownOwner, "Owned of a record of "+owner)
		}
	}},
	{"an owner that takes part is alive, one that was killed or left is dead", func(t *testing.T, e env) {
		if !e.KnowsOwners {
			t.Skip("the driver does not know which owners are alive")
		}
		ctx := t.Context()
		for name, end := range map[string]func(*port.Store, port.Membership){
			"killed": func(s *port.Store, _ port.Membership) { e.Kill(s) },
			"left":   func(_ *port.Store, m port.Membership) { ok(t, m.Leave(ctx), "Leave") },
		} {
			other := e.Open()
			owner, err := other.Presence.Join(ctx, port.Member{Kind: "worker"})
			ok(t, err, "Join")
			_, err = other.Records.Create(ctx, key(name), port.Record{Owner: owner.ID()})
			ok(t, err, "Create")
			for by, s := range map[string]*port.Store{"itself": other, "another process": e.store} {
				got, err := s.Records.Read(ctx, key(name))
				ok(t, err, "Read by "+by)
				same(t, got.Owned, port.AliveOwner, "Owned as read by "+by)
			}
			end(other, owner)
			got, err := e.store.Records.Read(ctx, key(name))
			ok(t, err, "Read")
			same(t, got.Owned, port.DeadOwner, "Owned after the owner was "+name)
			if !got.Stale(longLock) {
				t.Errorf("Stale = false for a record whose owner was %s", name)
			}
		}
	}},
	{"a long body comes back whole", func(t *testing.T, e env) {
		ctx, long := t.Context(), strings.Repeat("é", 20_000)
		_, err := e.store.Records.Create(ctx, key("a"), port.Record{Body: []byte(long)})
		ok(t, err, "Create")
		got, err := e.store.Records.Read(ctx, key("a"))
		ok(t, err, "Read")
		same(t, string(got.Body) == long, true, "Read equals what was written")
	}},
}
