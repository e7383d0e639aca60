package protocol_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"jobq/core/fault"
	"jobq/core/msg"
	"jobq/core/port"
	"jobq/store/memory"
	"jobq/worker/protocol"
)

// brokenQueues makes sends to the inbox fail, or happen without an answer.
type brokenQueues struct {
	port.Queues
	mu          sync.Mutex
	fails, lost int
}

func (b *brokenQueues) take(n *int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if *n > 0 {
		*n--
		return true
	}
	return false
}

type brokenQueue struct {
	port.Queue
	b *brokenQueues
}

func (b *brokenQueues) Queue(name string) port.Queue {
	if name != inbox {
		return b.Queues.Queue(name)
	}
	return brokenQueue{b.Queues.Queue(name), b}
}

func (q brokenQueue) Send(ctx context.Context, m []port.Message) []error {
	if q.b.take(&q.b.fails) {
		return []error{errDown}
	}
	errs := q.Queue.Send(ctx, m)
	if q.b.take(&q.b.lost) {
		return []error{errDown}
	}
	return errs
}

func TestAReportThatFailsNeverRunsTheCommandAgain(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fails int
		first protocol.Result
		again bool
	}{
		"four times":        {4, protocol.Done, false},
		"until it gives up": {5, protocol.Returned, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, memory.Options{NoFinisher: true}, func(t *testing.T, r *rig) {
				b := &brokenQueues{Queues: r.port.Queues, fails: tc.fails}
				r.port.Queues = b
				r.push()
				r.expect("first", r.handle(t.Context()), tc.first)
				if tc.again {
					r.expect("again", r.handle(t.Context()), protocol.Done)
				}
				if c := r.completion(); !c.Success || c.Start != 1 {
					t.Errorf("completion = %+v", c)
				}
				r.model.runs(t, 1)
				r.left(0)
			})
		})
	}
}

func TestThePlainTask(t *testing.T) {
	t.Parallel()
	plain := func(m *msg.Task) { m.Workflow, m.Name, m.Prefix, m.Attempt, m.NumRetries = "", "", "", 0, 1 }
	bubble(t, memory.Options{}, func(t *testing.T, r *rig) {
		r.push(plain)
		r.expect("success", r.handle(t.Context()), protocol.Done)
		r.left(0)
		if all := r.completions(); len(all) != 0 {
			t.Errorf("completions = %+v, want none", all)
		}
	})
	bubble(t, memory.Options{}, func(t *testing.T, r *rig) {
		r.model.run = func(context.Context, protocol.Start) protocol.Outcome { return exit(1) }
		r.push(plain)
		r.expect("one retry left", r.handle(t.Context()), protocol.Done)
		r.expect("none left", r.handle(t.Context()), protocol.Done)
		r.left(0)
		r.model.runs(t, 2)
		if ds, err := r.port.Queues.Queue(queueA).PoisonQueue().Peek(t.Context(), 1); err != nil || len(ds) != 1 || ds[0].Reason != "it failed" {
			t.Errorf("poison queue = %+v, %v", ds, err)
		}
	})
	bubble(t, memory.Options{}, func(t *testing.T, r *rig) {
		r.model.run = r.model.lasting(time.Hour, time.Second)
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(30*time.Minute, stop)
		r.push(plain)
		r.expect("stopped", r.handle(ctx), protocol.Returned)
		if len(r.model.causes) != 1 || !errors.Is(r.model.causes[0], protocol.ErrStopping) {
			t.Errorf("causes = %v", r.model.causes)
		}
	})
}

// TestHowACommandEndedIsWrittenWhateverItTakes: a worker that is told to stop
// while the store is away still owes it the result.
func TestHowACommandEndedIsWrittenWhateverItTakes(t *testing.T) {
	t.Parallel()
	for name, output := range map[string][]byte{
		"inline":         []byte(`{"a":1}`),
		"its own blob":   []byte(`"` + strings.Repeat("x", 1<<20) + `"`),
		"without output": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, memory.Options{}, func(t *testing.T, r *rig) {
				f := r.withRecords(&flaky{})
				outputs := &awayBlobs{Blobs: r.port.Outputs, f: f}
				r.port.Outputs = outputs
				ctx, stop := context.WithCancel(t.Context())
				r.model.run = func(context.Context, protocol.Start) protocol.Outcome {
					f.set(true)
					stop()
					time.AfterFunc(3*time.Hour, func() { f.set(false) }) // far past the ttl of 10 min
					out := exit(0)
					out.Output = output
					return out
				}
				r.push()
				r.handle(ctx)
				if rec, _ := r.record(); rec.Ended == nil || !rec.Ended.Completion.Success || rec.Start != 1 {
					t.Errorf("record = %+v, want the success of start 1", rec)
				}
				r.model.runs(t, 1)
			})
		})
	}
}

// TestHowACommandEndedIsGivenUpAfterTheStop: where a bound is set the worker ends
// within it of the stop, says what it could not write, and the command runs again.
func TestHowACommandEndedIsGivenUpAfterTheStop(t *testing.T) {
	t.Parallel()
	for name, output := range map[string][]byte{
		"its own blob":   []byte(`"` + strings.Repeat("x", 1<<20) + `"`),
		"without output": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, memory.Options{}, func(t *testing.T, r *rig) {
				f := r.withRecords(&flaky{})
				r.port.Outputs = &awayBlobs{Blobs: r.port.Outputs, f: f}
				ctx, stop := context.WithCancel(t.Context())
				var stopped time.Time
				time.AfterFunc(time.Hour, func() { stopped = time.Now(); f.set(true); stop() })
				time.AfterFunc(5*time.Hour, func() { f.set(false) }) // so that one who does not give up fails here
				r.model.run = func(context.Context, protocol.Start) protocol.Outcome {
					r.wait(time.Hour + time.Minute) // it ends a minute after it was asked to
					out := exit(0)
					out.Output = output
					return out
				}
				var unwritten []error
				r.conf.EndPatience, r.conf.Patience = 2*time.Minute, 10*time.Second
				r.conf.Observe = func(e protocol.Event) {
					if e.Kind == protocol.Unwritten {
						unwritten = append(unwritten, e.Err)
					}
				}
				r.push()
				r.handle(ctx)
				// Beside the end there are the record and the message to give back.
				if took := time.Since(stopped); took < 2*time.Minute || took > 3*time.Minute {
					t.Errorf("the worker ended %v after the stop, want it after EndPatience", took)
				}
				if len(unwritten) != 1 || !errors.Is(unwritten[0], errDown) {
					t.Errorf("unwritten = %v, want %v once", unwritten, errDown)
				}
				if rec, _ := r.record(); rec.Ended != nil {
					t.Errorf("record = %+v, want it not ended", rec)
				}
			})
		})
	}
}

// awayBlobs are away when the records are.
type awayBlobs struct {
	port.Blobs
	f *flaky
}

func (b *awayBlobs) Put(ctx context.Context, name string, body []byte) error {
	if b.f.away() {
		return errDown
	}
	return b.Blobs.Put(ctx, name, body)
}

// TestCallsThatHangDoNotDelayTheFence: the bounds of calls are no part of the
// times at which a command without beats is stopped and killed.
func TestCallsThatHangDoNotDelayTheFence(t *testing.T) {
	t.Parallel()
	bubble(t, memory.Options{}, func(t *testing.T, r *rig) {
		r.port.Records = hanging{r.port.Records}
		r.port.Finisher = nil
		var asked, killed time.Time
		began := time.Now()
		r.model.run = func(ctx context.Context, s protocol.Start) protocol.Outcome {
			<-ctx.Done()
			asked = time.Now()
			select {
			case <-s.Kill:
			case <-time.After(time.Hour):
			}
			killed = time.Now()
			return protocol.Outcome{Kind: protocol.Stopped, ExitCode: -1, Signal: "SIGKILL", StartedAt: began, EndedAt: killed}
		}
		r.push()
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(time.Hour, stop)
		r.handle(ctx)
		if got := asked.Sub(began); got != 5*time.Minute {
			t.Errorf("asked to end after %v, want half the ttl of 10m", got)
		}
		if got := killed.Sub(began); got != 7*time.Minute {
			t.Errorf("killed after %v, want 0.7 of the ttl of 10m", got)
		}
	})
}

// hanging never answers a change.
type hanging struct{ port.Records }

func (hanging) Change(ctx context.Context, _ port.RecordKey, _ port.Record, _ port.Tag) (port.Tag, error) {
	<-ctx.Done()
	return "", fault.Wrap(fault.Canceled, context.Cause(ctx), "no answer")
}
