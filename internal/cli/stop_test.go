package cli

import (
	"bytes"
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"
)

// TestAStoppedVerbWaitsForItsReaderNotForEver: the first signal must end what stands
// in a write too, as no second one may come.
func TestAStoppedVerbWaitsForItsReaderNotForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		unread, stdout := io.Pipe()
		defer unread.Close() // frees what still writes
		var stderr bytes.Buffer
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, stop)
		begun := time.Now()
		code := Main(ctx, nil, []string{"schema"}, nil, stdout, &stderr, nil)
		if took := time.Since(begun); code != exitInterrupted || took != time.Minute+readTime || stderr.String() != "jobq: interrupted\n" {
			t.Errorf("it ended with %d after %v and said %q, want 130 soon after the stop", code, took, stderr.String())
		}
	})
}

func TestASecondWishEndsAVerbAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		unread, stdout := io.Pipe()
		defer unread.Close()
		var stderr bytes.Buffer
		ctx, stop := context.WithCancel(t.Context())
		stop()
		again := make(chan struct{})
		time.AfterFunc(time.Second, func() { close(again) })
		begun := time.Now()
		code := Main(ctx, again, []string{"schema"}, nil, stdout, &stderr, nil)
		if took := time.Since(begun); code != exitInterrupted || took != time.Second || stderr.String() != "jobq: killed\n" {
			t.Errorf("it ended with %d after %v and said %q, want 130 at once", code, took, stderr.String())
		}
	})
}
