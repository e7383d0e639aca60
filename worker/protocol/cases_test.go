package protocol_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"jobq/core/fault"
	"jobq/core/msg"
	"jobq/core/port"
	"jobq/worker/protocol"
)

// protocolCase is a piece of the protocol that must hold on every store.
type protocolCase struct {
	name string
	// lock is that of the messages; records that lapse have ttls of their own.
	lock time.Duration
	run  func(t *testing.T, r *rig)
}

// TestTheProtocolHoldsOnEveryStore plays claims, take-overs, give-backs, ends and
// lost answers on each place. What needs long or exact times is shown in memory
// alone, by the other tests of this package.
func TestTheProtocolHoldsOnEveryStore(t *testing.T) {
	t.Parallel()
	for _, p := range places() {
		for _, c := range slices.Concat(claimCases(), lostAnswerCases(), runCases(), messageCases()) {
			if c.lock == 0 {
				c.lock = time.Minute
			}
			t.Run(p.name+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				p.with(t, c.lock, func(t *testing.T, r *rig) {
					r.conf.Lock = c.lock
					c.run(t, r)
				})
			})
		}
	}
}

func claimCases() []protocolCase {
	cases := []protocolCase{
		{name: "a task runs once and a copy reports it again", run: func(t *testing.T, r *rig) {
			r.push()
			r.expect("first delivery", r.handle(t.Context()), protocol.Done)
			if c := r.completion(); !c.Success || c.Attempt != 1 || c.Start != 1 || c.ExitCode == nil || *c.ExitCode != 0 || c.Worker != "host" {
				t.Errorf("completion = %+v", c)
			}
			if rec, stored := r.record(); rec.Ended == nil || rec.Ended.Completion == nil || stored.Owner != "" {
				t.Errorf("record = %+v of %q, want it ended and unowned", rec, stored.Owner)
			}
			r.left(0)
			r.push()
			r.expect("a copy", r.handle(t.Context()), protocol.Done)
			if again := r.completion(); again.Task != "t" || !again.Success {
				t.Errorf("the copy sent %+v, want the completion again", again)
			}
			r.left(0)
			r.model.runs(t, 1)
		}},
		{name: "what the coordinator ended is not run", run: func(t *testing.T, r *rig) {
			r.putRecord("", msg.AttemptRecord{Ended: &msg.Ended{ByCoordinator: true}})
			r.push()
			r.expect("ended", r.handle(t.Context()), protocol.Done)
			r.left(0)
			r.model.runs(t, 0)
			r.reports(0)
		}},
		{name: "a free record is gone on with at once", run: func(t *testing.T, r *rig) {
			r.putRecord("", msg.AttemptRecord{Start: 3, TTL: time.Hour, Free: true, Crashes: 2, RunID: "old"})
			r.push()
			r.expect("free", r.handle(t.Context()), protocol.Done)
			if c := r.completion(); c.Start != 4 || !c.Success {
				t.Errorf("completion = %+v, want success of start 4", c)
			}
			if rec, _ := r.record(); rec.Crashes != 2 {
				t.Errorf("crashes = %d, want 2: a give-back is none", rec.Crashes)
			}
		}},
		{name: "a held record is left alone until it is stale", run: func(t *testing.T, r *rig) {
			r.putRecord("somebody", msg.AttemptRecord{Start: 1, TTL: time.Hour, RunID: "old"})
			r.push()
			r.expect("held", r.handle(t.Context()), protocol.Returned)
			r.model.runs(t, 0)
			if rec, stored := r.record(); rec.RunID != "old" || stored.Owner != "somebody" {
				t.Errorf("record = %+v of %q, want it untouched", rec, stored.Owner)
			}
			// From its last beat on the holder says nothing.
			began := time.Now()
			r.changeRecord("somebody", func(rec *msg.AttemptRecord) { rec.TTL = 3 * time.Second })
			r.push() // the first message waits for the hour to end
			for r.handle(t.Context()) != protocol.Done {
			}
			// The service has whole seconds.
			if waited := time.Since(began); waited < 2*time.Second {
				t.Errorf("taken over after %v, want the ttl of 3s", waited)
			}
			if c := r.completion(); c.Start != 2 {
				t.Errorf("completion of start %d, want 2", c.Start)
			}
			if rec, _ := r.record(); rec.Crashes != 1 {
				t.Errorf("crashes = %d, want 1", rec.Crashes)
			}
			r.model.runs(t, 1)
			if s := r.model.starts[0]; s.Survivor != "old" {
				t.Errorf("survivor = %q, want the lost start", s.Survivor)
			}
		}},
		{name: "of many copies one runs", run: manyCopies},
	}
	for name, tc := range map[string]struct {
		before msg.AttemptRecord
		runs   int
	}{
		"one crash short":       {msg.AttemptRecord{Start: 2, TTL: time.Second, Crashes: 1}, 1},
		"the last crash":        {msg.AttemptRecord{Start: 3, TTL: time.Second, Crashes: 2}, 0},
		"counted by its holder": {msg.AttemptRecord{Start: 3, TTL: time.Hour, Crashes: 3, Free: true}, 0},
		"many planned stops":    {msg.AttemptRecord{Start: 300, TTL: time.Hour, Crashes: 2, Free: true}, 1},
	} {
		cases = append(cases, protocolCase{name: "the crash limit, " + name, run: func(t *testing.T, r *rig) {
			r.conf.CrashLimit = 3
			r.putRecord("dead", tc.before)
			r.push()
			for r.handle(t.Context()) != protocol.Done {
			}
			r.model.runs(t, tc.runs)
			c := r.completion()
			if lost := c.Reason == msg.Lost && !c.Success; lost != (tc.runs == 0) {
				t.Errorf("completion = %+v", c)
			}
			if rec, _ := r.record(); rec.Ended == nil {
				t.Errorf("record = %+v, want it ended", rec)
			}
			r.left(0)
		}})
	}
	return cases
}

// manyCopies lets workers race for one attempt: the store decides.
func manyCopies(t *testing.T, r *rig) {
	const copies = 6
	var held []port.Delivery
	for range copies {
		r.push()
	}
	for range copies {
		held = append(held, r.receive())
	}
	var wg sync.WaitGroup
	for i, d := range held {
		wg.Go(func() { protocol.New(r.conf).Handle(t.Context(), r.port.Queues.Queue(queueA), d, i) })
	}
	wg.Wait()
	r.model.runs(t, 1)
	all := r.completions()
	if len(all) == 0 {
		t.Fatal("nobody reported")
	}
	for _, c := range all {
		if !c.Success || c.Start != 1 {
			t.Errorf("completion = %+v, want the success of start 1", c)
		}
	}
}

func lostAnswerCases() []protocolCase {
	var cases []protocolCase
	for creates := range 3 {
		for changes := range 3 {
			cases = append(cases, protocolCase{name: fmt.Sprintf("answers of %d creates and %d changes are lost", creates, changes), run: func(t *testing.T, r *rig) {
				r.network.loseCreates(creates)
				r.network.loseChanges(changes)
				r.push()
				r.expect("delivery", r.handle(t.Context()), protocol.Done)
				r.model.runs(t, 1)
				if c := r.completion(); !c.Success || c.Start != 1 {
					t.Errorf("completion = %+v", c)
				}
				if rec, _ := r.record(); rec.Crashes != 0 || rec.Ended == nil {
					t.Errorf("record = %+v", rec)
				}
				r.left(0)
				if planned := creates + changes; planned > 0 && r.network.left() == planned {
					t.Error("no answer was lost")
				}
			}})
		}
	}
	return append(cases,
		protocolCase{name: "the answer of a take-over is lost", run: func(t *testing.T, r *rig) {
			r.putRecord("", msg.AttemptRecord{Start: 1, TTL: time.Hour, Free: true})
			r.network.loseChanges(1)
			r.push()
			r.expect("delivery", r.handle(t.Context()), protocol.Done)
			r.model.runs(t, 1)
			if c := r.completion(); c.Start != 2 {
				t.Errorf("completion of start %d, want 2", c.Start)
			}
			if n := r.network.left(); n != 0 {
				t.Error("no answer was lost")
			}
		}},
		protocolCase{name: "the answer of a give-back is lost", run: func(t *testing.T, r *rig) {
			ctx, stop := context.WithCancel(t.Context())
			r.model.run = func(ctx context.Context, s protocol.Start) protocol.Outcome {
				r.network.loseChanges(1)
				stop()
				return r.model.lasting(time.Hour, 0)(ctx, s)
			}
			r.push()
			r.expect("stopped", r.handle(ctx), protocol.Returned)
			if rec, _ := r.record(); !rec.Free || rec.Crashes != 0 {
				t.Errorf("record = %+v, want it free without a crash", rec)
			}
		}},
		protocolCase{name: "the answer of a report is lost", run: func(t *testing.T, r *rig) {
			r.network.loseSends(1)
			r.push()
			r.expect("delivery", r.handle(t.Context()), protocol.Done)
			all := r.completions()
			if want := 2; len(all) != want && !r.port.Queues.Queue(inbox).Props().Deduplicates {
				t.Errorf("%d completions, want the one without an answer and its repeat", len(all))
			}
			for _, c := range all {
				if !c.Success || c.Start != 1 {
					t.Errorf("completion = %+v", c)
				}
			}
			r.model.runs(t, 1)
			r.left(0)
		}},
		reportFails("four times", 4, protocol.Done, false),
		reportFails("until it is given up", 5, protocol.Returned, true),
		protocolCase{name: "rights taken while a command ends do not run it again", run: func(t *testing.T, r *rig) {
			r.model.run = func(context.Context, protocol.Start) protocol.Outcome {
				r.network.deny(true)
				time.AfterFunc(2*time.Second, func() { r.network.deny(false) })
				return exit(0)
			}
			r.push()
			r.expect("delivery", r.handle(t.Context()), protocol.Done)
			if c := r.completion(); !c.Success || c.Start != 1 {
				t.Errorf("completion = %+v, want the success of start 1", c)
			}
			r.model.runs(t, 1)
			r.left(0)
		}},
		protocolCase{name: "records that are away give the message back", run: func(t *testing.T, r *rig) {
			r.network.cut(true)
			r.push()
			r.expect("away", r.handle(t.Context()), protocol.Returned)
			r.model.runs(t, 0)
			r.network.cut(false)
			r.expect("back", r.handle(t.Context()), protocol.Done)
			r.model.runs(t, 1)
			r.left(0)
		}},
	)
}

// reportFails has sends of the report fail: the command is never run again for it.
func reportFails(name string, times int, first protocol.Result, again bool) protocolCase {
	return protocolCase{name: "a report fails " + name, run: func(t *testing.T, r *rig) {
		r.network.failSends(times)
		r.push()
		r.expect("first", r.handle(t.Context()), first)
		if again {
			r.reports(0)
			r.expect("again", r.handle(t.Context()), protocol.Done)
		}
		if c := r.completion(); !c.Success || c.Start != 1 {
			t.Errorf("completion = %+v", c)
		}
		r.model.runs(t, 1)
		r.left(0)
	}}
}

// beating is a lock so short that a record beats every second.
const beating = 3 * time.Second

func runCases() []protocolCase {
	cases := []protocolCase{
		// C06: whatever was renewed on the way, the newest receipt settles.
		{name: "a command of three lock times keeps record and message", lock: 3 * beating, run: func(t *testing.T, r *rig) {
			r.model.run = r.model.lasting(9*beating, 0)
			r.push()
			r.expect("delivery", r.handle(t.Context()), protocol.Done)
			if c := r.completion(); !c.Success || c.Attempt != 1 || c.Start != 1 {
				t.Errorf("completion = %+v, want the success of start 1 of attempt 1", c)
			}
			r.model.runs(t, 1)
			r.left(0)
			if r.model.beats < 3 {
				t.Errorf("the guardian heard of %d beats in %v", r.model.beats, 9*beating)
			}
		}},
		{name: "a planned stop gives the attempt back", run: func(t *testing.T, r *rig) {
			ctx, stop := context.WithCancel(t.Context())
			r.model.run = func(ctx context.Context, s protocol.Start) protocol.Outcome {
				stop()
				return r.model.lasting(time.Hour, time.Millisecond)(ctx, s)
			}
			r.push()
			r.expect("stopped", r.handle(ctx), protocol.Returned)
			if rec, stored := r.record(); !rec.Free || stored.Owner != "" || rec.Crashes != 0 || rec.Ended != nil {
				t.Errorf("record = %+v of %q, want it free", rec, stored.Owner)
			}
			if !slices.Equal(r.model.causes, []error{protocol.ErrStopping}) {
				t.Errorf("causes = %v", r.model.causes)
			}
			r.reports(0)
			r.model.run = nil
			r.expect("next", r.handle(t.Context()), protocol.Done)
			if c := r.completion(); c.Start != 2 || !c.Success {
				t.Errorf("completion = %+v, want success of start 2", c)
			}
			r.left(0)
		}},
		{name: "a record that was taken kills the command", lock: beating, run: func(t *testing.T, r *rig) {
			r.model.run = func(ctx context.Context, s protocol.Start) protocol.Outcome {
				r.changeRecord("other", func(rec *msg.AttemptRecord) { rec.RunID, rec.Start = "another", 2 })
				return r.model.lasting(time.Hour, time.Hour)(ctx, s)
			}
			r.push()
			if got := r.handle(t.Context()); got == protocol.Done {
				t.Errorf("Handle = %v, want the message left to the other start", got)
			}
			if r.model.killed != 1 || !slices.ContainsFunc(r.model.causes, func(err error) bool { return errors.Is(err, protocol.ErrLockLost) }) {
				t.Errorf("killed %d times, causes %v; want a kill at the next beat", r.model.killed, r.model.causes)
			}
			if rec, stored := r.record(); rec.RunID != "another" || stored.Owner != "other" || rec.Ended != nil {
				t.Errorf("record = %+v of %q, want that of the other start", rec, stored.Owner)
			}
			r.reports(0)
		}},
		{name: "a cancel request stops the command", run: func(t *testing.T, r *rig) {
			r.conf.CancelPoll = 500 * time.Millisecond
			r.model.run = func(ctx context.Context, s protocol.Start) protocol.Outcome {
				r.row(port.Row{Status: "running"}, port.CancelRequest{Requested: true, Epoch: 1})
				return r.model.lasting(time.Hour, 0)(ctx, s)
			}
			r.push()
			r.expect("delivery", r.handle(t.Context()), protocol.Done)
			if c := r.completion(); c.Success || c.Reason != msg.Cancelled {
				t.Errorf("completion = %+v, want cancelled", c)
			}
		}},
		{name: "a large output has a blob of its own", run: func(t *testing.T, r *rig) {
			output := []byte(`"` + strings.Repeat("x", 600<<10) + `"`)
			r.model.run = func(context.Context, protocol.Start) protocol.Outcome {
				out := exit(0)
				out.Output = output
				return out
			}
			r.push()
			r.expect("delivery", r.handle(t.Context()), protocol.Done)
			ref, err := msg.ParseOutputRef(r.completion().OutputRef)
			r.must(err)
			if got, err := r.outside.Outputs.Get(t.Context(), ref.Blob); err != nil || string(got) != string(output) {
				t.Errorf("output %q has %d bytes, error %v; want %d", ref.Blob, len(got), err, len(output))
			}
		}},
	}
	for name, ends := range map[string]time.Duration{"while it runs": time.Hour, "before its report": 0} {
		cases = append(cases, protocolCase{name: "an attempt ended by others is not overwritten, " + name, lock: beating, run: func(t *testing.T, r *rig) {
			r.model.run = func(ctx context.Context, s protocol.Start) protocol.Outcome {
				r.changeRecord("", func(rec *msg.AttemptRecord) {
					rec.Ended = &msg.Ended{Completion: &msg.Completion{Workflow: "w", Task: "t", Attempt: 1, Start: 1, Reason: msg.Lost}}
				})
				return r.model.lasting(ends, 0)(ctx, s)
			}
			r.push()
			if got := r.handle(t.Context()); got == protocol.Done {
				t.Errorf("Handle = %v, want the message to come again", got)
			}
			if rec, _ := r.record(); rec.Ended == nil || rec.Ended.Completion.Reason != msg.Lost {
				t.Errorf("record = %+v, want it ended as lost", rec)
			}
			r.expect("again", r.handle(t.Context()), protocol.Done)
			if c := r.completion(); c.Reason != msg.Lost {
				t.Errorf("completion = %+v, want lost", c)
			}
			r.model.runs(t, 1)
		}})
	}
	return cases
}

func messageCases() []protocolCase {
	cases := []protocolCase{
		{name: "what nobody can read leaves the queue", run: func(t *testing.T, r *rig) {
			r.pushBody([]byte("no JSON"))
			r.expect("delivery", r.handle(t.Context()), protocol.Done)
			r.left(0)
			ds, err := r.outside.Queues.Queue(queueA).PoisonQueue().Peek(t.Context(), 2)
			r.must(err)
			if len(ds) != 1 || string(ds[0].Body) != "no JSON" || ds[0].Reason == "" {
				t.Errorf("poison queue = %+v, want the message and a reason", ds)
			}
		}},
		{name: "a message of a purged workflow leaves nothing", run: func(t *testing.T, r *rig) {
			r.row(port.Row{Status: "purged", Epoch: 8}, port.CancelRequest{})
			r.push(func(m *msg.Task) { m.Epoch = 7 })
			r.expect("delivery", r.handle(t.Context()), protocol.Done)
			r.model.runs(t, 0)
			r.left(0)
			r.reports(0)
			if _, err := r.outside.Records.Read(t.Context(), key); !fault.Is(err, fault.NotFound) {
				t.Errorf("Read of the record = error %v, want not found", err)
			}
		}},
		{name: "a workflow cancelled before the start runs nothing", run: func(t *testing.T, r *rig) {
			r.row(port.Row{Status: "running"}, port.CancelRequest{Requested: true, Epoch: 8})
			r.push(func(m *msg.Task) { m.Epoch = 7 })
			r.expect("delivery", r.handle(t.Context()), protocol.Done)
			r.model.runs(t, 0)
			if c := r.completion(); c.Success || c.Reason != msg.Cancelled {
				t.Errorf("completion = %+v, want cancelled", c)
			}
		}},
	}
	for name, edit := range map[string]func(*rig, *msg.Task){
		"of another prefix": func(_ *rig, m *msg.Task) { m.Prefix = "local/other" },
		"of no prefix":      func(r *rig, m *msg.Task) { m.Prefix, r.conf.Prefix = "", "" },
		"without an inbox":  func(r *rig, _ *msg.Task) { r.conf.Inbox = "" },
	} {
		cases = append(cases, protocolCase{name: "a message " + name + " goes back", run: func(t *testing.T, r *rig) {
			r.push(func(m *msg.Task) { edit(r, m) })
			r.expect("delivery", r.handle(t.Context()), protocol.Returned)
			r.left(1)
			r.model.runs(t, 0)
			r.reports(0)
		}})
	}
	return cases
}

// changeRecord is what another process does to the record.
func (r *rig) changeRecord(owner string, edit func(*msg.AttemptRecord)) {
	r.t.Helper()
	rec, stored := r.record()
	edit(&rec)
	body, err := msg.EncodeRecord(rec)
	r.must(err)
	_, err = r.outside.Records.Change(r.t.Context(), key, port.Record{Owner: owner, Body: body}, stored.Tag)
	r.must(err)
}

// reports fails unless the inbox holds want completions, which it empties.
func (r *rig) reports(want int) {
	r.t.Helper()
	if all := r.completions(); len(all) != want {
		r.t.Errorf("the inbox holds %+v, want %d completions", all, want)
	}
}
