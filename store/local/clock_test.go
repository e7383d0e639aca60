package local

import (
	"context"
	"testing"
	"time"

	"jobq/core/port"
)

// setBack leaves the messages of s as they are after the clock was set back by an hour.
func setBack(t *testing.T, s *Store) {
	t.Helper()
	err := s.write.do(t.Context(), false, func(tx *tx) error {
		_, err := tx.exec("UPDATE message SET visible_at = visible_at + ?, sent_at = sent_at + ?", int64(time.Hour), int64(time.Hour))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// receiveOne waits for one message and returns it with how long that took.
func receiveOne(t *testing.T, q port.Queue, lock time.Duration) (port.Delivery, time.Duration) {
	t.Helper()
	began := time.Now()
	ds, err := q.Receive(t.Context(), port.ReceiveOptions{Max: 1, Lock: lock, Wait: time.Minute})
	if err != nil || len(ds) != 1 {
		t.Fatalf("Receive = %d messages, %v, want one", len(ds), err)
	}
	return ds[0], time.Since(began)
}

func TestAClockThatIsSetBackHidesNothing(t *testing.T) {
	t.Parallel()
	const pause = 300 * time.Millisecond
	send := func(ctx context.Context, q port.Queue, delay time.Duration) error {
		if errs := q.Send(ctx, []port.Message{{ID: "m", Body: []byte("m"), Delay: delay}}); errs != nil {
			return errs[0]
		}
		return nil
	}
	for name, tc := range map[string]struct {
		// hide leaves one message, for at least as long as atLeast.
		hide    func(t *testing.T, ctx context.Context, q port.Queue) error
		atLeast time.Duration
	}{
		"sent":              {func(t *testing.T, ctx context.Context, q port.Queue) error { return send(ctx, q, 0) }, 0},
		"sent with a delay": {func(t *testing.T, ctx context.Context, q port.Queue) error { return send(ctx, q, pause) }, pause},
		"released": {func(t *testing.T, ctx context.Context, q port.Queue) error {
			if err := send(ctx, q, 0); err != nil {
				return err
			}
			d, _ := receiveOne(t, q, time.Hour)
			return q.Release(ctx, d, 0)
		}, 0},
		"released with a delay": {func(t *testing.T, ctx context.Context, q port.Queue) error {
			if err := send(ctx, q, 0); err != nil {
				return err
			}
			d, _ := receiveOne(t, q, time.Hour)
			return q.Release(ctx, d, pause)
		}, pause},
		"locked": {func(t *testing.T, ctx context.Context, q port.Queue) error {
			if err := send(ctx, q, 0); err != nil {
				return err
			}
			receiveOne(t, q, pause)
			return nil
		}, pause},
		"locked again": {func(t *testing.T, ctx context.Context, q port.Queue) error {
			if err := send(ctx, q, 0); err != nil {
				return err
			}
			d, _ := receiveOne(t, q, time.Hour)
			return q.Extend(ctx, &d, pause)
		}, pause},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openIn(t, t.TempDir())
			if err := s.Port().Queues.Ensure(t.Context(), "cpu"); err != nil {
				t.Fatal(err)
			}
			q := s.Port().Queues.Queue("cpu")
			if err := tc.hide(t, t.Context(), q); err != nil {
				t.Fatal(err)
			}
			setBack(t, s)
			if _, took := receiveOne(t, q, time.Minute); took < tc.atLeast {
				t.Errorf("received after %v, want it hidden for %v as was asked for", took, pause)
			}
		})
	}
}

// TestALockOutlastsAClockThatIsSetBack: it is that of a living process, which works on
// the message, and it can still be extended and given up.
func TestALockOutlastsAClockThatIsSetBack(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := openIn(t, t.TempDir())
	if err := s.Port().Queues.Ensure(ctx, "cpu"); err != nil {
		t.Fatal(err)
	}
	q := s.Port().Queues.Queue("cpu")
	if errs := q.Send(ctx, []port.Message{{ID: "held"}}); errs != nil {
		t.Fatal(errs[0])
	}
	held, _ := receiveOne(t, q, time.Hour)
	setBack(t, s)
	ds, err := q.Receive(ctx, port.ReceiveOptions{Max: 1, Lock: time.Minute, Wait: 3 * probeHidden})
	if err != nil || len(ds) != 0 {
		t.Fatalf("Receive = %v, %v, want nothing", ds, err)
	}
	if err := q.Extend(ctx, &held, time.Hour); err != nil {
		t.Errorf("Extend = %v", err)
	}
	if errs := q.Acknowledge(ctx, []port.Delivery{held}); errs != nil {
		t.Errorf("Acknowledge = %v", errs)
	}
}
