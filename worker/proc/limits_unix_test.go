//go:build unix

package proc

import (
	"math"
	"testing"
)

func TestLimitsBoundTheCommands(t *testing.T) {
	t.Parallel()
	for free, want := range map[uint64][2]int{0: {1, 1}, 24: {1, 1}, 64: {4, 14}, 1024: {164, 334}, math.MaxUint64: {math.MaxInt, math.MaxInt}} {
		files := commandsFor(free, filesEach, filesOther)
		processes := commandsFor(free, processesEach, processesOther)
		if got := [2]int{files, processes}; got != want {
			t.Errorf("commands for %d files and processes = %d, want %d", free, got, want)
		}
	}
	if most, limit := MostCommands(); most < 1 || most < math.MaxInt && (limit.On == "" || limit.Raise == "") {
		t.Errorf("MostCommands = %d, %+v; want one at least, and what bounds it", most, limit)
	}
}
