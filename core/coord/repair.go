package coord

import (
	"context"
	"slices"
	"time"

	"jobq/core/engine"
	"jobq/core/fault"
	"jobq/core/msg"
	"jobq/core/port"
	"jobq/core/state"
)

const (
	// foreverAfter is the age at which a running task that nobody holds is sent
	// again though its queue cannot be counted or is not empty.
	foreverAfter = 24 * time.Hour
	// poisonReceives bounds the receives from a poison queue in one repair.
	poisonReceives = 8
	// mostLookedAfter bounds the tasks of a workflow that one sweep looks after. A
	// hundred thousand may wait in a queue for a day.
	mostLookedAfter = 10_000
)

// poisoned are messages of running attempts in a poison queue, to be removed
// once their attempts were sent again.
type poisoned struct {
	queue    port.Queue
	messages []poisonedMessage
}

type poisonedMessage struct {
	attempt  engine.Attempt
	delivery port.Delivery
}

// lookAfter looks after tasks that have been running for long: their record may
// hold an end that nobody heard of, or their message may be nowhere. What is to
// be done is added to j. Of very many, or with a slow store, a part has its turn,
// which begins anywhere.
func (c *Coordinator) lookAfter(ctx context.Context, j *job, e *entry) ([]poisoned, error) {
	if e.run.State().Status.Ended() || e.run.Cancelling() {
		return nil, nil
	}
	all := c.overdue(j, e)
	overdue := c.someOf(all)
	lost := make([]bool, len(overdue))
	items := make([]*item, len(overdue))
	errs := make([]error, len(overdue))
	looking, cancel := c.sched.WithTimeout(ctx, c.roundTime()/2, "looking after running tasks")
	defer cancel()
	c.sched.Parallel(looking, len(overdue), c.o.Parallel, func(ctx context.Context, i int) {
		if ctx.Err() != nil {
			return
		}
		a := overdue[i]
		key := port.RecordKey{Workflow: j.wf, Task: e.plan.Name(a.Task), Attempt: a.Attempt}
		stored, record, err := c.readRecord(ctx, key)
		switch {
		case err == nil && record.Ended != nil:
			c.repaired("ended record", j.wf)
			items[i] = endedItem(a, *record.Ended)
		case fault.Is(err, fault.NotFound):
			lost[i] = true
		case err != nil && ctx.Err() != nil:
		case err != nil:
			errs[i] = err
		default:
			lost[i] = record.Free || stored.Stale(record.TTL)
		}
	})
	byQueue := map[string][]engine.Attempt{}
	var order []string
	for i, a := range overdue {
		if items[i] != nil {
			j.items = append(j.items, items[i])
		}
		if q := e.plan.Definition().Tasks[a.Task].Queue; lost[i] {
			if byQueue[q] == nil {
				order = append(order, q)
			}
			byQueue[q] = append(byQueue[q], a)
		}
	}
	var found []poisoned
	for _, name := range order {
		p, err := c.nowhere(ctx, j, e, name, byQueue[name])
		if err != nil {
			return found, err
		}
		found = append(found, p)
	}
	part := len(overdue) < len(all) || looking.Err() != nil
	if soon := c.sched.Now().Add(c.o.SweepInterval); part && len(j.repair) > 0 && (j.next.IsZero() || soon.Before(j.next)) {
		j.next = soon // there may be more of the kind
	}
	return found, firstError(errs)
}

// someOf returns those of all that one sweep looks after. Where not all may have
// their turn it begins anywhere, so that each has its turn some time.
func (c *Coordinator) someOf(all []engine.Attempt) []engine.Attempt {
	if len(all) <= c.o.Parallel {
		return all
	}
	from := int(c.o.Random() % uint64(len(all)))
	return slices.Concat(all[from:], all[:from])[:min(len(all), mostLookedAfter)]
}

// overdue returns the attempts that have been running for Options.RunningRepair,
// and notes in j when the next will have.
func (c *Coordinator) overdue(j *job, e *entry) []engine.Attempt {
	s := e.run.State()
	var due []engine.Attempt
	for t, status := range s.TaskStatus {
		if status != state.Running {
			continue
		}
		at := time.UnixMilli(s.StartedAt[t]).Add(c.o.RunningRepair)
		switch {
		case !at.After(c.sched.Now()):
			due = append(due, engine.Attempt{Task: int32(t), Attempt: s.Attempt[t]})
		case j.next.IsZero() || at.Before(j.next):
			j.next = at
		}
	}
	return due
}

// nowhere adds to j.repair those attempts, whose records nobody holds, that are
// in no queue any more as far as can be told: their message is in the poison
// queue, the queue is empty, or they have been waiting for a day.
func (c *Coordinator) nowhere(ctx context.Context, j *job, e *entry, name string, attempts []engine.Attempt) (poisoned, error) {
	q := c.store.Queues.Queue(e.run.State().Namespace + name)
	found := poisoned{queue: q.PoisonQueue()}
	inPoison, err := c.searchPoison(ctx, j.wf, e, &found, attempts)
	if err != nil {
		return found, err
	}
	empty := false
	if q.Props().CountReadable {
		n, err := q.Count(ctx)
		if err != nil && !fault.Is(err, fault.NotFound) {
			return found, err
		}
		empty = n == 0
	}
	for _, a := range attempts {
		age := c.sched.Now().Sub(time.UnixMilli(e.run.State().StartedAt[a.Task]))
		if inPoison[a] || empty || !c.o.ForeignWorkers && age >= foreverAfter {
			j.repair = append(j.repair, a)
		}
	}
	return found, nil
}

// searchPoison looks for messages of attempts among the poisoned ones and keeps
// hold of them; all others go back as they were.
func (c *Coordinator) searchPoison(ctx context.Context, wf string, e *entry, found *poisoned, attempts []engine.Attempt) (map[engine.Attempt]bool, error) {
	wanted := map[engine.Attempt]bool{}
	for _, a := range attempts {
		wanted[a] = false
	}
	var others []port.Delivery
	for range poisonReceives {
		got, err := found.queue.Receive(ctx, port.ReceiveOptions{Max: c.o.BatchSize, Lock: c.o.Visibility})
		if fault.Is(err, fault.NotFound) || err == nil && len(got) == 0 {
			break
		}
		if err != nil {
			return nil, err
		}
		for _, d := range got {
			m, err := msg.DecodeTask(d.Body)
			t, ok := e.plan.Task(m.Name)
			a := engine.Attempt{Task: t, Attempt: max(m.Attempt, 1)}
			if _, asked := wanted[a]; err == nil && ok && m.Workflow == wf && asked {
				wanted[a] = true
				found.messages = append(found.messages, poisonedMessage{a, d})
				continue
			}
			others = append(others, d)
		}
	}
	c.giveBackPoison(ctx, found.queue, others)
	return wanted, nil
}

// dropPoisoned removes the poisoned messages of attempts that a queue took again,
// which are sent. The others are all that is left of their attempts: they go back
// as they were.
func (c *Coordinator) dropPoisoned(ctx context.Context, all []poisoned, sent []engine.Attempt) {
	for _, p := range all {
		var done, kept []port.Delivery
		for _, m := range p.messages {
			if slices.Contains(sent, m.attempt) {
				done = append(done, m.delivery)
			} else {
				kept = append(kept, m.delivery)
			}
		}
		c.giveBackPoison(ctx, p.queue, kept)
		if len(done) == 0 {
			continue
		}
		if err := firstError(p.queue.Acknowledge(ctx, done)); err != nil {
			c.log.Warn("poisoned message not removed", "queue", p.queue.Name(), "error", err)
		}
	}
}

func (c *Coordinator) giveBackPoison(ctx context.Context, q port.Queue, ds []port.Delivery) {
	for _, d := range ds {
		if err := q.Release(ctx, d, 0); err != nil {
			c.log.Debug("poisoned message comes back by itself", "queue", q.Name(), "id", d.ID, "error", err)
		}
	}
}
