//go:build unix

package reaper

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// Run does nothing and returns false unless this process is process 1. Else it
// runs this program, with the same arguments, as another process, and returns the
// exit code of that: 128 and the number of the signal where one ended it. It must
// be called before anything else starts processes.
func Run(stderr io.Writer) (code int, ran bool) {
	if os.Getpid() != 1 {
		return 0, false
	}
	executable, err := os.Executable()
	if err == nil {
		code, err = serve(executable, os.Args)
	}
	if err != nil {
		fmt.Fprintf(stderr, "jobq: as process 1 it could not start itself again: %v\n", err)
		return 1, true
	}
	return code, true
}

// serve runs a program to its end and collects every process that dies meanwhile.
func serve(path string, args []string) (code int, err error) {
	signals := make(chan os.Signal, 16)
	listen(signals)
	defer signal.Stop(signals)
	child, err := os.StartProcess(path, args, &os.ProcAttr{Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}, Sys: apart()})
	if err != nil {
		return 0, err
	}
	ended := make(chan struct{})
	forwarded := make(chan struct{})
	go func() {
		defer close(forwarded)
		for {
			select {
			case s := <-signals:
				forward(child.Pid, s)
			case <-ended:
				return
			}
		}
	}()
	status, err := collect(child.Pid)
	close(ended)
	<-forwarded
	if err != nil {
		return 0, err
	}
	if status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return status.ExitStatus(), nil
}

// listen asks for every signal, but for those that whoever started us wants ignored:
// so they stay for the program too.
func listen(signals chan<- os.Signal) {
	var ignored []os.Signal
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT} {
		if signal.Ignored(s) {
			ignored = append(ignored, s)
		}
	}
	signal.Notify(signals)
	if len(ignored) > 0 { // none would mean all
		signal.Ignore(ignored...)
	}
}

// apart gives the program a process group of its own, in front of the terminal if
// we are: what is typed there then reaches it once, and not a second time through
// us.
func apart() *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true}
	stdin := int(os.Stdin.Fd())
	// It fails for what is no terminal, or not that of our session.
	if front, err := unix.IoctlGetInt(stdin, unix.TIOCGPGRP); err == nil && front == syscall.Getpgrp() {
		a.Foreground, a.Ctty = true, stdin
	}
	return a
}

// forward passes s on, unless it is about us: a child that changed, the runtime's
// own preemption, a terminal that we are not in front of.
func forward(pid int, s os.Signal) {
	n, ok := s.(syscall.Signal)
	switch {
	case !ok, n == syscall.SIGCHLD, n == syscall.SIGURG, n == syscall.SIGTTIN, n == syscall.SIGTTOU, n == syscall.SIGPIPE:
		return
	}
	_ = syscall.Kill(pid, n) // it may be gone: then we end next
}

// collect waits for every child, its own and inherited ones, until pid has ended.
// Where that was stopped from the terminal it goes on: a shell that could see to it
// is not there, and process 1 itself is not stopped either.
func collect(pid int) (syscall.WaitStatus, error) {
	for {
		var status syscall.WaitStatus
		got, err := syscall.Wait4(-1, &status, syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return 0, fmt.Errorf("waiting for process %d: %w", pid, err)
		case got == pid && (status.Exited() || status.Signaled()):
			return status, nil
		case got == pid && status.Stopped() && status.StopSignal() == syscall.SIGTSTP:
			_ = syscall.Kill(-pid, syscall.SIGCONT) // its group, as what stopped it
		}
	}
}
