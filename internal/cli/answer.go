package cli

import "io"

// answer is standard output for what does not look at the errors of writing: it keeps
// the first one and takes nothing after it.
type answer struct {
	to  io.Writer
	err error
}

// Write implements io.Writer.
func (w *answer) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	var n int
	n, w.err = w.to.Write(p)
	return n, w.err
}

// unwritten returns the error that standard output did not take all.
func (w *answer) unwritten() error {
	if w.err == nil {
		return nil
	}
	return unwritten(w.err)
}
