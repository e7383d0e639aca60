package local

import (
	"context"

	"jobq/core/port"
)

var _ port.Finisher = finisher{}

type finisher struct{ s *Store }

// Finish checks everything before it writes anything. A message that is gone
// counts as acknowledged.
func (v finisher) Finish(ctx context.Context, f port.Finish) (port.Tag, error) {
	if err := v.s.check(ctx); err != nil {
		return "", err
	}
	inbox, tasks := queue{v.s, f.Inbox}, queue{v.s, f.Queue}
	if err := inbox.check(f.Completion); err != nil {
		return "", err
	}
	tag := newTag()
	err := v.s.write.do(ctx, false, func(tx *tx) error {
		if err := inbox.exists(tx); err != nil {
			return err
		}
		if err := tasks.exists(tx); err != nil {
			return err
		}
		if err := tasks.newest(tx, f.Delivery.Receipt); err != nil {
			return err
		}
		// The first write is the only one that can still be refused.
		if err := records(v).change(tx, f.Key, f.Record, f.IfMatch, tag); err != nil {
			return err
		}
		if err := inbox.insert(tx, f.Completion); err != nil {
			return err
		}
		return tasks.acknowledge(tx, f.Delivery.Receipt)
	})
	return unless(err, tag)
}
