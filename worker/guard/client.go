package guard

import (
	"bufio"
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"jobq/core/fault"
)

const (
	// startBound is how long a guardian may take to greet.
	startBound = 10 * time.Second
	// writeBound is how long a write to the pipe may take. The pipe holds some
	// hundred messages: one that stays full has a reader that does not read.
	writeBound = 2 * time.Second
)

// Options says how a guardian is started. The zero value is this program under Verb.
type Options struct {
	// Executable is the program to start; empty means this one.
	Executable string
	// Args are its arguments, without the program's name; nil means Verb.
	Args []string
	// Inherit are files that the guardian keeps open until it exits. A lock
	// taken on one by flock(2) is held as long as any process has the file
	// open: close the file to give up our part, never unlock it. The files
	// must stay open for as long as the Keeper lives.
	Inherit []*os.File
	// Logger hears of guardians that die and of commands that they killed;
	// nil means silence.
	Logger *slog.Logger
}

// client is one guardian process and the pipe to it. Its methods are for one
// goroutine at a time, except where they say otherwise.
type client struct {
	cmd  *exec.Cmd
	pipe *os.File
	buf  []byte
	// exited is closed when the guardian has died and is reaped.
	exited chan struct{}
}

// startClient starts a guardian and returns when it has greeted.
func startClient(ctx context.Context, o Options) (*client, error) {
	cmd, err := command(o)
	if err != nil {
		return nil, err
	}
	ordersRead, ordersWrite, err := os.Pipe()
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "no pipe for the guardian")
	}
	defer func() { _ = ordersRead.Close() }()
	repliesRead, repliesWrite, err := os.Pipe()
	if err != nil {
		_ = ordersWrite.Close()
		return nil, fault.Wrap(fault.Unavailable, err, "no pipe for the guardian")
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = ordersRead, repliesWrite, repliesWrite
	err = cmd.Start()
	_ = repliesWrite.Close() // the guardian's own is the only one: its death is the end of the replies
	if err != nil {
		_ = ordersWrite.Close()
		_ = repliesRead.Close()
		return nil, fault.Wrap(fault.Unavailable, err, "the guardian cannot be started")
	}
	c := &client{cmd: cmd, pipe: ordersWrite, exited: make(chan struct{})}
	greeted := make(chan struct{})
	go c.listen(repliesRead, greeted, o.Logger)
	if err := c.handshake(ctx, greeted); err != nil {
		c.kill()
		c.hangUp()
		<-c.exited
		return nil, err
	}
	return c, nil
}

// command prepares the process. Its environment is empty on purpose: within a
// task of another jobq the run id of that task would make the guardian a part
// of it, to be killed before it has done its work. GOMAXPROCS keeps the
// process small. Its directory holds on to no file system.
func command(o Options) (*exec.Cmd, error) {
	if len(os.Args) > 1 && os.Args[1] == Verb {
		// Without this a program that forgot to call Main would start itself
		// again and again.
		return nil, fault.Newf(fault.Internal, "a process that was started as %s cannot start another; its program has to call guard.Main", Verb)
	}
	attr, err := sessionAttr()
	if err != nil {
		return nil, err
	}
	program := o.Executable
	if program == "" {
		program, err = ownProgram()
	} else {
		program, err = filepath.Abs(program)
	}
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "the program of the guardian cannot be found")
	}
	args := o.Args
	if args == nil {
		args = []string{Verb}
	}
	return &exec.Cmd{
		Path: program, Args: append([]string{processName}, args...),
		Env: []string{"GOMAXPROCS=1"}, Dir: "/", ExtraFiles: o.Inherit, SysProcAttr: attr,
	}, nil
}

// handshake sends the preamble and waits for the greeting.
func (c *client) handshake(ctx context.Context, greeted <-chan struct{}) error {
	if err := c.write([]byte(preamble)); err != nil {
		return err
	}
	limit := time.NewTimer(startBound)
	defer limit.Stop()
	select {
	case <-greeted:
		return nil
	case <-c.exited:
		return fault.Newf(fault.Unavailable, "the guardian ended before it was ready: %v", c.cmd.ProcessState)
	case <-limit.C:
		return fault.Newf(fault.Unavailable, "the guardian was not ready after %v", startBound)
	case <-ctx.Done():
		return fault.Wrap(fault.Canceled, context.Cause(ctx), "the start of the guardian was given up")
	}
}

// listen logs what the guardian says after its greeting, until it has died,
// and reaps it.
func (c *client) listen(replies *os.File, greeted chan<- struct{}, logger *slog.Logger) {
	defer close(c.exited)
	defer func() { _ = replies.Close() }()
	lines := bufio.NewScanner(replies)
	for lines.Scan() {
		if line := lines.Text(); line == greeting && greeted != nil {
			close(greeted)
			greeted = nil
		} else {
			logger.Warn("guardian", "says", line)
		}
	}
	_ = c.cmd.Wait() // how it ended is in ProcessState
}

// send writes one message whose group was checked.
func (c *client) send(m message) error {
	c.buf = m.append(c.buf[:0])
	return c.write(c.buf)
}

// write writes b in one piece. A guardian that does not take it is dead or as
// good as dead, and is killed.
func (c *client) write(b []byte) error {
	_ = c.pipe.SetWriteDeadline(time.Now().Add(writeBound)) // a closed pipe refuses the write as well
	if _, err := c.pipe.Write(b); err != nil {
		c.kill()
		return fault.Wrap(fault.Unavailable, err, "the guardian does not listen")
	}
	return nil
}

// kill ends the guardian. Safe for concurrent use.
func (c *client) kill() { _ = c.cmd.Process.Kill() } // it may have ended

// hangUp ends the pipe. A repeat does nothing.
func (c *client) hangUp() { _ = c.pipe.Close() }

// close ends the pipe and waits for the guardian to exit. If ctx ends first the
// guardian is left to its work.
func (c *client) close(ctx context.Context) error {
	c.hangUp()
	select {
	case <-c.exited:
		return nil
	case <-ctx.Done():
		return fault.Wrap(fault.Canceled, context.Cause(ctx), "the guardian still waits for a process to die")
	}
}
