package storetest

import (
	"fmt"
	"sync"
	"testing"

	"jobq/core/fault"
	"jobq/core/port"
)

// racers is how many goroutines meet in one race.
const racers = 16

// race calls f for every racer at once and returns the errors by racer. Every
// second racer works through another process.
func race(e env, f func(s *port.Store, i int) error) []error {
	other := e.Open()
	start := make(chan struct{})
	errs := make([]error, racers)
	var wg sync.WaitGroup
	for i := range racers {
		s := e.store
		if i%2 == 1 {
			s = other
		}
		wg.Go(func() {
			<-start
			errs[i] = f(s, i)
		})
	}
	close(start)
	wg.Wait()
	return errs
}

// oneWinner checks that one racer succeeded and all others failed with code.
func oneWinner(t *testing.T, errs []error, code fault.Code, call string) int {
	t.Helper()
	winner := -1
	for i, err := range errs {
		switch {
		case err != nil:
			fails(t, err, code, call+" by a loser")
		case winner >= 0:
			t.Fatalf("%s: racers %d and %d both won", call, winner, i)
		default:
			winner = i
		}
	}
	if winner < 0 {
		t.Fatalf("%s: nobody won", call)
	}
	return winner
}

var raceCases = []testCase{
	{"of savers with one tag exactly one wins", func(t *testing.T, e env) {
		ctx := t.Context()
		tag, err := e.store.States.Create(ctx, "w", nil)
		ok(t, err, "Create")
		for range 4 {
			tags := make([]port.Tag, racers)
			errs := race(e, func(s *port.Store, i int) (err error) {
				tags[i], err = s.States.Save(ctx, "w", fmt.Append(nil, i), tag)
				return err
			})
			winner := oneWinner(t, errs, fault.Conflict, "Save")
			doc, err := e.store.States.Load(ctx, "w", "")
			ok(t, err, "Load")
			same(t, doc, port.Document{Body: fmt.Append(nil, winner), Tag: tags[winner]}, "Load after the race")
			tag = doc.Tag
		}
	}},
	{"of creators exactly one wins", func(t *testing.T, e env) {
		ctx := t.Context()
		oneWinner(t, race(e, func(s *port.Store, i int) error {
			_, err := s.States.Create(ctx, "w", nil)
			return err
		}), fault.Exists, "States.Create")
		oneWinner(t, race(e, func(s *port.Store, i int) error {
			_, err := s.Records.Create(ctx, key("a"), port.Record{})
			return err
		}), fault.Exists, "Records.Create")
		oneWinner(t, race(e, func(s *port.Store, i int) error {
			return s.Outputs.Put(ctx, "small", []byte{byte(i)})
		}), fault.Exists, "Outputs.Put")
		oneWinner(t, race(e, func(s *port.Store, i int) error {
			return s.Outputs.Put(ctx, "large", make([]byte, 1<<20))
		}), fault.Exists, "Outputs.Put of a large value")
		oneWinner(t, race(e, func(s *port.Store, i int) error {
			_, err := s.Index.Project(ctx, row("w", 0), "")
			return err
		}), fault.Exists, "Index.Project")
		oneWinner(t, race(e, func(s *port.Store, i int) error {
			return s.Leases.Acquire(ctx, "lock", fmt.Sprint(i), longLock)
		}), fault.Conflict, "Leases.Acquire")
	}},
	{"a counter by compare-and-swap loses no step", func(t *testing.T, e env) {
		ctx := t.Context()
		_, err := e.store.Records.Create(ctx, key("a"), port.Record{Body: []byte{0}})
		ok(t, err, "Create")
		errs := race(e, func(s *port.Store, _ int) error {
			for done := 0; done < 5; {
				got, err := s.Records.Read(ctx, key("a"))
				if err != nil {
					return err
				}
				got.Body[0]++
				_, err = s.Records.Change(ctx, key("a"), got.Record, got.Tag)
				if err == nil {
					done++
				} else if !fault.Is(err, fault.Conflict) {
					return err
				}
			}
			return nil
		})
		for _, err := range errs {
			ok(t, err, "Read and Change")
		}
		got, err := e.store.Records.Read(ctx, key("a"))
		ok(t, err, "Read")
		same(t, int(got.Body[0]), 5*racers, "the counter")
	}},
	{"receivers never get one message twice", func(t *testing.T, e env) {
		const messages = 100
		q := e.open(t, "cpu")
		batch := make([]port.Message, messages)
		for i := range batch {
			batch[i] = port.Message{ID: fmt.Sprint(i), Body: fmt.Append(nil, i)}
		}
		send(t, q, batch...)
		var mu sync.Mutex
		got := map[string]int{}
		errs := race(e, func(s *port.Store, _ int) error {
			for {
				ds, err := s.Queues.Queue("cpu").Receive(t.Context(), port.ReceiveOptions{Max: 3, Lock: longLock})
				if err != nil || len(ds) == 0 {
					return err
				}
				mu.Lock()
				for _, d := range ds {
					got[d.ID]++
				}
				mu.Unlock()
			}
		})
		for _, err := range errs {
			ok(t, err, "Receive")
		}
		for id, n := range got {
			if n != 1 {
				t.Errorf("message %s was delivered %d times within its lock", id, n)
			}
		}
		same(t, len(got), messages, "messages delivered")
	}},
	{"appends do not interleave", func(t *testing.T, e env) {
		const length = 20_000
		errs := race(e, func(s *port.Store, i int) error {
			line := make([]byte, length)
			for at := range line {
				line[at] = byte('a' + i)
			}
			return s.TaskLogs.Append(t.Context(), "w/a", line)
		})
		for _, err := range errs {
			ok(t, err, "Append")
		}
		got, err := e.store.TaskLogs.Read(t.Context(), "w/a", 0, racers*length+1)
		ok(t, err, "Read")
		same(t, len(got), racers*length, "bytes of Read")
		for at := range len(got) / length {
			for _, b := range got[at*length : (at+1)*length] {
				if b != got[at*length] {
					t.Fatalf("append %d is mixed of %q and %q", at, got[at*length], b)
				}
			}
		}
	}},
}
