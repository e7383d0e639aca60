package guard

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"jobq/worker/proc"
)

// Verb is the argument under which our programs call Main. It stays out of
// their help.
const Verb = "__guardian"

const (
	// longestNap is how long a guardian with deadlines sleeps at most. Go's
	// timers stand still while the machine is suspended, Moments do not.
	longestNap = 5 * time.Second
	// killBound bounds the first try to kill, during which no message is read and no
	// other deadline is seen.
	killBound = time.Second
	// killPause is the pause before the next try, and bounds that.
	killPause = 250 * time.Millisecond
	// lingerBound is how long a guardian without a worker goes on trying. A
	// process that SIGKILL does not end by then hangs in the kernel, and its
	// lock must not keep a workflow from going on for ever.
	lingerBound = 10 * time.Minute
	// reportBound is how long the last reports may take; their reader may be
	// stopped or dead.
	reportBound = 100 * time.Millisecond
)

// Exit codes of Main.
const (
	exitDone     = 0
	exitSurvivor = 1 // something could not be killed
	exitUsage    = 2 // not called by a Keeper
)

// Main is the guardian. It reads orders from in, which is its standard input,
// until in ends and the last group is gone, and returns the exit code of the
// process. A program calls it before it does anything else when its first
// argument is Verb. Files that it inherited stay open until the process exits.
func Main(in io.Reader, out io.Writer) int {
	// A terminal sends these to everybody, and so does a service manager that
	// stops a worker: the guardian has to outlive the worker. SIGPIPE would
	// come from a report to a worker that is dead.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	takeName()

	reader := bufio.NewReader(in)
	if err := readPreamble(reader); err != nil {
		fmt.Fprintf(out, "this command is for jobq's own use: %v\n", err)
		return exitUsage
	}
	g := guardian{runs: ledger{}, reports: make(chan string, 64)}
	g.kill = g.killDoomed
	g.reports <- greeting
	written := make(chan struct{})
	go func() {
		defer close(written)
		writeReports(out, g.reports)
	}()
	messages := make(chan message, 64)
	var receiver sync.WaitGroup
	receiver.Go(func() { g.receive(reader, messages) })
	code := g.watch(context.Background(), messages)
	receiver.Wait()

	close(g.reports)
	select {
	case <-written:
	case <-time.After(reportBound):
	}
	return code
}

// guardian is the state of Main.
type guardian struct {
	runs    ledger
	reports chan string
	// kill is killDoomed, but in tests.
	kill func(context.Context)
}

// writeReports writes a line for each report.
func writeReports(out io.Writer, reports <-chan string) {
	for line := range reports {
		_, _ = io.WriteString(out, line+"\n") // its reader may be gone
	}
}

// report tells the worker something, unless it has stopped listening.
func (g *guardian) report(format string, args ...any) {
	select {
	case g.reports <- fmt.Sprintf(format, args...):
	default:
	}
}

// receive hands on messages until the pipe ends. A pipe that cannot be read
// has ended too: a guardian that does not know what its worker wants is none.
func (g *guardian) receive(r io.Reader, messages chan<- message) {
	defer close(messages)
	for {
		m, err := readMessage(r)
		if err != nil {
			if !errors.Is(err, io.EOF) {
				g.report("%v", err)
			}
			return
		}
		messages <- m
	}
}

// watch applies messages and kills what has to die, until messages is closed
// and no run is left.
//
// What SIGKILL does not end (a process of another user, one that hangs in the
// kernel) is tried again at a pace that leaves time for the messages: a pipe that
// nobody reads holds up the worker, which replaces a guardian that does not read.
func (g *guardian) watch(ctx context.Context, messages <-chan message) int {
	var orphaned time.Time // when the pipe ended
	var again time.Time    // when what is left of the doomed is killed once more
	timer := time.NewTimer(longestNap)
	defer timer.Stop()
	for {
		g.runs.expire(Now(), func(run Group) {
			g.report("killed run %q: its last beat was sent %v ago, its ttl is %v", run.RunID, run.Sent.Age(), run.TTL)
			again = time.Time{}
		})
		g.try(ctx, &again)
		if messages == nil {
			switch {
			case len(g.runs) == 0:
				return exitDone
			case time.Since(orphaned) > lingerBound:
				return exitSurvivor
			}
		}
		timer.Reset(g.nap())
		select {
		case m, open := <-messages:
			if open {
				g.runs.apply(m, Now())
				break
			}
			messages, orphaned, again = nil, time.Now(), time.Time{}
			g.runs.expireAll()
		case <-timer.C:
		}
	}
}

// try kills the doomed where that is due, and sets when it is due again. A zero
// again stands for doomed runs that no try has met.
func (g *guardian) try(ctx context.Context, again *time.Time) {
	if time.Now().Before(*again) || len(g.runs.doomed()) == 0 {
		return
	}
	bound := killPause
	if again.IsZero() {
		bound = killBound
	}
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	g.kill(ctx)
	*again = time.Now().Add(killPause)
}

// nap returns how long there is nothing to do unless a message comes. With
// nothing to wait for it is as long as a timer may be: an idle guardian uses no
// processor time.
func (g *guardian) nap() time.Duration {
	if len(g.runs.doomed()) > 0 {
		return killPause
	}
	next, found := g.runs.wait(Now())
	if !found {
		return 24 * time.Hour
	}
	return min(next, longestNap)
}

// killDoomed kills the doomed runs and forgets those that are gone.
func (g *guardian) killDoomed(ctx context.Context) {
	doomed := g.runs.doomed()
	ids := make([]string, 0, len(doomed))
	for _, run := range doomed {
		_ = proc.KillGroup(run.PGID) // one that cannot be killed is met again below
		ids = append(ids, run.RunID)
	}
	// What left its group, and what a worker started and did not live to tell.
	clean := proc.KillByRunID(ctx, ids...) == nil
	for _, run := range doomed {
		if proc.WaitGone(ctx, run.PGID) != nil {
			continue
		}
		if clean {
			delete(g.runs, run.RunID)
		} else {
			g.runs[run.RunID].PGID = 0 // from now on the number may be a stranger's
		}
	}
}
