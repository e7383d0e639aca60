package cli

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// oneStop is how close together signals are one wish to stop: timeout(1) signals its
// child and then the whole group, which is the child once more, and of a terminal that
// is closed the shell and the kernel tell.
const oneStop = 200 * time.Millisecond

// Signals returns a context that ends with the first signal that asks for a stop, and
// a channel that is closed by a later one that is not together with it. From then on,
// and after release, signals have their usual effect again.
func Signals(parent context.Context) (ctx context.Context, again <-chan struct{}, release func()) {
	// One registration serves both: between two a signal would kill.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, interrupts()...)
	return heed(parent, signals, func() { signal.Stop(signals) })
}

// heed is Signals for the signals of a channel, which giveBack ends.
func heed(parent context.Context, signals <-chan os.Signal, giveBack func()) (ctx context.Context, again <-chan struct{}, release func()) {
	ctx, stop := context.WithCancelCause(parent)
	insisted, over := make(chan struct{}), make(chan struct{})
	var listening sync.WaitGroup
	listening.Go(func() {
		select {
		case s := <-signals:
			stop(stopSignal{s})
		case <-over:
			return
		}
		for first := time.Now(); ; {
			select {
			case <-signals:
				if time.Since(first) >= oneStop {
					giveBack()
					close(insisted)
					return
				}
			case <-over:
				return
			}
		}
	})
	return ctx, insisted, func() {
		close(over)
		listening.Wait()
		giveBack()
		stop(nil)
	}
}

// stopSignal is the cause of a context that a signal ended.
type stopSignal struct{ os.Signal }

func (s stopSignal) Error() string { return s.String() + " signal received" }

// Is makes it one of the errors of a context that was cancelled.
func (s stopSignal) Is(target error) bool { return target == context.Canceled }

// interrupts returns the signals that ask for a stop, less those that whoever started
// us wants ignored (nohup, a background job of a shell). It is never empty, which would
// mean every signal there is.
func interrupts() []os.Signal {
	all := []os.Signal{syscall.SIGTERM}
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			all = append(all, s)
		}
	}
	return all
}

// ignoreBrokenPipes lets a write to a pipe that nobody reads fail instead of
// ending the process, until the returned function is called. To ignore the signal
// itself would do the same to every command that is started meanwhile.
func ignoreBrokenPipes() func() {
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	return func() { signal.Stop(broken) }
}
