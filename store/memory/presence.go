package memory

import (
	"context"
	"os"
	"slices"
	"strconv"
	"time"

	"jobq/core/fault"
	"jobq/core/port"
)

var (
	_ port.Leases     = leases{}
	_ port.Presence   = presence{}
	_ port.Membership = (*membership)(nil)
)

type leases struct{ p *Process }

type lease struct {
	holder string
	until  time.Time
	by     *Process
}

func (v leases) Acquire(ctx context.Context, name, holder string, ttl time.Duration) error {
	if err := v.p.enter(ctx); err != nil {
		return err
	}
	defer v.p.s.mu.Unlock()
	if current := v.holder(name); current != "" && current != holder {
		return fault.Newf(fault.Conflict, "lease %q is held by %s", name, current)
	}
	v.p.s.leases[name] = lease{holder: holder, until: v.p.s.now().Add(ttl), by: v.p}
	return nil
}

func (v leases) Release(ctx context.Context, name, holder string) error {
	if err := v.p.enter(ctx); err != nil {
		return err
	}
	defer v.p.s.mu.Unlock()
	if v.holder(name) == holder {
		delete(v.p.s.leases, name)
	}
	return nil
}

func (v leases) Holder(ctx context.Context, name string) (string, error) {
	if err := v.p.enter(ctx); err != nil {
		return "", err
	}
	defer v.p.s.mu.Unlock()
	return v.holder(name), nil
}

// holder returns who holds the lease called name. The mutex is held.
func (v leases) holder(name string) string {
	l, ok := v.p.s.leases[name]
	if !ok || !v.p.s.now().Before(l.until) || v.p.s.identity && l.by.gone {
		return ""
	}
	return l.holder
}

type presence struct{ p *Process }

type membership struct {
	p      *Process
	member port.Member
	left   bool
}

// Join ignores m.ID: the store gives the id.
func (v presence) Join(ctx context.Context, m port.Member) (port.Membership, error) {
	if err := v.p.enter(ctx); err != nil {
		return nil, err
	}
	defer v.p.s.mu.Unlock()
	v.p.joins++
	m.ID = v.p.name + "." + strconv.Itoa(v.p.joins)
	m.Queues = slices.Clone(m.Queues)
	m.Seen = v.p.s.now()
	entry := &membership{p: v.p, member: m}
	v.p.s.members = append(v.p.s.members, entry)
	return entry, nil
}

func (v presence) Members(ctx context.Context) ([]port.Member, error) {
	if err := v.p.enter(ctx); err != nil {
		return nil, err
	}
	defer v.p.s.mu.Unlock()
	var members []port.Member
	for _, entry := range v.p.s.members {
		if entry.left || v.p.s.identity && entry.p.gone {
			continue
		}
		m := entry.member
		m.Queues = slices.Clone(m.Queues)
		members = append(members, m)
	}
	return members, nil
}

func (m *membership) ID() string { return m.member.ID }

func (m *membership) Beat(ctx context.Context, busy int) error {
	if err := m.p.enter(ctx); err != nil {
		return err
	}
	defer m.p.s.mu.Unlock()
	m.member.Busy = busy
	m.member.Seen = m.p.s.now()
	return nil
}

// Inherit returns nothing: a process of this store is no process of the
// operating system.
func (m *membership) Inherit() []*os.File { return nil }

func (m *membership) Leave(ctx context.Context) error {
	if err := m.p.enter(ctx); err != nil {
		return err
	}
	defer m.p.s.mu.Unlock()
	m.left = true
	return nil
}

// liveness judges the owner of a record. The mutex is held.
func (s *Store) liveness(owner string) port.Liveness {
	if !s.identity {
		return port.UnknownOwner
	}
	for _, entry := range s.members {
		if entry.member.ID != owner {
			continue
		}
		if entry.left || entry.p.gone {
			return port.DeadOwner
		}
		return port.AliveOwner
	}
	return port.UnknownOwner
}
