package local

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"jobq/core/fault"
	"jobq/core/port"
)

// Receive asks a reader first: only where something is visible does it trouble
// the writer.
func (q queue) Receive(ctx context.Context, o port.ReceiveOptions) ([]port.Delivery, error) {
	if o.Max <= 0 || o.Lock <= 0 {
		return nil, fault.Newf(fault.Invalid, "a receive of %d messages for %v is not possible; both must be above 0", o.Max, o.Lock)
	}
	o.Max = min(o.Max, q.Props().MaxBatch)
	ds, _, err := q.try(ctx, o)
	if err != nil || len(ds) > 0 || o.Wait <= 0 {
		return ds, err
	}
	enough := time.NewTimer(o.Wait)
	defer enough.Stop()
	for {
		rung, leave := q.s.bell.listen(q.name)
		ds, next, err := q.try(ctx, o)
		if err != nil || len(ds) > 0 {
			leave()
			return ds, err
		}
		done := q.await(ctx, enough.C, rung, next)
		leave()
		if done {
			if ctx.Err() != nil {
				return nil, canceled(ctx)
			}
			return nil, nil
		}
	}
}

// await returns when there may be something to receive, or true when enough was
// waited or ctx ended. next is when a hidden message shows up, 0 for never.
func (q queue) await(ctx context.Context, enough <-chan time.Time, rung <-chan struct{}, next int64) bool {
	var due <-chan time.Time
	if next != 0 {
		// A hidden message may be in the hands of a process that dies.
		timer := time.NewTimer(min(time.Duration(next-now()), probeHidden))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-ctx.Done():
		return true
	case <-enough:
		return true
	case <-q.s.write.stopped:
		// The next try says that the store was closed.
	case <-rung:
	case <-due:
	}
	return false
}

// try receives without waiting. With nothing to give, next is when the first
// hidden message shows up, 0 where there is none.
func (q queue) try(ctx context.Context, o port.ReceiveOptions) (ds []port.Delivery, next int64, err error) {
	visible, next, err := q.look(ctx)
	if err != nil {
		return nil, 0, err
	}
	interval := probeHidden
	if visible {
		interval = probeBusy
	}
	if next != 0 && q.s.probes.due(q.name, interval) {
		freed, err := q.freeDead(ctx)
		if err != nil {
			return nil, 0, err
		}
		visible = visible || freed
	}
	if !visible {
		return nil, next, nil
	}
	ds, err = q.take(ctx, o)
	return ds, next, err
}

// look reports whether a message is visible, and when the first one of all is.
func (q queue) look(ctx context.Context) (visible bool, next int64, err error) {
	if err := q.s.check(ctx); err != nil {
		return false, 0, err
	}
	found, err := q.s.read.row(ctx, "SELECT coalesce((SELECT min(visible_at) FROM message WHERE queue = ?1), 0) FROM queue WHERE name = ?1", []any{q.name}, &next)
	switch {
	case err == nil && found:
		q.s.queues.Store(q.name, true)
	case err == nil:
		err = q.missing()
	}
	return next != 0 && next <= now(), next, err
}

// take locks up to o.Max messages. The lock need not survive a power failure,
// which no receiver survives either; what a receiver writes because of the
// message comes later in the log, so it never lasts without the count.
func (q queue) take(ctx context.Context, o port.ReceiveOptions) ([]port.Delivery, error) {
	type numbered struct {
		number int64
		port.Delivery
	}
	var taken []numbered
	// The number is part of the text: SQLite plans by the value of a bound LIMIT
	// and would prepare the statement anew for every receive.
	take := `UPDATE message SET visible_at = ?, receipt = receipt + 1, count = count + 1, process = ?
		WHERE number IN (SELECT number FROM message WHERE queue = ? AND visible_at <= ? ORDER BY visible_at, number LIMIT ` + strconv.Itoa(o.Max) + `)
		RETURNING number, id, body, count, receipt, sent_at, reason`
	err := q.do(ctx, true, func(tx *tx) error {
		taken = taken[:0]
		at := now()
		until := later(at, o.Lock)
		return tx.rows(take, []any{until, q.s.live.id, q.name, at}, func(scan func(...any) error) error {
			d, number, err := scanDelivery(scan)
			d.Until = time.Unix(0, until)
			taken = append(taken, numbered{number, d})
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(taken, func(a, b numbered) int { return cmp.Compare(a.number, b.number) })
	ds := make([]port.Delivery, len(taken))
	for i, t := range taken {
		ds[i] = t.Delivery
	}
	return ds, nil
}

func scanDelivery(scan func(...any) error) (d port.Delivery, number int64, err error) {
	var receipt, sent int64
	err = scan(&number, &d.ID, &d.Body, &d.Count, &receipt, &sent, &d.Reason)
	d.ID = cmp.Or(d.ID, "message-"+strconv.FormatInt(number, 10))
	d.Receipt = receiptText(number, receipt)
	d.Sent = time.Unix(0, sent)
	return d, number, err
}

// freeDead ends the locks that dead processes hold on messages of the queue and
// reports whether there were any.
func (q queue) freeDead(ctx context.Context) (bool, error) {
	var dead []string
	err := q.s.read.rows(ctx, "SELECT DISTINCT process FROM message WHERE queue = ? AND visible_at > ? AND process <> '' AND process <> ?",
		[]any{q.name, now(), q.s.live.id}, func(scan func(...any) error) error {
			var process string
			err := scan(&process)
			if err == nil && !q.s.probes.alive(process) {
				dead = append(dead, process)
			}
			return err
		})
	if err != nil || len(dead) == 0 {
		return false, err
	}
	var freed int64
	err = q.do(ctx, true, func(tx *tx) error {
		freed = 0
		for _, process := range dead {
			n, err := tx.exec("UPDATE message SET visible_at = ?1, process = '' WHERE queue = ?2 AND visible_at > ?1 AND process = ?3", now(), q.name, process)
			if err != nil {
				return err
			}
			freed += n
		}
		tx.ring(q.name)
		return nil
	})
	if err == nil && freed > 0 {
		q.s.logger.InfoContext(ctx, "freed messages of dead processes", "queue", q.name, "messages", freed, "processes", dead)
	}
	return freed > 0, err
}
