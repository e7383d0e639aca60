package wrap

import (
	"context"
	"iter"
	"math/rand/v2"
	"time"

	"jobq/core/fault"
	"jobq/core/port"
)

// Clock is what a retry needs of a scheduler; sched.Scheduler has it.
type Clock interface {
	Now() time.Time
	// Sleep returns nil after d, or the cause of ctx's end when that comes first.
	Sleep(ctx context.Context, d time.Duration) error
}

// RetryPolicy bounds repeats. Zero fields have the defaults that are named.
type RetryPolicy struct {
	// Tries is how often a call is made at most, the first included; 4.
	Tries int
	// MaxTime is how long after its beginning a call is no longer repeated; 30 s.
	MaxTime time.Duration
	// FirstPause doubles with every repeat up to MaxPause; 100 ms and 5 s. Each
	// pause is cut by up to half at random. Where the service asked for a pause,
	// it is at least that long.
	FirstPause, MaxPause time.Duration
	// Random returns a number in [0, 1); nil means one that differs every time.
	Random func() float64
}

// Retry returns s with the calls repeated that are safe to repeat.
//
// After fault.Throttled nothing has happened: everything is repeated but
// States.Create, States.Save and Finisher. After fault.Unavailable a write may
// have happened: it is repeated where its caller can tell (a create-only write
// then answers fault.Exists and a conditional one fault.Conflict, upon which
// callers read back) or where twice does no harm (messages are delivered at
// least once anyway). Log.Append and Presence.Join are not repeated then.
//
// When the bounds are reached or ctx ends, the last error of the store is
// returned, since it says more than that somebody stopped waiting.
func Retry(s *port.Store, clock Clock, p RetryPolicy) *port.Store {
	r := &retrier{clock: clock, policy: p.withDefaults()}
	wrapped := *s
	wrapped.States = states{s.States, r}
	wrapped.Records = records{s.Records, r}
	wrapped.Index = index{s.Index, r}
	wrapped.Queues = queues{s.Queues, r}
	wrapped.Outputs = blobs{s.Outputs, r}
	wrapped.Events = log{s.Events, r}
	wrapped.TaskLogs = log{s.TaskLogs, r}
	wrapped.Leases = leases{s.Leases, r}
	wrapped.Presence = presence{s.Presence, r}
	return &wrapped
}

func (p RetryPolicy) withDefaults() RetryPolicy {
	if p.Tries <= 0 {
		p.Tries = 4
	}
	if p.MaxTime <= 0 {
		p.MaxTime = 30 * time.Second
	}
	if p.FirstPause <= 0 {
		p.FirstPause = 100 * time.Millisecond
	}
	if p.MaxPause <= 0 {
		p.MaxPause = 5 * time.Second
	}
	if p.Random == nil {
		p.Random = rand.Float64
	}
	return p
}

type retrier struct {
	clock  Clock
	policy RetryPolicy
}

// repeatable says after which codes a call is made again.
type repeatable func(fault.Code) bool

// ifTransient is for calls that may happen twice, ifRefused for those that may not.
func ifTransient(c fault.Code) bool { return c.Transient() }
func ifRefused(c fault.Code) bool   { return c == fault.Throttled }

// attempts counts the tries of one call.
type attempts struct {
	*retrier
	begun time.Time
	made  int
}

func (r *retrier) begin() *attempts { return &attempts{retrier: r, begun: r.clock.Now()} }

// again waits before the next try and reports whether there is one.
func (a *attempts) again(ctx context.Context, err error, when repeatable) bool {
	a.made++
	if err == nil || !when(fault.CodeOf(err)) || a.made >= a.policy.Tries || ctx.Err() != nil {
		return false
	}
	pause := a.policy.MaxPause
	// Beyond 30 doublings the shift would overflow; MaxPause is reached long before.
	if a.made <= 30 {
		pause = min(pause, a.policy.FirstPause<<(a.made-1))
	}
	pause -= time.Duration(a.policy.Random() * float64(pause) / 2)
	pause = max(pause, fault.RetryAfter(err))
	if a.clock.Now().Sub(a.begun)+pause > a.policy.MaxTime {
		return false
	}
	return a.clock.Sleep(ctx, pause) == nil
}

func (r *retrier) do(ctx context.Context, when repeatable, call func() error) error {
	for a := r.begin(); ; {
		err := call()
		if !a.again(ctx, err, when) {
			return err
		}
	}
}

func value[T any](ctx context.Context, r *retrier, when repeatable, call func() (T, error)) (T, error) {
	for a := r.begin(); ; {
		v, err := call()
		if !a.again(ctx, err, when) {
			return v, err
		}
	}
}

// each makes a call over items that answers one by one, and repeats it for the
// items that failed for a passing reason.
func each[T any](ctx context.Context, r *retrier, items []T, call func([]T) []error) []error {
	a := r.begin()
	errs := call(items)
	for {
		var again []T
		var places []int
		var worst error
		for i, err := range errs {
			if err != nil && ifTransient(fault.CodeOf(err)) {
				again, places = append(again, items[i]), append(places, i)
				if worst == nil || fault.RetryAfter(err) > fault.RetryAfter(worst) {
					worst = err
				}
			}
		}
		if !a.again(ctx, worst, ifTransient) {
			return errs
		}
		answers := call(again)
		for at, i := range places {
			errs[i] = nil
			if answers != nil {
				errs[i] = answers[at]
			}
		}
		if !failed(errs) {
			return nil
		}
	}
}

func failed(errs []error) bool {
	for _, err := range errs {
		if err != nil {
			return true
		}
	}
	return false
}

// names repeats a listing from where it broke off: names ascend, so what was
// yielded already is passed over. A listing that got further has all its tries
// again.
func (r *retrier) names(ctx context.Context, list func() iter.Seq2[string, error]) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		a := r.begin()
		last, yielded := "", false
		for {
			var failure error
			for name, err := range list() {
				if err != nil {
					failure = err
					break
				}
				if yielded && name <= last {
					continue
				}
				last, yielded = name, true
				a = r.begin()
				if !yield(name, nil) {
					return
				}
			}
			if failure == nil {
				return
			}
			if !a.again(ctx, failure, ifTransient) {
				yield("", failure)
				return
			}
		}
	}
}
