package local

import (
	"context"
	"encoding/json"
	"os"
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

type leases struct{ s *Store }

const heldLease = "SELECT holder, process FROM lease WHERE prefix = ? AND name = ? AND until > ?"

// Acquire gives a lease whose holder's process died to the next who asks.
func (v leases) Acquire(ctx context.Context, name, holder string, ttl time.Duration) error {
	if err := v.s.check(ctx); err != nil {
		return err
	}
	return v.s.write.do(ctx, true, func(tx *tx) error {
		current, err := v.s.holder(tx, name)
		if err != nil {
			return err
		}
		if current != "" && current != holder {
			return fault.Newf(fault.Conflict, "lease %q is held by %s", name, current)
		}
		_, err = tx.exec("INSERT OR REPLACE INTO lease (prefix, name, holder, until, process) VALUES (?, ?, ?, ?, ?)",
			v.s.prefix, name, holder, later(now(), ttl), v.s.live.id)
		return err
	})
}

func (v leases) Release(ctx context.Context, name, holder string) error {
	if err := v.s.check(ctx); err != nil {
		return err
	}
	return v.s.write.do(ctx, true, func(tx *tx) error {
		_, err := tx.exec("DELETE FROM lease WHERE prefix = ? AND name = ? AND holder = ?", v.s.prefix, name, holder)
		return err
	})
}

func (v leases) Holder(ctx context.Context, name string) (string, error) {
	if err := v.s.check(ctx); err != nil {
		return "", err
	}
	var holder, process string
	held, err := v.s.read.row(ctx, heldLease, []any{v.s.prefix, name, now()}, &holder, &process)
	if err != nil || !held || !v.s.probes.alive(process) {
		return "", err
	}
	return holder, nil
}

// holder returns the living holder of a lease, empty where there is none.
func (s *Store) holder(tx *tx, lease string) (string, error) {
	var holder, process string
	held, err := tx.row(heldLease, []any{s.prefix, lease, now()}, &holder, &process)
	if err != nil || !held || !s.probes.alive(process) {
		return "", err
	}
	return holder, nil
}

type presence struct{ s *Store }

type membership struct {
	s  *Store
	id string
}

// Join ignores m.ID: the store gives the id.
func (v presence) Join(ctx context.Context, m port.Member) (port.Membership, error) {
	if err := v.s.check(ctx); err != nil {
		return nil, err
	}
	m.ID = v.s.live.id + "." + strconv.FormatUint(v.s.joins.Add(1), 10)
	said, err := json.Marshal(m)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the description of this process cannot be written")
	}
	err = v.s.write.do(ctx, true, func(tx *tx) error {
		_, err := tx.exec("INSERT INTO member (id, prefix, process, said, busy, seen_at) VALUES (?, ?, ?, ?, ?, ?)",
			m.ID, v.s.prefix, v.s.live.id, string(said), m.Busy, now())
		return err
	})
	if err != nil {
		return nil, err
	}
	return &membership{s: v.s, id: m.ID}, nil
}

func (v presence) Members(ctx context.Context) ([]port.Member, error) {
	if err := v.s.check(ctx); err != nil {
		return nil, err
	}
	var members []port.Member
	err := v.s.read.rows(ctx, "SELECT process, said, busy, seen_at FROM member WHERE prefix = ? ORDER BY rowid", []any{v.s.prefix}, func(scan func(...any) error) error {
		var (
			process, said string
			busy          int
			seen          int64
			m             port.Member
		)
		if err := scan(&process, &said, &busy, &seen); err != nil {
			return err
		}
		if !v.s.probes.alive(process) {
			return nil
		}
		if err := json.Unmarshal([]byte(said), &m); err != nil {
			return fault.Wrapf(fault.Corrupt, err, "the entry of process %s cannot be read", process)
		}
		m.Busy, m.Seen = busy, fromNanos(seen)
		members = append(members, m)
		return nil
	})
	return members, err
}

func (m *membership) ID() string { return m.id }

// Beat is for people: whether the process lives is told by its live file.
func (m *membership) Beat(ctx context.Context, busy int) error {
	if err := m.s.check(ctx); err != nil {
		return err
	}
	return m.s.write.do(ctx, true, func(tx *tx) error {
		_, err := tx.exec("UPDATE member SET busy = ?, seen_at = ? WHERE id = ?", busy, now(), m.id)
		return err
	})
}

// Inherit returns the locked file of this process. A child that gets it by
// exec.Cmd.ExtraFiles keeps the process alive in the eyes of others for as long
// as it has it open.
func (m *membership) Inherit() []*os.File { return []*os.File{m.s.live.file} }

func (m *membership) Leave(ctx context.Context) error {
	if err := m.s.check(ctx); err != nil {
		return err
	}
	return m.s.write.do(ctx, true, func(tx *tx) error {
		_, err := tx.exec("DELETE FROM member WHERE id = ?", m.id)
		return err
	})
}
