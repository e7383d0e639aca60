package cli

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestSignalsThatComeTogetherAreOneWishToStop(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		// after are the times between the first signal and the others.
		after         []time.Duration
		stops, insist bool
	}{
		"none":                             {nil, false, false},
		"one":                              {[]time.Duration{0}, true, false},
		"two at once":                      {[]time.Duration{0, 0}, true, false},
		"three within the time":            {[]time.Duration{0, time.Millisecond, oneStop - 1}, true, false},
		"one that is not together":         {[]time.Duration{0, oneStop}, true, true},
		"two at once and one much later":   {[]time.Duration{0, 0, time.Hour}, true, true},
		"more than are of any use":         {[]time.Duration{0, oneStop, oneStop + 1}, true, true},
		"a series that begins within it":   {[]time.Duration{0, oneStop / 2, oneStop + oneStop/2}, true, true},
		"the first one long after a start": {[]time.Duration{time.Hour, time.Hour + oneStop/2}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				signals := make(chan os.Signal, 1)
				givenBack := false
				ctx, again, release := heed(t.Context(), signals, func() { givenBack = true })
				begun := time.Now()
				for _, at := range tc.after {
					time.Sleep(time.Until(begun.Add(at)))
					signals <- syscall.SIGHUP
					synctest.Wait()
				}
				if stops := ctx.Err() != nil; stops != tc.stops {
					t.Errorf("the context has ended: %t, want %t", stops, tc.stops)
				}
				if insists := isClosed(again); insists != tc.insist || givenBack != tc.insist {
					t.Errorf("a clean stop is not waited for: %t, signals are given back: %t, want %t", insists, givenBack, tc.insist)
				}
				if cause := context.Cause(ctx); tc.stops && (cause.Error() != "hangup signal received" || !errors.Is(cause, context.Canceled)) {
					t.Errorf("the cause is %q", cause)
				}
				release()
				if !givenBack || ctx.Err() == nil {
					t.Error("release leaves the signals or the context")
				}
			})
		})
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
