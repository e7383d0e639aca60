//go:build unix

package proc

import (
	"math"
	"testing"
)

func TestOpenFilesBoundTheCommands(t *testing.T) {
	t.Parallel()
	for files, want := range map[uint64]int{0: 1, 24: 1, 64: 4, 1024: 164, math.MaxUint64: math.MaxInt} {
		if got := commandsFor(files); got != want {
			t.Errorf("commandsFor(%d) = %d, want %d", files, got, want)
		}
	}
}
