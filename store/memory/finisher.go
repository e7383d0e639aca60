package memory

import (
	"context"

	"jobq/core/port"
)

var _ port.Finisher = finisher{}

type finisher struct{ p *Process }

// Finish checks everything before it writes anything. A message that is gone
// counts as acknowledged.
func (v finisher) Finish(ctx context.Context, f port.Finish) (port.Tag, error) {
	if err := v.p.enter(ctx); err != nil {
		return "", err
	}
	defer v.p.s.mu.Unlock()
	s, now := v.p.s, v.p.s.now()
	inbox, err := s.queue(f.Inbox)
	if err != nil {
		return "", err
	}
	q, err := s.queue(f.Queue)
	if err != nil {
		return "", err
	}
	q.settle(now)
	if err := records(v).match(f.Key, f.IfMatch); err != nil {
		return "", err
	}
	m, err := q.held(f.Delivery.Receipt)
	if err != nil {
		return "", err
	}
	if err := inbox.check(f.Completion); err != nil {
		return "", err
	}
	tag := records(v).put(f.Key, f.Record)
	s.revision++
	inbox.add(f.Completion, s.revision, now)
	if m != nil {
		q.remove(m)
	}
	return tag, nil
}
