//go:build unix

package proc

import (
	"math"
	"syscall"
)

// Each command takes a few open files of its parent, most of them while it begins, and
// the shell, what that starts and a thread that waits for it; the rest of a worker and
// its guardian have some as well.
const (
	filesEach      = 6
	filesOther     = 40
	processesEach  = 3
	processesOther = 20
)

// MostCommands returns how many commands the limits of this process allow at a time
// now, at least one, and the lowest of them.
func MostCommands() (int, Limit) {
	most, lowest := math.MaxInt, Limit{}
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err == nil {
		most = commandsFor(uint64(files.Cur), filesEach, filesOther)
		lowest = Limit{On: "open files than this process may have", Raise: "raise `ulimit -n`"}
	}
	for _, r := range processRooms() {
		if n := commandsFor(r.free, processesEach, processesOther); n < most {
			most, lowest = n, r.limit
		}
	}
	return most, lowest
}

// room is how many processes and threads a limit still has room for.
type room struct {
	free  uint64
	limit Limit
}

// commandsFor returns how many commands fit into free things where one takes each and
// other are needed otherwise.
func commandsFor(free uint64, each, other int) int {
	if free >= math.MaxInt32 {
		return math.MaxInt
	}
	return max(1, (int(free)-other)/each)
}
