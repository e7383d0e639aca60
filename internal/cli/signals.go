package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// oneStop is how close together signals are one wish to stop: timeout(1) signals its
// child and then the whole group, which is the child once more.
const oneStop = 200 * time.Millisecond

// secondInterrupt returns a channel that is closed by a signal to stop that comes
// after ctx has ended, which is what the first one does, and not together with it.
// release gives the signals back.
func secondInterrupt(ctx context.Context) (again <-chan struct{}, release func()) {
	signals := make(chan os.Signal, 1)
	closed := make(chan struct{})
	over, stop := context.WithCancel(context.WithoutCancel(ctx))
	unhook := context.AfterFunc(ctx, func() {
		signal.Notify(signals, interrupts()...)
		defer signal.Stop(signals)
		first := time.Now()
		for {
			select {
			case <-signals:
				if time.Since(first) >= oneStop {
					close(closed)
					return
				}
			case <-over.Done():
				return
			}
		}
	})
	return closed, func() {
		unhook()
		stop()
	}
}

// interrupts returns the signals that ask for a stop, less one that whoever
// started us wants ignored. It is never empty, which would mean every signal.
func interrupts() []os.Signal {
	all := []os.Signal{syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGINT) {
		all = append(all, syscall.SIGINT)
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
