//go:build !unix

package proc

import "math"

// MostCommands returns how many commands the limits of this process allow at a time
// now, at least one, and the lowest of them.
func MostCommands() (int, Limit) { return math.MaxInt, Limit{} }
