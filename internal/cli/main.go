package cli

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"jobq/core/fault"
)

// Main runs the command line args, which do not contain the program's name, and
// returns the exit code of the process. env has the form of os.Environ.
//
// When ctx ends the verb stops cleanly; that is exit code 130 unless stopping is
// how the verb normally ends. Nothing is left running when Main returns.
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, env []string) int {
	a := &app{in: stdin, out: stdout, err: stderr, env: environment(env)}
	asked, args := completionAsked(args)
	place, rest, err := splitPlace(args)
	rest = append(asked, rest...)
	if err != nil {
		return a.finish(ctx, "", err)
	}
	a.place = place
	root := newRoot(a)
	root.SetArgs(rest)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	verb, err := root.ExecuteContextC(ctx)
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
