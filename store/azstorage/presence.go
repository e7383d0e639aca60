package azstorage

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"jobq/core/fault"
	"jobq/core/port"
)

var (
	_ port.Presence   = presence{}
	_ port.Membership = (*membership)(nil)
)

// silence is how long after its last beat a process no longer counts as one.
const silence = 24 * time.Hour

// presence keeps each process as a blob workers/{id} that it writes anew with
// every beat.
type presence struct {
	p *place
	// later makes every member older, in tests.
	later time.Duration
}

func (v presence) Join(ctx context.Context, m port.Member) (port.Membership, error) {
	m.ID = strings.Join([]string{or(m.Host, "host"), strconv.Itoa(m.PID), strings.ToLower(rand.Text())}, "-")
	me := &membership{v: v, said: m}
	if err := me.write(ctx, write{create: true}, "join"); err != nil {
		return nil, err
	}
	v.clean(ctx)
	return me, nil
}

// clean removes what processes left that died without a word. What it cannot
// remove stays for the next one that joins.
func (v presence) clean(ctx context.Context) {
	gone := func(it item) bool { return it.age+v.later > silence }
	_ = v.p.removeAll(ctx, membersPrefix, gone, "remove dead members")
}

func (v presence) Members(ctx context.Context) ([]port.Member, error) {
	doing := "list members in account " + v.p.account
	var items []item
	for it, err := range v.p.list(ctx, membersPrefix, false, doing) {
		if err != nil {
			return nil, err
		}
		if it.age+v.later <= silence {
			items = append(items, it)
		}
	}
	read := make([]*port.Member, len(items))
	errs := each(len(items), func(i int) error {
		got, err := v.p.get(ctx, items[i].name, "", doing)
		if fault.Is(err, fault.NotFound) {
			return nil
		}
		var m port.Member
		if err != nil || json.Unmarshal(got.body, &m) != nil {
			return err
		}
		m.Seen = items[i].modified
		read[i] = &m
		return nil
	})
	if err := worst(errs); err != nil {
		return nil, err
	}
	var members []port.Member
	for _, m := range read {
		if m != nil {
			members = append(members, *m)
		}
	}
	return members, nil
}

// membership is safe for concurrent use.
type membership struct {
	v    presence
	mu   sync.Mutex
	said port.Member
}

func (m *membership) ID() string { return m.said.ID }

func (m *membership) Beat(ctx context.Context, busy int) error {
	m.mu.Lock()
	m.said.Busy = busy
	m.mu.Unlock()
	return m.write(ctx, write{always: true}, "show")
}

func (m *membership) write(ctx context.Context, w write, doing string) error {
	m.mu.Lock()
	said := m.said
	m.mu.Unlock()
	said.Seen = time.Time{}
	body, err := json.Marshal(said)
	if err != nil {
		return fault.Wrapf(fault.Invalid, err, "cannot %s as member %s", doing, said.ID)
	}
	_, err = m.v.p.put(ctx, memberBlob(said.ID), body, w, doing+" as member "+said.ID+" in account "+m.v.p.account)
	return err
}

// Inherit returns nothing: only age tells here who is alive.
func (m *membership) Inherit() []*os.File { return nil }

func (m *membership) Leave(ctx context.Context) error {
	return m.v.p.remove(ctx, memberBlob(m.said.ID), "", "leave as member "+m.said.ID+" in account "+m.v.p.account)
}
