package testkit

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"jobq/core/coord"
)

func (p *player) queue(ctx context.Context, a args) {
	for _, name := range a.words {
		q := p.w.Store.Queues.Queue(name)
		switch name {
		case "inbox":
			q = p.w.Store.Queues.Queue(Inbox)
		case "poison":
			q = p.w.Store.Queues.Queue(Inbox).PoisonQueue()
		}
		p.say("%s: %s", name, p.w.Queue(ctx, q))
	}
}

func (p *player) taken(ctx context.Context, _ args) {
	p.w.Take(ctx)
	var all []string
	for _, attempt := range slices.Sorted(maps.Keys(p.w.Taken)) {
		all = append(all, fmt.Sprintf("%s:%d", attempt, p.w.Taken[attempt]))
	}
	p.say("taken: %s", strings.Join(all, " "))
}

func (p *player) row(ctx context.Context, a args) {
	r, err := p.w.Store.Index.Get(ctx, a.word(0))
	if err != nil {
		p.answer("row", err)
		return
	}
	p.say("row: %s epoch %d, %d of %d completed, cancel %t at %d",
		r.Status, r.Epoch, r.Counts.Completed, r.Counts.Total, r.Cancel.Requested, r.Cancel.Epoch)
}

func (p *player) due(ctx context.Context, _ args) {
	due, err := p.w.Store.Index.DueBefore(ctx, p.w.Scheduler.Now().Add(25*time.Hour), 100)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, d := range due {
		key := d.Key
		if wf, cmd, ok := strings.Cut(key, "!"); ok && strings.HasPrefix(cmd, "submit-") {
			key = wf + "!submit"
		}
		p.say("due: %s in %s", key, d.DueAt.Sub(p.w.Scheduler.Now()).Round(time.Second))
	}
	if len(due) == 0 {
		p.say("due: -")
	}
}

func (p *player) reason(ctx context.Context, a args) {
	wf, task := a.task(0)
	s, err := p.w.View().Tasks(ctx, wf, coord.TaskFilter{Names: []string{task}, Live: true})
	if err != nil {
		p.answer("reason", err)
		return
	}
	p.say("%s: %s", task, s.Tasks[0].Reason)
}

func (p *player) history(ctx context.Context, a args) {
	all, err := p.w.View().History(ctx, a.word(0))
	if err != nil {
		p.t.Fatal(err)
	}
	for _, ev := range all {
		if ev.Command != "" {
			p.say("v%d %s by %q: %s", ev.Version, ev.Command, ev.By, ev.Text)
			continue
		}
		p.say("v%d %s %s -> %s (%s)", ev.Version, attemptName(ev.Task, ev.Attempt), ev.From, ev.To, ev.Cause)
	}
}

func (p *player) count(_ context.Context, a args) {
	all := p.node(a).Count()
	for _, name := range a.words {
		p.say("%s: %d", name, all[name])
	}
}
