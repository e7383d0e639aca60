package faults_test

import (
	"testing"
	"testing/synctest"
	"time"

	"jobq/core/fault"
	"jobq/core/port"
	"jobq/core/sched"
	"jobq/store/memory"
	"jobq/store/storetest"
	"jobq/store/wrap/faults"
)

// A wrapper that injects nothing must not be noticed.
func TestAWrapperWithoutFaultsKeepsTheContract(t *testing.T) {
	t.Parallel()
	storetest.Run(t, storetest.Harness{Virtual: true, Tick: time.Second, New: func(testing.TB) storetest.Data {
		s := memory.New(memory.Options{NoFinisher: true})
		return storetest.Data{Open: func() *port.Store {
			return faults.New(s.Process("p").Port(), sched.Real{}, nil).Port()
		}}
	}})
}

func TestFates(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		decide  faults.Decide
		first   fault.Code // of the write; Internal for none
		stored  bool
		stopped bool
	}{
		"stop before":     {faults.StopBefore(1), fault.Unavailable, false, true},
		"stop after":      {faults.StopAfter(1), fault.Unavailable, true, true},
		"lose the answer": {faults.LoseAnswer(1), fault.Unavailable, true, false},
		"fail once":       {faults.Fail("Outputs.Put", fault.Throttled, 1), fault.Throttled, false, false},
		"first that acts": {faults.First(faults.LoseAnswer(7), faults.Fail("Outputs.Put", fault.Denied, 1)), fault.Denied, false, false},
		"other operation": {faults.Fail("Outputs.Get", fault.Denied, 0), fault.Internal, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := memory.New(memory.Options{}).Port()
			p := faults.New(store, sched.Real{}, tc.decide)
			err := p.Port().Outputs.Put(t.Context(), "a", []byte("1"))
			if got := fault.CodeOf(err); got != tc.first || (err == nil) != (tc.first == fault.Internal) {
				t.Errorf("Put = %v, want %v", err, tc.first)
			}
			if _, err := store.Outputs.Get(t.Context(), "a"); (err == nil) != tc.stored {
				t.Errorf("the value is stored: %v, want %v", err == nil, tc.stored)
			}
			if p.Stopped() != tc.stopped {
				t.Errorf("Stopped() = %v, want %v", p.Stopped(), tc.stopped)
			}
			if _, err := p.Port().Outputs.Get(t.Context(), "b"); fault.Is(err, fault.Unavailable) != tc.stopped {
				t.Errorf("the next call = %v, want a stopped process: %v", err, tc.stopped)
			}
		})
	}
}

func TestDelaysPassOnTheScheduler(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := faults.New(memory.New(memory.Options{}).Port(), sched.Real{}, func(faults.Call) faults.Fate {
			return faults.Fate{Delay: time.Minute}
		})
		start := time.Now()
		if err := p.Port().Outputs.Put(t.Context(), "a", nil); err != nil {
			t.Fatal(err)
		}
		if got := time.Since(start); got != time.Minute {
			t.Errorf("the call took %v, want a minute", got)
		}
	})
}
