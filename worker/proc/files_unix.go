//go:build unix

package proc

import (
	"math"
	"syscall"
)

// Each command takes a few open files of its parent, most of them while it begins;
// the rest of a worker has some as well.
const (
	filesEach  = 6
	filesOther = 40
)

// MostCommands returns how many commands the limit of open files of this process
// allows at a time, at least one.
func MostCommands() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return math.MaxInt
	}
	return commandsFor(uint64(limit.Cur))
}

func commandsFor(files uint64) int {
	if files >= math.MaxInt32 {
		return math.MaxInt
	}
	return max(1, (int(files)-filesOther)/filesEach)
}
