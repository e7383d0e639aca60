package protocol_test

import (
	"context"
	"testing"
	"time"

	"jobq/core/msg"
	"jobq/core/port"
	"jobq/store/memory"
	"jobq/worker/protocol"
)

func TestATaskRunsOnceAndIsReported(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]memory.Options{
		"in one call":  {},
		"step by step": {NoFinisher: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, o, func(t *testing.T, r *rig) {
				r.push()
				r.expect("first delivery", r.handle(t.Context()), protocol.Done)
				c := r.completion()
				if !c.Success || c.Attempt != 1 || c.Start != 1 || c.ExitCode == nil || *c.ExitCode != 0 || c.Log != "logs/w/t/1.1" || c.Worker != "host" {
					t.Errorf("completion = %+v", c)
				}
				if rec, stored := r.record(); rec.Ended == nil || rec.Ended.Completion == nil || stored.Owner != "" {
					t.Errorf("record = %+v of %q, want it ended and unowned", rec, stored.Owner)
				}
				r.left(0)

				r.push() // a copy
				r.expect("a copy", r.handle(t.Context()), protocol.Done)
				if again := r.completion(); again.Task != "t" {
					t.Errorf("the copy sent %+v, want the completion again", again)
				}
				r.left(0)
				r.model.runs(t, 1)
			})
		})
	}
}

func TestAnAttemptThatTheCoordinatorEndedIsNotRun(t *testing.T) {
	t.Parallel()
	bubble(t, memory.Options{}, func(t *testing.T, r *rig) {
		r.putRecord("", msg.AttemptRecord{Ended: &msg.Ended{ByCoordinator: true}})
		r.push()
		r.expect("ended", r.handle(t.Context()), protocol.Done)
		r.left(0)
		r.model.runs(t, 0)
		if all := r.completions(); len(all) != 0 {
			t.Errorf("the inbox holds %+v, want nothing", all)
		}
	})
}

func TestAFreeRecordIsGoneOnWithAtOnce(t *testing.T) {
	t.Parallel()
	bubble(t, memory.Options{}, func(t *testing.T, r *rig) {
		r.putRecord("", msg.AttemptRecord{Start: 3, TTL: time.Hour, Free: true, Crashes: 2, RunID: "old"})
		r.push()
		r.expect("free", r.handle(t.Context()), protocol.Done)
		if c := r.completion(); c.Start != 4 || !c.Success {
			t.Errorf("completion = %+v, want success of start 4", c)
		}
		if rec, _ := r.record(); rec.Crashes != 2 {
			t.Errorf("crashes = %d, want 2: a give-back is none", rec.Crashes)
		}
		if s := r.model.starts[0]; s.Survivor != "" {
			t.Errorf("start has survivor %q, want none after a give-back", s.Survivor)
		}
	})
}

func TestAHeldRecordIsLeftAloneUntilItIsStale(t *testing.T) {
	t.Parallel()
	bubble(t, memory.Options{}, func(t *testing.T, r *rig) {
		r.putRecord("somebody", msg.AttemptRecord{Start: 1, TTL: 5 * time.Minute, RunID: "old"})
		r.push()
		began := time.Now()
		r.expect("held", r.handle(t.Context()), protocol.Returned)
		r.model.runs(t, 0)
		r.expect("stale", r.handle(t.Context()), protocol.Done)
		if waited := time.Since(began); waited < 5*time.Minute || waited > 5*time.Minute+5*time.Second {
			t.Errorf("taken over after %v, want just after 5m", waited)
		}
		if c := r.completion(); c.Start != 2 {
			t.Errorf("completion of start %d, want 2", c.Start)
		}
		if rec, _ := r.record(); rec.Crashes != 1 {
			t.Errorf("crashes = %d, want 1", rec.Crashes)
		}
		if s := r.model.starts[0]; s.Survivor != "old" {
			t.Errorf("survivor = %q, want the lost start", s.Survivor)
		}
	})
}

func TestADeadOwnerIsTakenOverWithoutWaiting(t *testing.T) {
	t.Parallel()
	bubble(t, memory.Options{ProcessIdentity: true}, func(t *testing.T, r *rig) {
		other := r.store.Process("other")
		r.putRecord(r.join(other.Port()), msg.AttemptRecord{Start: 1, TTL: time.Hour, RunID: "old"})
		r.push()
		r.expect("owner lives", r.handle(t.Context()), protocol.Returned)
		other.Kill()
		began := time.Now()
		r.expect("owner is dead", r.handle(t.Context()), protocol.Done)
		if waited := time.Since(began); waited > 10*time.Second {
			t.Errorf("taken over after %v, want a few seconds", waited)
		}
		r.model.runs(t, 1)
	})
}

func TestAnAttemptIsLostAtTheCrashLimit(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		before msg.AttemptRecord
		runs   int
	}{
		"one crash short":       {msg.AttemptRecord{Start: 2, TTL: time.Second, Crashes: 1}, 1},
		"the last crash":        {msg.AttemptRecord{Start: 3, TTL: time.Second, Crashes: 2}, 0},
		"counted by its holder": {msg.AttemptRecord{Start: 3, TTL: time.Hour, Crashes: 3, Free: true}, 0},
		"many planned stops":    {msg.AttemptRecord{Start: 300, TTL: time.Hour, Crashes: 2, Free: true}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, memory.Options{}, func(t *testing.T, r *rig) {
				r.conf.CrashLimit = 3
				r.putRecord("dead", tc.before)
				r.wait(2 * time.Second)
				r.push()
				r.expect("delivery", r.handle(t.Context()), protocol.Done)
				r.model.runs(t, tc.runs)
				c := r.completion()
				if lost := c.Reason == msg.Lost && !c.Success; lost != (tc.runs == 0) {
					t.Errorf("completion = %+v", c)
				}
				if rec, _ := r.record(); rec.Ended == nil {
					t.Errorf("record = %+v, want it ended", rec)
				}
				r.left(0)
			})
		})
	}
}

func TestARecordStoreThatIsAwayGivesTheMessageBack(t *testing.T) {
	t.Parallel()
	bubble(t, memory.Options{}, func(t *testing.T, r *rig) {
		f := r.withRecords(&flaky{down: true})
		r.push()
		r.expect("away", r.handle(t.Context()), protocol.Returned)
		r.model.runs(t, 0)
		f.set(false)
		r.expect("back", r.handle(t.Context()), protocol.Done)
		r.model.runs(t, 1)
	})
}

func TestTheWorkflowsRowDecidesBeforeTheStart(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		row    port.Row
		cancel port.CancelRequest
		edit   func(*msg.Task)
		runs   int
		reason msg.Reason
		record bool
	}{
		"running":                       {row: port.Row{Status: "running"}, runs: 1, record: true},
		"cancelled after the send":      {cancel: port.CancelRequest{Requested: true, Epoch: 8}, reason: msg.Cancelled, record: true},
		"cancelled before, retried":     {cancel: port.CancelRequest{Requested: true, Epoch: 7}, runs: 1, record: true},
		"a withdrawn request":           {cancel: port.CancelRequest{Epoch: 9}, runs: 1, record: true},
		"a script's flag":               {cancel: port.CancelRequest{Requested: true}, runs: 1, record: true},
		"a flag of ai4s-jobq":           {cancel: port.CancelRequest{Requested: true}, edit: func(t *msg.Task) { t.Prefix, t.Epoch = "", 0 }, reason: msg.Cancelled, record: true},
		"purged":                        {row: port.Row{Status: "purged", Epoch: 8}},
		"of a life after the purge":     {row: port.Row{Status: "purged", Epoch: 6}, runs: 1, record: true},
		"purged and submitted again":    {row: port.Row{Status: "running", BornEpoch: 8}},
		"submitted again before it was": {row: port.Row{Status: "running", BornEpoch: 7}, runs: 1, record: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, memory.Options{}, func(t *testing.T, r *rig) {
				r.row(tc.row, tc.cancel)
				r.push(func(task *msg.Task) { task.Epoch = 7 }, func(task *msg.Task) {
					if tc.edit != nil {
						tc.edit(task)
					}
				})
				r.expect("delivery", r.handle(t.Context()), protocol.Done)
				r.model.runs(t, tc.runs)
				r.left(0)
				all := r.completions()
				if !tc.record {
					if _, err := r.port.Records.Read(t.Context(), key); err == nil || len(all) != 0 {
						t.Errorf("record read: %v, completions %+v; want neither", err, all)
					}
					return
				}
				if len(all) != 1 || all[0].Reason != tc.reason || all[0].Success != (tc.reason == "") {
					t.Errorf("completions = %+v, want one with reason %q", all, tc.reason)
				}
			})
		})
	}
}

func TestMessagesThatNobodyCanReadLeaveTheQueue(t *testing.T) {
	t.Parallel()
	bubble(t, memory.Options{}, func(t *testing.T, r *rig) {
		r.pushBody([]byte("no JSON"))
		r.expect("delivery", r.handle(t.Context()), protocol.Done)
		r.left(0)
		ds, err := r.port.Queues.Queue(queueA).PoisonQueue().Peek(t.Context(), 1)
		r.must(err)
		if len(ds) != 1 || ds[0].Reason == "" {
			t.Errorf("poison queue = %+v, want the message and a reason", ds)
		}
	})
}

func TestMessagesOfAnotherInstallationGoBack(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*rig, *msg.Task){
		"another prefix":    func(_ *rig, m *msg.Task) { m.Prefix = "local/other" },
		"no prefix at all":  func(r *rig, m *msg.Task) { m.Prefix, r.conf.Prefix = "", "" },
		"no inbox anywhere": func(r *rig, _ *msg.Task) { r.conf.Inbox = "" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, memory.Options{}, func(t *testing.T, r *rig) {
				r.push(func(m *msg.Task) { edit(r, m) })
				r.expect("delivery", r.handle(t.Context()), protocol.Returned)
				r.left(1)
				r.model.runs(t, 0)
			})
		})
	}
	bubble(t, memory.Options{}, func(t *testing.T, r *rig) {
		r.push(func(m *msg.Task) { m.Prefix = "LOCAL/Proj" })
		r.expect("same prefix in other case", r.handle(t.Context()), protocol.Done)
	})
}

// TestAClaimThatWasLeftIsTakenOverByItsOwnProcess: in a store that judges by the
// life of the process such a record would never be stale.
func TestAClaimThatWasLeftIsTakenOverByItsOwnProcess(t *testing.T) {
	t.Parallel()
	bubble(t, memory.Options{ProcessIdentity: true}, func(t *testing.T, r *rig) {
		r.conf.HeldByLife = true
		f := r.withRecords(&flaky{lostCreates: 1})
		f.deaf = true // the create worked, but nothing says so
		h := protocol.New(r.conf)
		r.push()
		d := r.receive()
		r.expect("without an answer", h.Handle(t.Context(), r.port.Queues.Queue(queueA), d, 1), protocol.Returned)
		f.hear()
		d = r.receive()
		r.expect("again", h.Handle(t.Context(), r.port.Queues.Queue(queueA), d, 1), protocol.Done)
		if c := r.completion(); !c.Success || c.Start != 2 {
			t.Errorf("completion = %+v, want success of start 2", c)
		}
	})
}

// TestAnAttemptThatOthersEndedIsNotOverwritten: whoever gives a lost attempt up
// leaves its run id in the record.
func TestAnAttemptThatOthersEndedIsNotOverwritten(t *testing.T) {
	t.Parallel()
	for name, ends := range map[string]time.Duration{"while it runs": time.Hour, "before the report": time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, memory.Options{NoFinisher: true}, func(t *testing.T, r *rig) {
				r.model.run = func(ctx context.Context, s protocol.Start) protocol.Outcome {
					rec, stored := r.record()
					rec.Ended = &msg.Ended{Completion: &msg.Completion{Workflow: "w", Task: "t", Attempt: 1, Start: 1, Reason: msg.Lost}}
					body, err := msg.EncodeRecord(rec)
					r.must(err)
					_, err = r.outside.Records.Change(t.Context(), key, port.Record{Body: body}, stored.Tag)
					r.must(err)
					return r.model.lasting(ends, 0)(ctx, s)
				}
				r.push()
				r.expect("delivery", r.handle(t.Context()), protocol.Returned)
				if rec, _ := r.record(); rec.Ended == nil || rec.Ended.Completion.Reason != msg.Lost {
					t.Errorf("record = %+v, want it ended as lost", rec)
				}
				r.expect("again", r.handle(t.Context()), protocol.Done)
				if c := r.completion(); c.Reason != msg.Lost {
					t.Errorf("completion = %+v, want lost", c)
				}
				r.model.runs(t, 1)
			})
		})
	}
}

// TestTheAgeOfAClaimWithoutAnAnswerIsNotGuessed: the guardian must not believe a
// beat to be newer than the record.
func TestTheAgeOfAClaimWithoutAnAnswerIsNotGuessed(t *testing.T) {
	t.Parallel()
	bubble(t, memory.Options{}, func(t *testing.T, r *rig) {
		f := r.withRecords(&flaky{lostCreates: 1})
		f.deaf = true
		time.AfterFunc(5*time.Second, func() { f.hear() })
		var claimed time.Duration
		r.model.run = func(_ context.Context, s protocol.Start) protocol.Outcome {
			_, stored := r.record()
			claimed = time.Duration(r.model.Moment()-s.Claimed) - stored.Age
			return exit(0)
		}
		r.push()
		r.expect("delivery", r.handle(t.Context()), protocol.Done)
		if claimed < 0 {
			t.Errorf("the start was told a beat %v newer than its record", -claimed)
		}
	})
}
