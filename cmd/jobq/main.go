// Command jobq is the command line of jobq, and under a hidden first word the
// guardian that ends the commands of a worker that died.
package main

import (
	"context"
	"os"

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
	ctx, again, release := cli.Signals(context.Background())
	code := cli.Main(ctx, again, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Environ())
	release()
	os.Exit(code)
}
