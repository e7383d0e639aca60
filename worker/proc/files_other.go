//go:build !unix

package proc

import "math"

// MostCommands returns how many commands the limit of open files of this process
// allows at a time, at least one.
func MostCommands() int { return math.MaxInt }
