package protocol_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"jobq/core/fault"
	"jobq/core/msg"
	"jobq/core/port"
	"jobq/store/memory"
	"jobq/worker/protocol"
)

func TestHowACommandEndsDecidesTheReport(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		out     protocol.Outcome
		want    msg.Reason
		success bool
		says    string
	}{
		"exit 0":                    {out: exit(0), success: true},
		"exit 3":                    {out: exit(3), want: msg.Exited, says: "it failed"},
		"a signal of others":        {out: protocol.Outcome{Kind: protocol.Exited, ExitCode: -1, Signal: "SIGSEGV", Error: "ended by SIGSEGV"}, want: msg.Exited, says: "SIGSEGV"},
		"no such directory":         {out: protocol.Outcome{Kind: protocol.Impossible, ExitCode: -1, Error: "no such directory"}, want: msg.SpawnFailed, says: "no such directory"},
		"bad output":                {out: protocol.Outcome{Kind: protocol.Exited, OutputError: "two documents"}, want: msg.OutputInvalid, says: "two documents"},
		"bad output and exit 1":     {out: protocol.Outcome{Kind: protocol.Exited, ExitCode: 1, Error: "boom", OutputError: "two documents"}, want: msg.Exited, says: "boom"},
		"an error text of any size": {out: protocol.Outcome{Kind: protocol.Exited, ExitCode: 1, Error: "head" + strings.Repeat("x", 1<<20)}, want: msg.Exited, says: "head"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, memory.Options{}, func(t *testing.T, r *rig) {
				r.model.run = func(context.Context, protocol.Start) protocol.Outcome { return tc.out }
				r.push()
				r.expect("delivery", r.handle(t.Context()), protocol.Done)
				c := r.completion()
				if c.Success != tc.success || c.Reason != tc.want || !strings.Contains(c.Error, tc.says) || len(c.Error) > msg.MaxError {
					t.Errorf("completion = %+v, want success %v, reason %q, error with %q", c, tc.success, tc.want, tc.says)
				}
			})
		})
	}
}

func TestALongCommandKeepsRecordAndMessage(t *testing.T) {
	t.Parallel()
	bubble(t, memory.Options{}, func(t *testing.T, r *rig) {
		r.model.run = r.model.lasting(3*time.Hour, 0)
		r.push()
		var wg sync.WaitGroup
		wg.Go(func() { r.expect("delivery", r.handle(t.Context()), protocol.Done) })
		for range 170 {
			time.Sleep(time.Minute)
			if rec, stored := r.record(); stored.Stale(rec.TTL) {
				t.Fatalf("the record is stale after %v", stored.Age)
			}
			ds, err := r.outside.Queues.Queue(queueA).Receive(t.Context(), port.ReceiveOptions{Max: 1, Lock: time.Minute})
			if err != nil || len(ds) != 0 {
				t.Fatalf("the message was delivered again: %v, %v", ds, err)
			}
		}
		wg.Wait()
		r.completion()
		if r.model.beats < 30 {
			t.Errorf("the guardian heard of %d beats in 3 h, want one every few minutes", r.model.beats)
		}
	})
}

func TestAQueueWithAShortLockKeepsTheMessage(t *testing.T) {
	t.Parallel()
	props := memory.DefaultQueue()
	props.MaxLock, props.FixedLock = time.Minute, true
	bubble(t, memory.Options{Queue: &props}, func(t *testing.T, r *rig) {
		r.model.run = r.model.lasting(time.Hour, 0)
		r.push()
		var wg sync.WaitGroup
		wg.Go(func() { r.expect("long command", r.handle(t.Context()), protocol.Done) })
		synctest.Wait()
		for range 59 {
			ds, err := r.outside.Queues.Queue(queueA).Receive(t.Context(), port.ReceiveOptions{Max: 1, Lock: time.Minute, Wait: time.Minute})
			if err != nil || len(ds) > 0 {
				t.Fatalf("another worker received %d messages, %v, while the command ran", len(ds), err)
			}
		}
		wg.Wait()
		r.model.runs(t, 1)
	})
}

func TestAPlannedStopGivesTheAttemptBack(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]memory.Options{"native": {}, "copies": {Queue: &port.QueueProps{CanWait: true, CountReadable: true}}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, o, func(t *testing.T, r *rig) {
				r.model.run = r.model.lasting(time.Hour, time.Minute)
				r.push()
				ctx, stop := context.WithCancel(t.Context())
				time.AfterFunc(10*time.Minute, stop)
				began := time.Now()
				r.expect("stopped", r.handle(ctx), protocol.Returned)
				if took := time.Since(began); took != 11*time.Minute {
					t.Errorf("stopped after %v, want 10m and the grace of 1m", took)
				}
				if rec, stored := r.record(); !rec.Free || stored.Owner != "" || rec.Crashes != 0 || rec.Ended != nil {
					t.Errorf("record = %+v of %q, want it free", rec, stored.Owner)
				}
				if !slices.Equal(r.model.causes, []error{protocol.ErrStopping}) {
					t.Errorf("causes = %v", r.model.causes)
				}
				if all := r.completions(); len(all) != 0 {
					t.Errorf("completions = %+v, want none", all)
				}
				r.model.run = nil
				began = time.Now()
				r.expect("next", r.handle(t.Context()), protocol.Done)
				if c := r.completion(); c.Start != 2 || !c.Success || time.Since(began) != 0 {
					t.Errorf("completion %+v after %v, want start 2 at once", c, time.Since(began))
				}
			})
		})
	}
}

func TestWhatFailsWhileTheWorkerStopsIsNotTheTasksFailure(t *testing.T) {
	t.Parallel()
	bubble(t, memory.Options{}, func(t *testing.T, r *rig) {
		ctx, stop := context.WithCancel(t.Context())
		r.model.run = func(context.Context, protocol.Start) protocol.Outcome {
			stop() // the machine goes down and took the command first
			return exit(143)
		}
		r.push()
		r.expect("delivery", r.handle(ctx), protocol.Returned)
		if rec, _ := r.record(); !rec.Free || rec.Crashes != 0 {
			t.Errorf("record = %+v, want it free without a crash", rec)
		}
	})
}

func TestACommandThatSucceedsWhileTheWorkerStopsIsReported(t *testing.T) {
	t.Parallel()
	bubble(t, memory.Options{}, func(t *testing.T, r *rig) {
		ctx, stop := context.WithCancel(t.Context())
		r.model.run = func(context.Context, protocol.Start) protocol.Outcome {
			stop()
			return exit(0)
		}
		r.push()
		r.expect("delivery", r.handle(ctx), protocol.Done)
		if c := r.completion(); !c.Success {
			t.Errorf("completion = %+v", c)
		}
	})
}

func TestACancelRequestStopsARunningCommand(t *testing.T) {
	t.Parallel()
	bubble(t, memory.Options{}, func(t *testing.T, r *rig) {
		r.model.run = r.model.lasting(time.Hour, time.Second)
		time.AfterFunc(10*time.Minute, func() {
			r.row(port.Row{Status: "running"}, port.CancelRequest{Requested: true, Epoch: 1})
		})
		r.push()
		began := time.Now()
		r.expect("delivery", r.handle(t.Context()), protocol.Done)
		if took := time.Since(began); took < 10*time.Minute || took > 11*time.Minute {
			t.Errorf("stopped after %v, want within the poll after 10m", took)
		}
		if c := r.completion(); c.Success || c.Reason != msg.Cancelled {
			t.Errorf("completion = %+v, want cancelled", c)
		}
		if !slices.Equal(r.model.causes, []error{protocol.ErrCancelled}) {
			t.Errorf("causes = %v", r.model.causes)
		}
	})
}

func TestATimeLimitEndsTheAttempt(t *testing.T) {
	t.Parallel()
	bubble(t, memory.Options{}, func(t *testing.T, r *rig) {
		r.model.run = r.model.lasting(time.Hour, time.Second)
		r.push(func(m *msg.Task) { m.TimeoutSeconds = 90 })
		began := time.Now()
		r.expect("delivery", r.handle(t.Context()), protocol.Done)
		if took := time.Since(began); took != 91*time.Second {
			t.Errorf("ended after %v, want 91s", took)
		}
		if c := r.completion(); c.Reason != msg.TimedOut || !strings.Contains(c.Error, "1m30s") {
			t.Errorf("completion = %+v, want timed out", c)
		}
	})
}

// Inputs that always take longer than the time limit would be fetched again and
// again, and the task would neither run nor end.
func TestATimeLimitEndsTheAttemptWhileItsInputsAreFetched(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(m *msg.Task){
		"outputs of parents": func(m *msg.Task) { m.Upstream = &msg.Refs{Canonical: []string{"parent"}} },
		"their list":         func(m *msg.Task) { m.UpstreamRef = msg.RefsBlob("w", "t", 1) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, memory.Options{}, func(t *testing.T, r *rig) {
				store := *r.port
				store.Outputs = silentOutputs{store.Outputs}
				r.conf.Store = &store
				r.model.run = func(ctx context.Context, s protocol.Start) protocol.Outcome {
					_, err := s.Fetch(ctx, msg.FormatBlobRef(msg.CanonicalOutput("w", "parent"), ""))
					return protocol.Unprepare(err)
				}
				r.push(func(m *msg.Task) { m.TimeoutSeconds = 45 }, edit)
				r.expect("delivery", r.handle(t.Context()), protocol.Done)
				if c := r.completion(); c.Reason != msg.TimedOut || !strings.Contains(c.Error, "45s") || !strings.Contains(c.Error, "outputs of its parents") {
					t.Errorf("completion = %+v, want timed out", c)
				}
			})
		})
	}
}

// silentOutputs are outputs that nobody hears of.
type silentOutputs struct{ port.Blobs }

func (silentOutputs) Get(ctx context.Context, _ string) ([]byte, error) {
	<-ctx.Done()
	return nil, fault.Wrap(fault.Canceled, context.Cause(ctx), "no answer")
}

func TestWithoutBeatsTheCommandEndsBeforeTheRecordIsStale(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		grace    time.Duration
		from, to time.Duration
		killed   int
	}{
		"it ends when asked":  {time.Second, 5 * time.Minute, 6 * time.Minute, 0},
		"it has to be killed": {time.Hour, 7 * time.Minute, 8 * time.Minute, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, memory.Options{}, func(t *testing.T, r *rig) {
				f := r.withRecords(&flaky{})
				ended := make(chan time.Time, 1)
				last := r.model.lasting(10*time.Hour, tc.grace)
				r.model.run = func(ctx context.Context, s protocol.Start) protocol.Outcome {
					f.set(true) // from the claim on, nothing answers: the ttl is 10 min
					out := last(ctx, s)
					ended <- time.Now()
					f.set(false)
					return out
				}
				r.push()
				began := time.Now()
				r.expect("delivery", r.handle(t.Context()), protocol.Returned)
				if took := (<-ended).Sub(began); took < tc.from || took > tc.to {
					t.Errorf("the command ended after %v, want between %v and %v", took, tc.from, tc.to)
				}
				if r.model.killed != tc.killed || !slices.Equal(r.model.causes, []error{protocol.ErrLockLost}) {
					t.Errorf("killed %d times, causes %v", r.model.killed, r.model.causes)
				}
				if rec, _ := r.record(); !rec.Free || rec.Crashes != 1 {
					t.Errorf("record = %+v, want it free with a crash", rec)
				}
				if all := r.completions(); len(all) != 0 {
					t.Errorf("completions = %+v, want none", all)
				}
			})
		})
	}
}

func TestAShortOutageStopsNothing(t *testing.T) {
	t.Parallel()
	bubble(t, memory.Options{}, func(t *testing.T, r *rig) {
		f := r.withRecords(&flaky{})
		r.model.run = r.model.lasting(2*time.Hour, 0)
		for at := 10 * time.Minute; at < 2*time.Hour; at += 15 * time.Minute {
			time.AfterFunc(at, func() { f.set(true) })
			time.AfterFunc(at+3*time.Minute, func() { f.set(false) })
		}
		r.push()
		r.expect("delivery", r.handle(t.Context()), protocol.Done)
		if c := r.completion(); !c.Success {
			t.Errorf("completion = %+v", c)
		}
	})
}

func TestAStoreThatKnowsLivesLetsNothingLapse(t *testing.T) {
	t.Parallel()
	bubble(t, memory.Options{ProcessIdentity: true}, func(t *testing.T, r *rig) {
		r.conf.HeldByLife = true
		f := r.withRecords(&flaky{})
		r.model.run = r.model.lasting(2*time.Hour, 0)
		time.AfterFunc(time.Minute, func() { f.set(true) })
		time.AfterFunc(3*time.Hour, func() { f.set(false) })
		r.push()
		r.expect("delivery", r.handle(t.Context()), protocol.Done)
		if c := r.completion(); !c.Success || len(r.model.causes) != 0 {
			t.Errorf("completion = %+v, causes %v", c, r.model.causes)
		}
	})
}

func TestARecordThatWasTakenKillsTheCommand(t *testing.T) {
	t.Parallel()
	bubble(t, memory.Options{}, func(t *testing.T, r *rig) {
		r.model.run = r.model.lasting(time.Hour, time.Hour)
		time.AfterFunc(time.Minute, func() {
			rec, stored := r.record()
			rec.RunID, rec.Start = "another", 2
			body, err := msg.EncodeRecord(rec)
			r.must(err)
			_, err = r.outside.Records.Change(t.Context(), key, port.Record{Owner: "other", Body: body}, stored.Tag)
			r.must(err)
		})
		r.push()
		began := time.Now()
		r.expect("delivery", r.handle(t.Context()), protocol.Returned)
		if took := time.Since(began); took > 5*time.Minute || r.model.killed != 1 {
			t.Errorf("ended after %v, killed %d times; want a kill at the next beat", took, r.model.killed)
		}
		if rec, stored := r.record(); rec.RunID != "another" || stored.Owner != "other" {
			t.Errorf("record = %+v of %q, want that of the other start", rec, stored.Owner)
		}
		if all := r.completions(); len(all) != 0 {
			t.Errorf("completions = %+v, want none", all)
		}
	})
}

func TestALostMessageDoesNotStopTheCommand(t *testing.T) {
	t.Parallel()
	bubble(t, memory.Options{}, func(t *testing.T, r *rig) {
		r.model.run = r.model.lasting(30*time.Minute, 0)
		r.push()
		d := r.receive()
		time.Sleep(10 * time.Minute) // the worker stood still until the lock ended
		second := r.receive()
		var wg sync.WaitGroup
		wg.Go(func() {
			r.expect("first", protocol.New(r.conf).Handle(t.Context(), r.port.Queues.Queue(queueA), d, 1), protocol.Kept)
		})
		synctest.Wait()
		r.expect("second", protocol.New(r.conf).Handle(t.Context(), r.port.Queues.Queue(queueA), second, 2), protocol.Returned)
		wg.Wait()
		r.model.runs(t, 1)
		if c := r.completion(); !c.Success {
			t.Errorf("completion = %+v", c)
		}
		r.expect("the message comes again", r.handle(t.Context()), protocol.Done)
		r.completion()
		r.model.runs(t, 1)
		r.left(0)
	})
}

func TestAMachineThatCannotStartItIsACrash(t *testing.T) {
	t.Parallel()
	bubble(t, memory.Options{}, func(t *testing.T, r *rig) {
		r.conf.CrashLimit = 3
		r.model.run = func(context.Context, protocol.Start) protocol.Outcome {
			return protocol.Outcome{Kind: protocol.Unstartable, ExitCode: -1, Error: "no process left"}
		}
		r.push()
		for range 3 {
			r.expect("no start", r.handle(t.Context()), protocol.Returned)
		}
		r.expect("at the limit", r.handle(t.Context()), protocol.Done)
		r.model.runs(t, 3)
		if c := r.completion(); c.Reason != msg.Lost {
			t.Errorf("completion = %+v, want lost", c)
		}
	})
}

func TestWhatWasStoppedBeforeItBeganIsNoCrash(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]protocol.OutcomeKind{"start": protocol.Unstartable, "inputs": protocol.Unprepared} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, memory.Options{}, func(t *testing.T, r *rig) {
				ctx, stop := context.WithCancel(t.Context())
				r.model.run = func(ctx context.Context, _ protocol.Start) protocol.Outcome {
					stop()
					<-ctx.Done()
					return protocol.Outcome{Kind: kind, ExitCode: -1, Error: "no guardian"}
				}
				r.push()
				r.expect("delivery", r.handle(ctx), protocol.Returned)
				if rec, _ := r.record(); !rec.Free || rec.Crashes != 0 {
					t.Errorf("record = %+v, want it free without a crash", rec)
				}
			})
		})
	}
}

func TestInputsThatCannotBeReachedAreNoCrash(t *testing.T) {
	t.Parallel()
	bubble(t, memory.Options{}, func(t *testing.T, r *rig) {
		r.model.run = func(context.Context, protocol.Start) protocol.Outcome {
			return protocol.Unprepare(fault.New(fault.Unavailable, "no answer"))
		}
		r.push()
		began := time.Now()
		r.expect("away", r.handle(t.Context()), protocol.Returned)
		r.model.run = nil
		r.expect("back", r.handle(t.Context()), protocol.Done)
		if rec, _ := r.record(); rec.Crashes != 0 || time.Since(began) < 5*time.Second {
			t.Errorf("record = %+v after %v, want no crash and a rest", rec, time.Since(began))
		}
		if c := r.completion(); !c.Success || c.Start != 2 {
			t.Errorf("completion = %+v", c)
		}
	})
}

func TestProcessesThatCannotBeKilledKeepTheAttemptLocked(t *testing.T) {
	t.Parallel()
	bubble(t, memory.Options{ProcessIdentity: true}, func(t *testing.T, r *rig) {
		r.conf.HeldByLife = true
		ctx, stop := context.WithCancel(t.Context())
		r.model.run = func(ctx context.Context, s protocol.Start) protocol.Outcome {
			stop()
			select {
			case <-ctx.Done():
			case <-time.After(time.Minute):
			}
			return protocol.Outcome{Kind: protocol.Stopped, ExitCode: -1, Signal: "SIGKILL", Remains: true}
		}
		r.push()
		h, q := protocol.New(r.conf), r.port.Queues.Queue(queueA)
		r.expect("delivery", h.Handle(ctx, q, r.receive(), 1), protocol.Kept)
		if rec, _ := r.record(); rec.Free {
			t.Errorf("record = %+v, want it held", rec)
		}
		r.model.runs(t, 1)
		// The message comes again, to the very process whose claim stands.
		r.expect("again", h.Handle(t.Context(), q, r.receive(), 1), protocol.Returned)
		r.model.runs(t, 1)
	})
}

// standstill is an index after whose answer the whole worker stands still.
type standstill struct {
	port.Index
	d time.Duration
}

func (s standstill) Get(ctx context.Context, wf string) (port.StoredRow, error) {
	row, err := s.Index.Get(ctx, wf)
	time.Sleep(s.d)
	return row, err
}

// TestAClaimThatIsTooOldStartsNothing: between the claim and the start the worker
// stood still, and somebody else may have run the attempt to its end.
func TestAClaimThatIsTooOldStartsNothing(t *testing.T) {
	t.Parallel()
	bubble(t, memory.Options{}, func(t *testing.T, r *rig) {
		r.port.Index = standstill{r.port.Index, 9 * time.Minute}
		r.push()
		r.expect("delivery", r.handle(t.Context()), protocol.Returned)
		r.model.runs(t, 0)
		if rec, _ := r.record(); !rec.Free || rec.Crashes != 1 {
			t.Errorf("the record is %+v, want it free after one crash", rec)
		}
	})
}
