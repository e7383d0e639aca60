package local

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"jobq/core/fault"
	"jobq/core/port"
)

var (
	_ port.Queues = queues{}
	_ port.Queue  = queue{}
)

type queues struct{ s *Store }

func (v queues) Queue(name string) port.Queue { return queue{v.s, name} }

// Ensure creates the poison queue with the queue.
func (v queues) Ensure(ctx context.Context, name string) error {
	if err := v.s.check(ctx); err != nil {
		return err
	}
	var n int
	if _, err := v.s.read.row(ctx, "SELECT count(*) FROM queue WHERE name IN (?, ?)", []any{name, port.PoisonName(name)}, &n); err != nil || n == 2 {
		return err
	}
	return v.s.write.do(ctx, false, func(tx *tx) error {
		_, err := tx.exec("INSERT INTO queue (name) VALUES (?), (?) ON CONFLICT DO NOTHING", name, port.PoisonName(name))
		return err
	})
}

// openWorkflow finds a workflow for which something is to be done.
const openWorkflow = "SELECT 1 FROM workflow WHERE prefix = ? AND workflow = ? AND status NOT IN ('completed', 'failed', 'cancelled', 'purged')"

// RemoveQueues removes the queues that workflows of this prefix had for themselves:
// those called below + workflow + "/" and something, of a workflow that has ended, that
// hold no message but such as spare says to be worth nothing then. Where somebody has
// the lease that is called as leaseOf says, he is about to use them.
func (s *Store) RemoveQueues(ctx context.Context, below string, leaseOf func(workflow string) string, spare func(body []byte) bool) error {
	if err := s.check(ctx); err != nil {
		return err
	}
	names, err := s.queuesBelow(ctx, below)
	if err != nil {
		return err
	}
	for part := range slices.Chunk(names, maxTogether) {
		err := s.write.do(ctx, true, func(tx *tx) error {
			for _, name := range part {
				workflow, _, _ := strings.Cut(strings.TrimPrefix(name, below), "/")
				needed, err := s.needed(tx, workflow, leaseOf(workflow))
				if err == nil && !needed {
					err = s.removeQueue(tx, name, spare)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// needed reports whether somebody uses the queues of a workflow, or will.
func (s *Store) needed(tx *tx, workflow, lease string) (bool, error) {
	holder, err := s.holder(tx, lease)
	if err != nil || holder != "" {
		return true, err
	}
	var one int
	return tx.row(openWorkflow, []any{s.prefix, workflow}, &one)
}

// removeQueue removes the queue where it holds nothing but messages to spare.
func (s *Store) removeQueue(tx *tx, name string, spare func(body []byte) bool) error {
	for {
		var number int64
		var body []byte
		found, err := tx.row("SELECT number, body FROM message WHERE queue = ? ORDER BY visible_at, number LIMIT 1", []any{name}, &number, &body)
		if err != nil {
			return err
		}
		if !found {
			break
		}
		if !spare(body) {
			return nil
		}
		if _, err := tx.exec("DELETE FROM message WHERE number = ?", number); err != nil {
			return err
		}
	}
	_, err := tx.exec("DELETE FROM queue WHERE name = ?", name)
	s.queues.Delete(name)
	return err
}

// queuesBelow returns the names of queues that begin with text.
func (s *Store) queuesBelow(ctx context.Context, text string) (names []string, err error) {
	from, to := below(text)
	err = s.read.rows(ctx, "SELECT name FROM queue WHERE name >= ? AND name < ?", []any{from, to}, func(scan func(...any) error) error {
		var name string
		err := scan(&name)
		names = append(names, name)
		return err
	})
	return names, err
}

type queue struct {
	s    *Store
	name string
}

func (q queue) Name() string { return q.name }

func (q queue) Props() port.QueueProps {
	return port.QueueProps{MaxMessage: maxMessage, MaxBatch: 256, NativeRelease: true, CountReadable: true, CanWait: true}
}

func (q queue) PoisonQueue() port.Queue { return queue{q.s, port.PoisonName(q.name)} }

// do runs a write on the queue, which must exist.
func (q queue) do(ctx context.Context, relaxed bool, run func(*tx) error) error {
	if err := q.s.check(ctx); err != nil {
		return err
	}
	return q.s.write.do(ctx, relaxed, func(tx *tx) error {
		if err := q.exists(tx); err != nil {
			return err
		}
		return run(tx)
	})
}

// exists asks the database only until the queue was seen. One that RemoveQueues took
// meanwhile has what is sent to it once somebody ensures it again, as whoever receives
// from it does.
func (q queue) exists(tx *tx) error {
	if _, seen := q.s.queues.Load(q.name); seen {
		return nil
	}
	var one int
	found, err := tx.row("SELECT 1 FROM queue WHERE name = ?", []any{q.name}, &one)
	if err == nil && !found {
		err = q.missing()
	}
	return err
}

func (q queue) missing() error {
	return fault.Newf(fault.NotFound, "queue %q does not exist", q.name)
}

// maxTogether bounds the messages that one transaction sends or acknowledges:
// 100,000 tasks that become ready at once must not keep every other writer out
// for a second.
const maxTogether = 1000

func (q queue) Send(ctx context.Context, messages []port.Message) []error {
	return together(messages, func(messages []port.Message, errs []error) error {
		return q.do(ctx, false, func(tx *tx) error {
			for i, m := range messages {
				if errs[i] = q.check(m); errs[i] != nil {
					continue
				}
				if err := q.insert(tx, m); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// check says whether m can be sent at all.
func (q queue) check(m port.Message) error {
	if len(m.Body) > maxMessage {
		return tooLarge("a message for queue "+q.name, len(m.Body), maxMessage)
	}
	return nil
}

// insert stores m, which passed check.
func (q queue) insert(tx *tx, m port.Message) error {
	sent := now()
	visible := later(sent, m.Delay)
	_, err := tx.exec("INSERT INTO message (queue, visible_at, hidden_for, receipt, count, process, sent_at, id, reason, body) VALUES (?, ?, ?, 0, 0, '', ?, ?, '', ?)",
		q.name, visible, visible-sent, sent, m.ID, stored(m.Body))
	if err == nil {
		tx.ring(q.name)
	}
	return err
}

// later returns the time d after at, a century at most, so that no wish leaves
// the range of times.
func later(at int64, d time.Duration) int64 {
	const century = 100 * 365 * 24 * time.Hour
	return at + int64(min(max(d, 0), century))
}

func (q queue) Extend(ctx context.Context, d *port.Delivery, lock time.Duration) error {
	var until, receipt int64
	number, held, err := q.receipt(d.Receipt)
	if err != nil {
		return err
	}
	err = q.do(ctx, true, func(tx *tx) error {
		at := now()
		until, receipt = later(at, lock), held+1
		n, err := tx.exec("UPDATE message SET visible_at = ?, hidden_for = ?, receipt = ?, process = ? WHERE number = ? AND queue = ? AND receipt = ?",
			until, until-at, receipt, q.s.live.id, number, q.name, held)
		return q.mustHold(n, err)
	})
	if err != nil {
		return err
	}
	d.Receipt, d.Until = receiptText(number, receipt), time.Unix(0, until)
	return nil
}

func receiptText(number, receipt int64) string {
	return strconv.FormatInt(number, 10) + "." + strconv.FormatInt(receipt, 10)
}

// receipt reads what receiptText wrote.
func (q queue) receipt(text string) (number, receipt int64, err error) {
	a, b, _ := strings.Cut(text, ".")
	number, err1 := strconv.ParseInt(a, 10, 64)
	receipt, err2 := strconv.ParseInt(b, 10, 64)
	if err1 != nil || err2 != nil {
		return 0, 0, fault.Newf(fault.Invalid, "%q is not a receipt of queue %q", text, q.name)
	}
	return number, receipt, nil
}

// mustHold turns a write that met no message at its receipt into a lost lease.
func (q queue) mustHold(n int64, err error) error {
	if err == nil && n == 0 {
		err = q.lost()
	}
	return err
}

func (q queue) lost() error {
	return fault.Newf(fault.LeaseLost, "a message of queue %q was taken over by another receiver or is gone", q.name)
}

// Acknowledge need not survive a power failure: the message is then delivered
// once more, as a queue may do at any time.
func (q queue) Acknowledge(ctx context.Context, ds []port.Delivery) []error {
	return together(ds, func(ds []port.Delivery, errs []error) error {
		return q.do(ctx, true, func(tx *tx) error {
			for i, d := range ds {
				err := q.acknowledge(tx, d.Receipt)
				if err != nil && !refused(err) {
					return err
				}
				errs[i] = err
			}
			return nil
		})
	})
}

// acknowledge removes the message of a receipt; one that is gone is no error.
func (q queue) acknowledge(tx *tx, text string) error {
	number, receipt, err := q.receipt(text)
	if err != nil {
		return err
	}
	n, err := tx.exec("DELETE FROM message WHERE number = ? AND queue = ? AND receipt = ?", number, q.name, receipt)
	if err != nil || n > 0 {
		return err
	}
	return q.newest(tx, text)
}

// newest checks that no receipt newer than this one is out.
func (q queue) newest(tx *tx, text string) error {
	number, receipt, err := q.receipt(text)
	if err != nil {
		return err
	}
	var current int64
	found, err := tx.row("SELECT receipt FROM message WHERE number = ? AND queue = ?", []any{number, q.name}, &current)
	if err == nil && found && current != receipt {
		err = q.lost()
	}
	return err
}

func (q queue) Release(ctx context.Context, d port.Delivery, delay time.Duration) error {
	number, held, err := q.receipt(d.Receipt)
	if err != nil {
		return err
	}
	return q.do(ctx, true, func(tx *tx) error {
		at := now()
		visible := later(at, delay)
		n, err := tx.exec("UPDATE message SET visible_at = ?, hidden_for = ?, receipt = receipt + 1, process = '' WHERE number = ? AND queue = ? AND receipt = ?",
			visible, visible-at, number, q.name, held)
		tx.ring(q.name)
		return q.mustHold(n, err)
	})
}

func (q queue) Poison(ctx context.Context, d port.Delivery, reason string) error {
	number, held, err := q.receipt(d.Receipt)
	if err != nil {
		return err
	}
	return q.do(ctx, false, func(tx *tx) error {
		poison := port.PoisonName(q.name)
		n, err := tx.exec("UPDATE message SET queue = ?, visible_at = ?, hidden_for = 0, receipt = receipt + 1, count = 0, process = '', reason = ? WHERE number = ? AND queue = ? AND receipt = ?",
			poison, now(), reason, number, q.name, held)
		if err := q.mustHold(n, err); err != nil {
			return err
		}
		_, err = tx.exec("INSERT INTO queue (name) VALUES (?) ON CONFLICT DO NOTHING", poison)
		tx.ring(poison)
		return err
	})
}

func (q queue) Count(ctx context.Context) (int, error) {
	if err := q.s.check(ctx); err != nil {
		return 0, err
	}
	var n int
	found, err := q.s.read.row(ctx, "SELECT (SELECT count(*) FROM message WHERE queue = ?1) FROM queue WHERE name = ?1", []any{q.name}, &n)
	if err == nil && !found {
		err = q.missing()
	}
	return n, err
}

// Peek shows visible messages only.
func (q queue) Peek(ctx context.Context, most int) ([]port.Delivery, error) {
	if _, err := q.Count(ctx); err != nil {
		return nil, err
	}
	var ds []port.Delivery
	err := q.s.read.rows(ctx, "SELECT number, id, body, count, receipt, sent_at, reason FROM message WHERE queue = ? AND visible_at <= ? ORDER BY visible_at, number LIMIT ?",
		[]any{q.name, now(), max(most, 0)}, func(scan func(...any) error) error {
			d, _, err := scanDelivery(scan)
			d.Receipt = ""
			ds = append(ds, d)
			return err
		})
	return ds, err
}

func (q queue) Clear(ctx context.Context) (int, error) {
	var n int64
	err := q.do(ctx, false, func(tx *tx) (err error) {
		n, err = tx.exec("DELETE FROM message WHERE queue = ?", q.name)
		return err
	})
	return int(n), err
}

// together calls f for items in parts of maxTogether. f sets the answer of each
// item, or returns the one that is theirs in common. The result is nil when no
// item failed.
func together[T any](items []T, f func(items []T, errs []error) error) []error {
	errs := make([]error, len(items))
	failed := false
	for at := 0; at < len(items); at += maxTogether {
		end := min(at+maxTogether, len(items))
		common := f(items[at:end], errs[at:end])
		for i := at; i < end; i++ {
			errs[i] = cmp.Or(common, errs[i])
			failed = failed || errs[i] != nil
		}
	}
	if !failed {
		return nil
	}
	return errs
}
