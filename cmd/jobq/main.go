// Command jobq is the command line of jobq, and under a hidden first word the
// guardian that ends the commands of a worker that died.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"jobq/internal/cli"
	"jobq/internal/reaper"
	"jobq/worker/guard"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == guard.Verb {
		os.Exit(guard.Main(os.Stdin, os.Stdout))
	}
	if code, ran := reaper.Run(os.Stderr); ran {
		os.Exit(code)
	}
	ctx, stop := signal.NotifyContext(context.Background(), interrupts()...)
	// The first signal asks for a clean stop. After it the signals have their
	// usual effect again, so that a second one kills.
	context.AfterFunc(ctx, stop)
	os.Exit(cli.Main(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Environ()))
}

// interrupts returns the signals that ask for a stop, less those that whoever
// started us wants ignored (nohup, a background job of a shell). It is never
// empty, which would mean every signal there is.
func interrupts() []os.Signal {
	all := []os.Signal{syscall.SIGTERM}
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			all = append(all, s)
		}
	}
	return all
}
