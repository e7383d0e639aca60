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
	if q.s.looking {
		return nil, q.s.write.refusal
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
		freed, err := q.free(ctx)
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
	take := `UPDATE message SET visible_at = ?, hidden_for = ?, receipt = receipt + 1, count = count + 1, process = ?
		WHERE number IN (SELECT number FROM message WHERE queue = ? AND visible_at <= ? ORDER BY visible_at, number LIMIT ` + strconv.Itoa(o.Max) + `)
		RETURNING number, id, body, count, receipt, sent_at, reason`
	err := q.do(ctx, true, func(tx *tx) error {
		taken = taken[:0]
		at := now()
		until := later(at, o.Lock)
		return tx.rows(take, []any{until, until - at, q.s.live.id, q.name, at}, func(scan func(...any) error) error {
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

// hidden is what is known of the hidden messages of a queue.
type hidden struct {
	// dead are the processes that died with a lock on some.
	dead []string
	// astray says that some were hidden at a time that is yet to come.
	astray bool
}

// free ends the locks that dead processes hold on messages of the queue, and lets
// nobody wait longer than he asked for because the clock was set back. It reports
// whether it changed anything.
func (q queue) free(ctx context.Context) (bool, error) {
	h, err := q.hidden(ctx)
	if err != nil || len(h.dead) == 0 && !h.astray {
		return false, err
	}
	var freed, again int64
	err = q.do(ctx, true, func(tx *tx) (err error) {
		if freed, err = q.freeDead(tx, h.dead); err != nil {
			return err
		}
		again, err = q.hideAgain(tx)
		tx.ring(q.name)
		return err
	})
	if err == nil && freed > 0 {
		q.s.logger.InfoContext(ctx, "freed messages of dead processes", "queue", q.name, "messages", freed, "processes", h.dead)
	}
	if err == nil && again > 0 {
		q.s.logger.WarnContext(ctx, "the clock was set back; messages that it hid for too long were found", "queue", q.name, "messages", again)
	}
	return freed+again > 0, err
}

func (q queue) hidden(ctx context.Context) (h hidden, err error) {
	at := now()
	err = q.s.read.rows(ctx, "SELECT process, max(visible_at - hidden_for) FROM message WHERE queue = ? AND visible_at > ? GROUP BY process",
		[]any{q.name, at}, func(scan func(...any) error) error {
			var process string
			var since int64
			err := scan(&process, &since)
			if err == nil && process != "" && !q.s.probes.alive(process) {
				h.dead = append(h.dead, process)
			}
			h.astray = h.astray || since > at
			return err
		})
	return h, err
}

// freeDead makes visible what dead processes hold, and returns how much that was.
func (q queue) freeDead(tx *tx, dead []string) (freed int64, err error) {
	for _, process := range dead {
		n, err := tx.exec("UPDATE message SET visible_at = ?1, hidden_for = 0, process = '' WHERE queue = ?2 AND visible_at > ?1 AND process = ?3", now(), q.name, process)
		if err != nil {
			return 0, err
		}
		freed += n
	}
	return freed, nil
}

// hideAgain lets the wait of messages begin anew that seem to be hidden since a time
// that is yet to come. A lock thus ends no sooner than its holder thinks.
func (q queue) hideAgain(tx *tx) (int64, error) {
	return tx.exec("UPDATE message SET visible_at = ?1 + hidden_for WHERE queue = ?2 AND visible_at > ?1 AND visible_at - hidden_for > ?1", now(), q.name)
}
