//go:build !unix

package reaper

import "io"

// Run does nothing: here no process inherits others.
func Run(io.Writer) (code int, ran bool) { return 0, false }
