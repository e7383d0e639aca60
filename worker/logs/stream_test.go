package logs_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"jobq/core/fault"
	"jobq/worker/logs"
)

// store is an Appender that can be away.
type store struct {
	mu    sync.Mutex
	data  bytes.Buffer
	calls int
	away  bool
	// why is what it says while it is away; nil means that it gave no answer.
	why error
}

func (s *store) Append(_ context.Context, _ string, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if s.away {
		return cmp.Or(s.why, error(fault.New(fault.Unavailable, "no answer")))
	}
	s.data.Write(data)
	return nil
}

func (s *store) set(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = away
}

func (s *store) called() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

func (s *store) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.data.String()
}

func TestOutputIsStoredByteForByte(t *testing.T) {
	t.Parallel()
	var s store
	stream := logs.New(t.Context(), &s, "log", func(string, []byte) {})
	w := stream.Writer("stdout")
	want := make([]byte, 1<<20)
	rand.Read(want)
	for part := range slices.Chunk(want, 30_001) {
		if n, err := w.Write(part); n != len(part) || err != nil {
			t.Fatalf("Write = %d, %v", n, err)
		}
	}
	if err := stream.Close(); err != nil {
		t.Fatal(err)
	}
	if s.text() != string(want) {
		t.Errorf("stored %d bytes that differ from the %d written", len(s.text()), len(want))
	}
}

func TestASilentCommandCostsNoCall(t *testing.T) {
	t.Parallel()
	var s store
	stream := logs.New(t.Context(), &s, "log", nil)
	stream.Writer("stdout")
	if err := stream.Close(); err != nil || s.calls != 0 {
		t.Errorf("Close = %v after %d calls, want none", err, s.calls)
	}
}

func TestOutputIsSeenWithinAboutASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s store
		stream := logs.New(t.Context(), &s, "log", nil)
		w := stream.Writer("stdout")
		for _, text := range []string{"one\n", "two\n"} {
			fmt.Fprint(w, text)
			time.Sleep(1100 * time.Millisecond)
			synctest.Wait()
			if !strings.HasSuffix(s.text(), text) {
				t.Errorf("a second after %q the store holds %q", text, s.text())
			}
			time.Sleep(time.Minute)
		}
		if n := s.called(); n != 2 {
			t.Errorf("%d calls for two texts, want 2", n)
		}
		if err := stream.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestLinesComeWholeAndBySource(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 64<<10)
	for name, tc := range map[string]struct {
		writes []string
		want   []string
	}{
		"one write":            {[]string{"a\nb\n"}, []string{"a", "b"}},
		"a line in parts":      {[]string{"a", "b", "c\nd"}, []string{"abc", "d"}},
		"empty lines":          {[]string{"\n\na\n"}, []string{"", "", "a"}},
		"no end at the end":    {[]string{"a\nb"}, []string{"a", "b"}},
		"an end of its own":    {[]string{"a", "\n"}, []string{"a"}},
		"a line without bound": {[]string{long, "yz\n"}, []string{long, "yz"}},
		"carriage returns":     {[]string{"a\r\n"}, []string{"a\r"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			stream := logs.New(t.Context(), &store{}, "log", func(source string, line []byte) {
				if source != "stderr" {
					t.Errorf("source %q, want stderr", source)
				}
				got = append(got, string(line))
			})
			w := stream.Writer("stderr")
			for _, text := range tc.writes {
				fmt.Fprint(w, text)
			}
			if err := stream.Close(); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("lines of %.40q = %.40q, want %.40q", tc.writes, got, tc.want)
			}
		})
	}
}

func TestAStoreThatIsAwayStopsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := store{away: true}
		stream := logs.New(t.Context(), &s, "log", nil)
		w := stream.Writer("stdout")
		line := strings.Repeat("y", 1023) + "\n"
		for range 5 << 10 { // 5 MiB, 1 MiB above the bound
			fmt.Fprint(w, line)
		}
		if n := s.called(); n > 2 {
			t.Errorf("%d calls while the store is away, want one for each second", n)
		}
		time.Sleep(3 * time.Second)
		s.set(false)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		head, rest, _ := strings.Cut(s.text(), "\n")
		if want := fmt.Sprintf("[jobq: %d bytes of output were lost here]", 1<<20); head != want || len(rest) != 4<<20 {
			t.Errorf("stored %q and %d bytes, want %q and %d", head, len(rest), want, 4<<20)
		}
		s.set(true)
		fmt.Fprint(w, "end")
		if err := stream.Close(); err == nil {
			t.Error("Close = nil, want the error of the store")
		}
	})
}

func TestTwoSourcesAtOnce(t *testing.T) {
	t.Parallel()
	var s store
	stream := logs.New(t.Context(), &s, "log", nil)
	var wg sync.WaitGroup
	for _, source := range []string{"stdout", "stderr"} {
		w := stream.Writer(source)
		wg.Go(func() {
			for range 10_000 {
				fmt.Fprintf(w, "a line of %s\n", source)
			}
		})
	}
	wg.Wait()
	if err := stream.Close(); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(s.text(), "a line of std"); got != 20_000 || len(s.text()) != 20_000*17 {
		t.Errorf("stored %d lines in %d bytes, want 20000 whole ones", got, len(s.text()))
	}
}

// TestAStoreThatHangsDoesNotHoldTheCommand: only the first chunk is waited for.
func TestAStoreThatHangsDoesNotHoldTheCommand(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stream := logs.New(t.Context(), hanging{}, "log", nil)
		w := stream.Writer("stdout")
		began := time.Now()
		for range 12 << 10 { // 12 MiB
			fmt.Fprint(w, strings.Repeat("y", 1024))
			time.Sleep(time.Millisecond)
		}
		if took := time.Since(began); took > 12*1024*time.Millisecond+11*time.Second {
			t.Errorf("a command of 12 s took %v", took)
		}
		if err := stream.Close(); err == nil {
			t.Error("Close = nil, want the error of the store")
		}
	})
}

// hanging is an Appender that never answers.
type hanging struct{}

func (hanging) Append(ctx context.Context, _ string, _ []byte) error {
	<-ctx.Done()
	return ctx.Err()
}

// The report of a command waits for the end of its log: a store that hangs is not
// asked again and again for it.
func TestTheEndOfALogIsNotWaitedForWhereTheStoreHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stream := logs.New(t.Context(), hanging{}, "log", nil)
		fmt.Fprintln(stream.Writer("stdout"), "some output")
		began := time.Now()
		if err := stream.Close(); err == nil {
			t.Error("Close = nil, want the error of the store")
		}
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("Close took %v", took)
		}
	})
}

// A log that can never be stored does not hold the report.
func TestTheEndOfALogThatIsRefusedIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	for _, why := range []error{fault.New(fault.Denied, "no right"), fault.New(fault.Invalid, "no such name"), errors.New("odd")} {
		synctest.Test(t, func(t *testing.T) {
			s := store{away: true, why: why}
			stream := logs.New(t.Context(), &s, "log", nil)
			fmt.Fprintln(stream.Writer("stdout"), "some output")
			began := time.Now()
			if err := stream.Close(); !errors.Is(err, why) {
				t.Errorf("Close = %v, want %v", err, why)
			}
			if took, calls := time.Since(began), s.called(); took > 0 || calls != 1 {
				t.Errorf("Close took %v and %d calls for %v, want one", took, calls, why)
			}
		})
	}
}

// What the store is asked for when the command ends is part of what its end may take.
func TestTheEndOfALogWaitsForACallThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stream := logs.New(t.Context(), hanging{}, "log", nil)
		fmt.Fprintln(stream.Writer("stdout"), "some output")
		time.Sleep(2 * time.Second)
		began := time.Now()
		if err := stream.Close(); err == nil {
			t.Error("Close = nil, want the error of the store")
		}
		if took := time.Since(began); took > logs.CloseBound {
			t.Errorf("Close took %v", took)
		}
	})
}

func TestTheEndOfALogOutlastsAShortOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := store{away: true}
		stream := logs.New(t.Context(), &s, "log", nil)
		fmt.Fprintln(stream.Writer("stdout"), "the last words")
		back := time.AfterFunc(9*time.Second, func() { s.set(false) })
		defer back.Stop()
		began := time.Now()
		if err := stream.Close(); err != nil || s.text() != "the last words\n" {
			t.Errorf("Close = %v, stored %q", err, s.text())
		}
		if took, calls := time.Since(began), s.called(); took > 10*time.Second || calls > 20 {
			t.Errorf("Close took %v and %d calls", took, calls)
		}
	})
}

// TestTheEndOfALogOutlastsALongOutage: it comes with the next log that is stored, the
// words and the note of what was lost, or at the end.
func TestTheEndOfALogOutlastsALongOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var late logs.Late
		first, second := store{away: true}, store{away: true}
		for _, s := range []*store{&first, &second} {
			stream := logs.New(t.Context(), s, "log", nil)
			w := stream.Writer("stdout")
			for range 9 { // 9 MiB, of which 4 are kept
				fmt.Fprint(w, strings.Repeat("y", 1<<20))
			}
			fmt.Fprint(w, "the last words")
			began := time.Now()
			if err := late.Close(stream); err == nil {
				t.Error("Close = nil, want the error of the store")
			}
			if took := time.Since(began); took > 15*time.Second {
				t.Errorf("Close took %v", took)
			}
		}
		silent := logs.New(t.Context(), &store{}, "log", nil)
		calls := first.called()
		if err := late.Close(silent); err != nil || first.called() != calls {
			t.Errorf("Close of a log without output = %v, with %d more calls for others", err, first.called()-calls)
		}
		first.set(false)
		other := logs.New(t.Context(), &store{}, "log", nil)
		fmt.Fprintln(other.Writer("stdout"), "something")
		if err := late.Close(other); err != nil || first.called() != calls {
			t.Fatalf("Close = %v, with %d calls for others while the command is waited for", err, first.called()-calls)
		}
		late.CatchUp()
		second.set(false)
		if late.CatchUp(); second.text() != "" || first.text() == "" {
			t.Errorf("stored %.20q and %.20q, want what the store takes, and no more until it takes another log", first.text(), second.text())
		}
		if left := late.Store(); left != 0 {
			t.Errorf("Store = %d left, want none", left)
		}
		for _, s := range []*store{&first, &second} {
			if got := s.text(); !strings.HasPrefix(got, "[jobq: ") || !strings.HasSuffix(got, "the last words") || strings.Count(got, "lost here") != 1 {
				t.Errorf("stored %.60q ... %q, want what was lost and the end, once", got, got[max(0, len(got)-20):])
			}
		}
	})
}

func TestLogsThatNobodyTakesCostLittle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var late logs.Late
		away := store{away: true}
		for range 100 {
			stream := logs.New(t.Context(), &away, "log", nil)
			fmt.Fprintln(stream.Writer("stdout"), "some output")
			if err := late.Close(stream); err == nil {
				t.Fatal("Close = nil, want the error of the store")
			}
		}
		calls := away.called()
		if left := late.Store(); left != 100 || away.called() != calls+1 {
			t.Errorf("Store = %d left after %d calls, want all 100 after one", left, away.called()-calls)
		}
		away.set(false)
		if left := late.Store(); left != 84 || strings.Count(away.text(), "some output") != 16 {
			t.Errorf("Store = %d left, stored %q; want 16 stored and 84 told to be lost", left, away.text())
		}
	})
}
