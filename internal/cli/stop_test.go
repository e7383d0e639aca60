package cli

import (
	"bytes"
	"context"
	"io"
	"sync"
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

func TestALogThatNobodyReadsHoldsUpNoStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		unread, stderr := io.Pipe()
		defer unread.Close()
		late, hurry := context.WithCancel(t.Context())
		d := diversion{late: late.Done(), to: stderr}
		time.AfterFunc(time.Minute, hurry)
		begun := time.Now()
		for range 3 {
			d.Write([]byte("a line\n"))
		}
		if took := time.Since(begun); took != time.Minute+lastLines {
			t.Errorf("three lines took %v, want them given up together soon after a minute", took)
		}
	})
}

func TestASlowReaderOfAStoppedServiceGetsItsLog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		read, stderr := io.Pipe()
		late, hurry := context.WithCancel(t.Context())
		hurry()
		d := diversion{late: late.Done(), to: stderr}
		var got bytes.Buffer
		var reading sync.WaitGroup
		reading.Go(func() {
			line := make([]byte, 64)
			for {
				time.Sleep(lastLines / 2)
				n, err := read.Read(line)
				if err != nil {
					return
				}
				got.Write(line[:n])
			}
		})
		for range 3 {
			if _, err := d.Write([]byte("a line\n")); err != nil {
				t.Error(err)
			}
		}
		stderr.Close()
		reading.Wait()
		if got.String() != "a line\na line\na line\n" {
			t.Errorf("it read %q", got.String())
		}
	})
}

func TestAPartWithItsOwnBoundEndsBeforeItsReadersTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var p slowPart
		if p.since() < readTime {
			t.Error("a verb without such a part is given time for it")
		}
		end := p.begin()
		time.Sleep(time.Hour)
		if got := p.since(); got != 0 {
			t.Errorf("in the part since is %v", got)
		}
		end()
		time.Sleep(time.Second)
		if got := p.since(); got != time.Second {
			t.Errorf("a second after it since is %v", got)
		}
	})
}
