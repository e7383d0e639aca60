package guard

import "os"

// processName is what a process list shows.
const processName = "guardian"

// takeName gives the process a name of its own, so that killing workers by
// name (`killall -9 jobq`) leaves the guardian to do its work.
func takeName() {
	_ = os.WriteFile("/proc/self/comm", []byte(processName), 0) // without it only the name is wrong
}

// ownProgram names the running program, also when an upgrade has replaced its
// file: a guardian of another version might not understand us.
func ownProgram() (string, error) {
	const self = "/proc/self/exe"
	if _, err := os.Lstat(self); err != nil {
		return os.Executable()
	}
	return self, nil
}
