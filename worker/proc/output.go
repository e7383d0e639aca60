package proc

import (
	"errors"
	"io"
	"os"
	"reflect"
	"time"
)

const (
	// copyBytes is the size of one read from a pipe.
	copyBytes = 32 << 10
	// sweepBytes bounds what is still taken from a leaked pipe: the largest
	// capacity that a pipe has without privileges. Everything that the command
	// wrote before its end lies within it, and a writer that never stops
	// cannot hold Run.
	sweepBytes = 1 << 20
	// sweepWait is how long one read of a sweep waits for data that is not there.
	sweepWait = 10 * time.Millisecond
)

// output carries one pipe to its writer. Its fields after done are set before
// done is closed.
type output struct {
	read *os.File
	to   io.Writer

	done   chan struct{}
	leaked bool
	err    error
}

// outputs are the pipes of one command and the files that the child gets.
type outputs struct {
	list []*output
	// child holds stdin, stdout and stderr of the child.
	child [3]*os.File
}

// openOutputs opens the null device and the pipes for spec. On an error nothing stays open.
func openOutputs(spec *Spec) (*outputs, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	o := &outputs{child: [3]*os.File{null, null, null}}
	if err := o.attach(1, spec.Stdout); err != nil {
		o.abandon()
		return nil, err
	}
	if spec.Stdout != nil && same(spec.Stdout, spec.Stderr) {
		o.child[2] = o.child[1]
	} else if err := o.attach(2, spec.Stderr); err != nil {
		o.abandon()
		return nil, err
	}
	return o, nil
}

// same compares two writers, of which a type that cannot be compared is never the same.
func same(a, b io.Writer) bool {
	return a != nil && b != nil && reflect.TypeOf(a).Comparable() && reflect.TypeOf(b).Comparable() && a == b
}

// attach gives the child a pipe to w as file descriptor fd.
func (o *outputs) attach(fd int, w io.Writer) error {
	if w == nil {
		return nil
	}
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	o.child[fd] = write
	o.list = append(o.list, &output{read: read, to: w, done: make(chan struct{})})
	return nil
}

// closeChild closes our copies of the child's files, so that a pipe ends with
// its last writer.
func (o *outputs) closeChild() {
	for _, f := range o.child {
		_ = f.Close() // one that stands for two descriptors refuses the second close
	}
}

// abandon closes everything, for a command that was not started.
func (o *outputs) abandon() {
	o.closeChild()
	for _, p := range o.list {
		_ = p.read.Close()
	}
}

// start copies every pipe until its end. finish awaits it.
func (o *outputs) start() {
	for _, p := range o.list {
		go p.copy()
	}
}

// finish waits for the ends of the pipes, at most for drain, and then cuts off
// those that a process outside the group holds open.
func (o *outputs) finish(drain time.Duration) {
	limit := time.NewTimer(drain)
	defer limit.Stop()
	for _, p := range o.list {
		select {
		case <-p.done:
		case <-limit.C:
			o.cutOff()
			return
		}
	}
}

// cutOff ends every copy that still waits for data, and waits for all of them.
func (o *outputs) cutOff() {
	for _, p := range o.list {
		_ = p.read.SetReadDeadline(time.Unix(1, 0)) // fails only on a pipe that has ended
	}
	for _, p := range o.list {
		<-p.done
	}
}

// copy moves the pipe to its writer until every writer of the pipe is gone or
// cutOff is called. It always reads on, so that the command is never blocked or
// killed by an output that cannot be kept.
func (p *output) copy() {
	defer close(p.done)
	defer p.read.Close()
	buf := make([]byte, copyBytes)
	for {
		n, err := p.read.Read(buf)
		p.write(buf[:n])
		if errors.Is(err, os.ErrDeadlineExceeded) {
			p.leaked = p.sweep(buf)
			return
		}
		if err != nil {
			return
		}
	}
}

// sweep takes what lies in a pipe that did not end, and reports whether it
// still has not ended. The expired deadline hid that data: a read does not even
// try then, and the copy may have been busy in a slow Write until now.
func (p *output) sweep(buf []byte) bool {
	for taken := 0; taken < sweepBytes; {
		_ = p.read.SetReadDeadline(time.Now().Add(sweepWait)) // it took one before
		n, err := p.read.Read(buf)
		p.write(buf[:n])
		taken += n
		if err != nil {
			return errors.Is(err, os.ErrDeadlineExceeded)
		}
	}
	return true
}

// write hands b to the writer unless an earlier write failed.
func (p *output) write(b []byte) {
	if len(b) == 0 || p.err != nil {
		return
	}
	n, err := p.to.Write(b)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	p.err = err
}

// leaked reports whether a pipe was cut off before its end.
func (o *outputs) leaked() bool {
	for _, p := range o.list {
		if p.leaked {
			return true
		}
	}
	return false
}

// err returns the errors of the writers.
func (o *outputs) err() error {
	var all error
	for _, p := range o.list {
		all = errors.Join(all, p.err)
	}
	return all
}
