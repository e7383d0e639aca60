package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"jobq/core/coord"
	"jobq/core/fault"
	"jobq/core/state"
)

// The exit codes of jobq. Scripts rely on them: none changes its meaning.
const (
	exitDone        = 0
	exitFailed      = 1
	exitInvalid     = 2
	exitNotFound    = 3
	exitConflict    = 4
	exitUnavailable = 5
	exitCancelled   = 6
	exitDefect      = 70
	exitInterrupted = 130
)

// exitCode returns the exit code for an error of code.
func exitCode(code fault.Code) int {
	switch code {
	case fault.Invalid, fault.TooLarge:
		return exitInvalid
	case fault.NotFound:
		return exitNotFound
	case fault.Exists, fault.Conflict, fault.LeaseLost:
		return exitConflict
	case fault.Throttled, fault.Unavailable, fault.Denied, fault.Canceled, fault.Corrupt, fault.TooNew:
		return exitUnavailable
	default:
		return exitDefect
	}
}

// ended is the error of a verb that did its work and reports by its exit code
// alone.
type ended int

func (e ended) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// endedAs returns how a verb ends that waited for the workflow of s.
func endedAs(s coord.Summary) error {
	switch s.Status {
	case state.WorkflowFailed.String():
		return ended(exitFailed)
	case state.WorkflowCancelled.String():
		return ended(exitCancelled)
	default:
		return nil
	}
}

// finish prints err, if it is one for people, and returns the exit code. It is
// the one place where errors are printed.
func (a *app) finish(ctx context.Context, verb string, err error) int {
	if err == nil {
		return exitDone
	}
	if code, ok := errors.AsType[ended](err); ok {
		return int(code)
	}
	code := fault.CodeOf(err)
	if code == fault.Canceled && ctx.Err() != nil {
		a.tell("jobq: interrupted\n")
		return exitInterrupted
	}
	a.printError(strings.TrimSpace("jobq "+verb), code, err)
	return exitCode(code)
}

// printError says what happened, where, and what to do next.
func (a *app) printError(program string, code fault.Code, err error) {
	var b strings.Builder
	for i, e := range parts(err) {
		text := strings.ReplaceAll(plain(e.Error()), "\n", "\n  ")
		if i == 0 {
			fmt.Fprintf(&b, "%s: %s\n", program, text)
		} else {
			fmt.Fprintf(&b, "  and: %s\n", text)
		}
	}
	if a.where != "" {
		fmt.Fprintf(&b, "  where: %s\n", a.where)
	}
	fmt.Fprintf(&b, "  next: %s\n", fault.RemedyOf(err))
	a.tell(b.String())
}

// parts takes joined errors apart.
func parts(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, parts(e)...)
	}
	return all
}
