package sim

import (
	"context"
	"slices"
	"strconv"
	"time"

	"jobq/core/fault"
	"jobq/core/port"
)

// share is what a fault leaves of one message of a batch.
type share struct{ carried, answered bool }

// splits says what f leaves of each of n messages.
type splits func(g *gate, f Fault, n int) []share

// callEach makes one call about several messages. Of a fault that goes by messages
// split says which of them it strikes; the rest is carried out and answered. effect
// answers as port.Queue.Send does.
func callEach[T any](ctx context.Context, g *gate, o op, key string, items []T, split splits, effect func([]T) []error) []error {
	var errs []error
	all := func(context.Context) error {
		errs = effect(items)
		return first(errs)
	}
	f, err := g.arrive(ctx, o, key, all)
	if err == nil && f.goesByMessage() && len(items) > 1 && g.w.weather.script == nil {
		return meetEach(g, o, key, f, items, split(g, f, len(items)), effect)
	}
	if err == nil {
		err = g.meet(o, key, f, all)
	}
	switch {
	case err == nil:
		return nil
	case errs != nil && fault.CodeOf(err) == fault.CodeOf(first(errs)):
		return errs
	default:
		return repeat(err, len(items))
	}
}

// goesByMessage reports whether f can strike some messages of a call and leave the
// others alone.
func (f Fault) goesByMessage() bool { return f == FailBefore || f == AnswerLost || f == Throttle }

// meetEach carries out and answers what shares leave of items.
func meetEach[T any](g *gate, o op, key string, f Fault, items []T, shares []share, effect func([]T) []error) []error {
	g.w.count(f)
	var carried []T
	struck := 0
	for i, s := range shares {
		if s.carried {
			carried = append(carried, items[i])
		}
		if !s.answered {
			struck++
		}
	}
	if struck < len(items) {
		g.w.path(PathPart)
	}
	refusal := lost(o)
	if f == Throttle {
		refusal = g.throttled()
	}
	var answers []error
	if len(carried) > 0 {
		answers = effect(carried)
	}
	errs := make([]error, len(items))
	for i, s := range shares {
		var err error
		if s.carried && answers != nil {
			err, answers = answers[0], answers[1:]
		}
		if errs[i] = err; !s.answered {
			errs[i] = refusal
		}
	}
	g.trace(o, key+" "+strconv.Itoa(struck)+"/"+strconv.Itoa(len(items)), f, refusal)
	return errs
}

// oneByOne strikes some of n messages that the driver sends or acknowledges each
// with a call of its own, at least one.
func oneByOne(g *gate, f Fault, n int) []share {
	random := g.w.weather.random
	sure := random.IntN(n)
	shares := make([]share, n)
	for i := range shares {
		struck := i == sure || random.IntN(2) == 0
		shares[i] = share{carried: !struck || f == AnswerLost, answered: !struck}
	}
	return shares
}

// byDelay strikes messages that the driver sends in batches, those of one delay
// together: a batch is stored whole or not at all, and those behind one that failed
// are not tried.
func byDelay(messages []port.Message) splits {
	var delays []time.Duration
	for _, m := range messages {
		delays = append(delays, m.Delay)
	}
	slices.Sort(delays)
	delays = slices.Compact(delays)
	return func(g *gate, f Fault, n int) []share {
		failing := delays[g.w.weather.random.IntN(len(delays))]
		shares := make([]share, n)
		for i, m := range messages {
			shares[i] = share{
				carried:  m.Delay < failing || m.Delay == failing && f == AnswerLost,
				answered: m.Delay < failing,
			}
		}
		return shares
	}
}

// asAWhole strikes all of them.
func asAWhole(_ *gate, f Fault, n int) []share {
	return slices.Repeat([]share{{carried: f == AnswerLost}}, n)
}
