package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"jobq/core/fault"
	"jobq/worker/guard"
	"jobq/worker/logs"
	"jobq/worker/proc"
	"jobq/worker/protocol"
)

const (
	// survivorBound is how long the processes of a lost start may take to die.
	survivorBound = 30 * time.Second
	// remainsBound is how long a group that was killed may take to be gone.
	remainsBound = time.Minute
	// outputTries is how often the output of a command is read where the machine
	// cannot, outputPause the time between.
	outputTries = 100
	outputPause = 100 * time.Millisecond
)

// commandRunner runs the shell commands of tasks. Safe for concurrent use.
type commandRunner struct {
	guard  *guard.Keeper
	logger *slog.Logger
	store  logs.Appender
	// late has the ends of logs that are not stored yet.
	late   logs.Late
	grace  time.Duration
	cwd    string
	prefix string
	// namespace is what is cut off from the names of queues for tasks.
	namespace string
	scratch   *scratch
	// environ is what every child starts from.
	environ []string
	output  func(OutputLine)
}

var _ protocol.Runner = (*commandRunner)(nil)

func newCommandRunner(c Config, helper string, keeper *guard.Keeper) (*commandRunner, error) {
	s, err := newScratch(c.Scratch, helper)
	if err != nil {
		return nil, err
	}
	return &commandRunner{
		guard: keeper, logger: c.Logger, store: c.Store.TaskLogs, grace: max(c.KillTimeout, 0), cwd: c.Cwd,
		prefix: c.Prefix, namespace: c.Namespace, scratch: s, environ: inheritedEnviron(c.Environ, s.bin), output: c.Output,
	}, nil
}

// close stores what is left of logs and removes the files of the worker. Where that
// fails, what the commands did counts all the same.
func (r *commandRunner) close(ctx context.Context) {
	if left := r.late.Store(); left > 0 {
		r.logger.WarnContext(ctx, "the ends of logs are lost: the store did not take them", "logs", left)
	}
	if err := r.scratch.remove(); err != nil {
		r.logger.WarnContext(ctx, "files of the worker are left; remove them once nothing keeps them", "directory", r.scratch.dir, "error", err)
	}
}

// Moment implements protocol.Runner.
func (r *commandRunner) Moment() protocol.Moment { return protocol.Moment(guard.Now()) }

// Beat implements protocol.Runner.
func (r *commandRunner) Beat(runID string, sent protocol.Moment) {
	r.guard.Beat(runID, guard.Moment(sent))
}

// Run implements protocol.Runner.
func (r *commandRunner) Run(ctx context.Context, s protocol.Start) protocol.Outcome {
	c, err := parseCommand(s.Task.Kwargs)
	if err != nil {
		return impossible(err)
	}
	if s.Survivor != "" {
		if err := r.killSurvivors(ctx, s.Survivor); err != nil {
			return unstartable(err)
		}
	}
	files, err := r.scratch.prepare(ctx, s)
	switch {
	case errors.Is(err, errDisk):
		return unstartable(err)
	case err != nil:
		return protocol.Unprepare(err)
	}
	defer files.remove(r.logger)
	group := guard.Group{RunID: s.RunID, TTL: s.TTL, Sent: guard.Moment(s.Claimed)}
	if err := r.guard.Add(ctx, group); err != nil {
		return unstartable(err)
	}
	out := r.execute(ctx, s, c, files)
	if !out.Remains {
		r.guard.Remove(s.RunID) // a repeat does nothing
	}
	if !out.StartedAt.IsZero() {
		out.Output, err = readOutput(files)
		switch {
		case errors.Is(err, errDisk) && out.Kind == protocol.Exited && out.ExitCode == 0 && !out.Remains:
			return unstartable(err)
		case err != nil:
			out.OutputError = err.Error()
		}
	}
	return out
}

// readOutput reads what a command left, again and again where this machine is
// short of something at the moment: to run the command again costs more.
func readOutput(files *startFiles) ([]byte, error) {
	again := time.NewTicker(outputPause)
	defer again.Stop()
	for tries := 1; ; tries++ {
		body, err := files.output()
		if !errors.Is(err, errDisk) || tries == outputTries {
			return body, err
		}
		<-again.C
	}
}

// killSurvivors ends what is left of a start that was stopped, or whose worker was
// lost, where that was on this machine: two starts never run at once.
func (r *commandRunner) killSurvivors(ctx context.Context, runID string) error {
	bounded, cancel := context.WithTimeout(ctx, survivorBound)
	defer cancel()
	return proc.KillByRunID(bounded, runID)
}

// execute runs the command and carries its output.
func (r *commandRunner) execute(ctx context.Context, s protocol.Start, c command, files *startFiles) protocol.Outcome {
	stream := logs.New(ctx, r.store, s.Log, r.lines(s))
	var stdout, stderr excerpt
	result := proc.Run(ctx, proc.Spec{
		Command: c.text, Env: r.childEnviron(s, c, files), Dir: r.dir(c),
		Stdout:  io.MultiWriter(stream.Writer("stdout"), &stdout),
		Stderr:  io.MultiWriter(stream.Writer("stderr"), &stderr),
		Grace:   r.grace,
		Started: func(pgid int) { r.guard.Started(s.RunID, pgid) },
		Kill:    s.Kill,
	})
	left := false
	if !result.StillAlive {
		// Storing the end of the log may take long, and the number of the group is free.
		r.guard.Started(s.RunID, 0)
		// Another start may follow one that was stopped, on another machine: what left
		// the group must not run beside it.
		left = ctx.Err() != nil && r.killSurvivors(context.WithoutCancel(ctx), s.RunID) != nil
		if !left {
			r.guard.Remove(s.RunID)
		}
	}
	if err := r.late.Close(stream); err != nil {
		r.logger.WarnContext(ctx, "the end of a log could not be stored yet", "log", s.Log, "error", err)
	}
	if result.LeakedPipe {
		r.logger.WarnContext(ctx, "a process outside the command's group kept its output open", "run_id", s.RunID)
	}
	out := protocol.Outcome{
		Kind: outcomeKind(result), ExitCode: result.ExitCode, StartedAt: result.Started, EndedAt: result.Ended,
		Remains: left || result.StillAlive && !r.gone(ctx, result.PGID),
	}
	if result.Signal != 0 {
		out.Signal = signalName(result.Signal)
	}
	out.Error = explain(result, out.Signal, stderr.String(), stdout.String())
	return out
}

// gone waits for a group that was killed and still has a process in the kernel.
func (r *commandRunner) gone(ctx context.Context, pgid int) bool {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), remainsBound)
	defer cancel()
	return proc.WaitGone(bounded, pgid) == nil
}

func (r *commandRunner) lines(s protocol.Start) logs.LineFunc {
	if r.output == nil {
		return nil
	}
	return func(source string, line []byte) {
		r.output(OutputLine{
			Workflow: s.Task.Workflow, Task: s.Task.Name, Attempt: s.Attempt, Stream: source, Line: string(line),
		})
	}
}

func (r *commandRunner) dir(c command) string {
	if filepath.IsAbs(c.cwd) {
		return c.cwd
	}
	return filepath.Join(r.cwd, c.cwd)
}

func outcomeKind(result proc.Result) protocol.OutcomeKind {
	switch result.Reason {
	case proc.Exited:
		return protocol.Exited
	case proc.Cancelled:
		return protocol.Stopped
	case proc.Refused:
		return protocol.Impossible
	default:
		return protocol.Unstartable
	}
}

// explain says why a command did not succeed: what it wrote to stderr tells
// most, else what it wrote to stdout.
func explain(result proc.Result, signal, stderr, stdout string) string {
	var what string
	switch {
	case result.Err != nil:
		return result.Err.Error()
	case result.Success():
		return ""
	case signal != "" && result.Reason == proc.Exited && result.Signal == syscall.SIGKILL:
		what = "ended by SIGKILL, which jobq did not send; the machine may have run out of memory"
	case result.Reason == proc.Cancelled && signal != "":
		what = "it wrote" // that it was stopped, and why, is said already
	case signal != "":
		what = "ended by " + signal
	default:
		what = fmt.Sprintf("exit code %d", result.ExitCode)
	}
	text := strings.TrimSpace(stderr)
	if text == "" {
		text = strings.TrimSpace(stdout)
	}
	if text == "" && result.Reason == proc.Cancelled && signal != "" {
		return ""
	}
	if text == "" {
		return what
	}
	return what + ": " + text
}

func unstartable(err error) protocol.Outcome {
	return protocol.Outcome{Kind: protocol.Unstartable, ExitCode: -1, Error: err.Error()}
}

func impossible(err error) protocol.Outcome {
	return protocol.Outcome{Kind: protocol.Impossible, ExitCode: -1, Error: err.Error()}
}

var errNoCommand = fault.New(fault.Invalid, "the task has no cmd").
	WithRemedy("add kwargs.cmd, the shell command to run")

// signalNames are the signals that commands end by.
var signalNames = map[syscall.Signal]string{
	syscall.SIGABRT: "SIGABRT", syscall.SIGALRM: "SIGALRM", syscall.SIGBUS: "SIGBUS", syscall.SIGFPE: "SIGFPE",
	syscall.SIGHUP: "SIGHUP", syscall.SIGILL: "SIGILL", syscall.SIGINT: "SIGINT", syscall.SIGKILL: "SIGKILL",
	syscall.SIGPIPE: "SIGPIPE", syscall.SIGQUIT: "SIGQUIT", syscall.SIGSEGV: "SIGSEGV", syscall.SIGTERM: "SIGTERM",
	syscall.SIGTRAP: "SIGTRAP",
}

func signalName(s syscall.Signal) string {
	if name, known := signalNames[s]; known {
		return name
	}
	return fmt.Sprintf("signal %d", int(s))
}
