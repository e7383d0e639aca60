//go:build !linux

package guard

import "os"

// processName is what a process list shows.
const processName = "guardian"

// takeName has nothing to do: the process is called as it was started.
func takeName() {}

// ownProgram is the file of this program.
func ownProgram() (string, error) { return os.Executable() }
