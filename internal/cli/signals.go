package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// secondInterrupt returns a channel that is closed by a signal to stop that comes
// after ctx has ended, which is what the first one does. release gives the signals
// back.
func secondInterrupt(ctx context.Context) (again <-chan struct{}, release func()) {
	signals := make(chan os.Signal, 1)
	closed := make(chan struct{})
	over, stop := context.WithCancel(context.WithoutCancel(ctx))
	unhook := context.AfterFunc(ctx, func() {
		signal.Notify(signals, interrupts()...)
		select {
		case <-signals:
			close(closed)
		case <-over.Done():
		}
		signal.Stop(signals)
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
