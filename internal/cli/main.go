package cli

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"jobq/core/fault"
)

// Main runs the command line args, which do not contain the program's name, and
// returns the exit code of the process. env has the form of os.Environ.
//
// When ctx ends the verb stops cleanly; that is exit code 130 unless stopping is
// how the verb normally ends. Nothing is left running when Main returns, unless it
// returns because again was closed, which asks not to wait for that, or because nobody
// reads what a stopped verb prints: the process is to end then, and its guardian ends
// the commands, as after any other death.
func Main(ctx context.Context, again <-chan struct{}, args []string, stdin io.Reader, stdout, stderr io.Writer, env []string) int {
	a := &app{in: stdin, out: stdout, err: stderr, env: environment(env)}
	late, hurry := context.WithCancel(context.Background())
	defer hurry()
	a.logs.late = late.Done()
	done := make(chan int, 1)
	go func() { done <- a.main(ctx, args) }()
	stopped := ctx.Done()
	var due <-chan time.Time
	for {
		select {
		case code := <-done:
			return code
		case <-again:
			a.killed()
			return exitInterrupted
		case <-stopped:
			stopped, due = nil, time.After(readTime)
		case <-due:
			hurry()
			if left := readTime - a.slow.since(); left > 0 {
				due = time.After(left)
				continue
			}
			a.unread.Store(true)
			a.tell("jobq: interrupted\n")
			return exitInterrupted
		}
	}
}

// main runs the command line args and returns its exit code.
func (a *app) main(ctx context.Context, args []string) int {
	asked, args := completionAsked(args)
	place, rest, err := splitPlace(args)
	rest = append(asked, rest...)
	if err != nil {
		return a.finish(ctx, "", err)
	}
	a.place = place
	root := newRoot(a)
	root.SetArgs(rest)
	root.SetIn(a.in)
	help := &answer{to: a.out}
	root.SetOut(help)
	root.SetErr(a.err)
	verb, err := root.ExecuteContextC(ctx)
	if untold := help.unwritten(); untold != nil {
		err = untold
	}
	return a.finish(ctx, verbOf(verb), err)
}

// completionAsked cuts off the first word of a shell that asks what to propose: the
// words of the person begin behind it.
func completionAsked(args []string) (asked, rest []string) {
	if len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd) {
		return []string{args[0]}, args[1:]
	}
	return nil, args
}

// environment makes a map of the pairs of env; the last of a name wins.
func environment(env []string) map[string]string {
	m := make(map[string]string, len(env))
	for _, pair := range env {
		if name, value, ok := strings.Cut(pair, "="); ok {
			m[name] = value
		}
	}
	return m
}

// usageError is bad input whose remedy is the help of the verb.
func usageError(verb, format string, args ...any) *fault.Error {
	return fault.Newf(fault.Invalid, format, args...).WithRemedy("`" + strings.TrimSpace("jobq "+verb) + " --help` shows how it is called")
}
