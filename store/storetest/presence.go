package storetest

import (
	"testing"
	"time"

	"jobq/core/fault"
	"jobq/core/port"
)

var leaseCases = []testCase{
	{"a lease has one holder, who may renew it", func(t *testing.T, e env) {
		ctx, leases := t.Context(), e.store.Leases
		holder, err := leases.Holder(ctx, "lock")
		ok(t, err, "Holder")
		same(t, holder, "", "Holder of a free lease")
		ok(t, leases.Acquire(ctx, "lock", "me", longLock), "Acquire")
		ok(t, leases.Acquire(ctx, "lock", "me", longLock), "Acquire by its holder")
		other := e.Open().Leases
		fails(t, other.Acquire(ctx, "lock", "you", longLock), fault.Conflict, "Acquire by somebody else")
		ok(t, other.Acquire(ctx, "another", "you", longLock), "Acquire of another lease")
		holder, err = other.Holder(ctx, "lock")
		ok(t, err, "Holder")
		same(t, holder, "me", "Holder")
	}},
	{"only the holder gives a lease back", func(t *testing.T, e env) {
		ctx, leases := t.Context(), e.store.Leases
		ok(t, leases.Release(ctx, "lock", "me"), "Release of a free lease")
		ok(t, leases.Acquire(ctx, "lock", "me", longLock), "Acquire")
		ok(t, leases.Release(ctx, "lock", "you"), "Release by somebody else")
		fails(t, leases.Acquire(ctx, "lock", "you", longLock), fault.Conflict, "Acquire after a foreign Release")
		ok(t, leases.Release(ctx, "lock", "me"), "Release")
		ok(t, leases.Acquire(ctx, "lock", "you", longLock), "Acquire after Release")
	}},
	{"a lease ends by itself", func(t *testing.T, e env) {
		ctx, leases := t.Context(), e.store.Leases
		ok(t, leases.Acquire(ctx, "lock", "me", e.tick), "Acquire")
		e.pass(2)
		holder, err := leases.Holder(ctx, "lock")
		ok(t, err, "Holder")
		same(t, holder, "", "Holder of a lease that ended")
		ok(t, leases.Acquire(ctx, "lock", "you", longLock), "Acquire after the end")
		fails(t, leases.Acquire(ctx, "lock", "me", longLock), fault.Conflict, "Acquire by the former holder")
	}},
	{"a lease of a killed process is free at once", func(t *testing.T, e env) {
		if !e.KnowsOwners {
			t.Skip("the driver does not know which owners are alive")
		}
		ctx, other := t.Context(), e.Open()
		ok(t, other.Leases.Acquire(ctx, "lock", "you", longLock), "Acquire")
		fails(t, e.store.Leases.Acquire(ctx, "lock", "me", longLock), fault.Conflict, "Acquire while it is held")
		e.Kill(other)
		ok(t, e.store.Leases.Acquire(ctx, "lock", "me", longLock), "Acquire after the death")
	}},
}

var presenceCases = []testCase{
	{"members are seen with what they said of themselves", func(t *testing.T, e env) {
		ctx := t.Context()
		said := port.Member{Kind: "worker", Host: "host", PID: 42, Queues: []string{"cpu", "gpu"}, Slots: 8, Version: "1.2", Started: birth}
		m, err := e.store.Presence.Join(ctx, said)
		ok(t, err, "Join")
		ok(t, m.Beat(ctx, 3), "Beat")
		members, err := e.Open().Presence.Members(ctx)
		ok(t, err, "Members")
		if len(members) != 1 {
			t.Fatalf("Members gave %d members, want 1", len(members))
		}
		got := members[0]
		if ago := time.Since(got.Seen); ago < -time.Second || ago > time.Minute {
			t.Errorf("Seen is %v ago right after a beat", ago)
		}
		got.Seen = time.Time{}
		said.ID, said.Busy = m.ID(), 3
		same(t, got, said, "the member")
	}},
	{"ids are different for every joining", func(t *testing.T, e env) {
		ctx, other := t.Context(), e.Open()
		seen := map[string]bool{}
		for range 3 {
			for _, s := range []*port.Store{e.store, other} {
				m, err := s.Presence.Join(ctx, port.Member{Kind: "run"})
				ok(t, err, "Join")
				if m.ID() == "" || seen[m.ID()] {
					t.Errorf("Join gave the id %q, which is empty or taken", m.ID())
				}
				seen[m.ID()] = true
			}
		}
		members, err := e.store.Presence.Members(ctx)
		ok(t, err, "Members")
		same(t, len(members), 6, "members")
	}},
	{"who leaves is gone, the others stay", func(t *testing.T, e env) {
		ctx := t.Context()
		first, err := e.store.Presence.Join(ctx, port.Member{})
		ok(t, err, "Join")
		second, err := e.store.Presence.Join(ctx, port.Member{})
		ok(t, err, "Join")
		ok(t, first.Leave(ctx), "Leave")
		ok(t, first.Leave(ctx), "Leave again")
		members, err := e.store.Presence.Members(ctx)
		ok(t, err, "Members")
		if len(members) != 1 || members[0].ID != second.ID() {
			t.Errorf("Members = %v, want %s alone", members, second.ID())
		}
	}},
	{"who was killed is gone where that is known", func(t *testing.T, e env) {
		if !e.KnowsOwners {
			t.Skip("the driver does not know which owners are alive")
		}
		ctx, other := t.Context(), e.Open()
		_, err := other.Presence.Join(ctx, port.Member{})
		ok(t, err, "Join")
		e.Kill(other)
		members, err := e.store.Presence.Members(ctx)
		ok(t, err, "Members")
		same(t, len(members), 0, "members after the death")
	}},
}
