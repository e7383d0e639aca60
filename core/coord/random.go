package coord

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"time"
)

// randomBits is the Options.Random of production programs.
func randomBits() uint64 {
	var b [8]byte
	rand.Read(b[:]) // never fails, by its contract
	return binary.LittleEndian.Uint64(b[:])
}

// newID returns an id that no other call returns.
func (c *Coordinator) newID() string {
	return fmt.Sprintf("%016x%016x", c.o.Random(), c.o.Random())
}

// jitter returns a time between half of d and d.
func (c *Coordinator) jitter(d time.Duration) time.Duration {
	if d <= 1 {
		return d
	}
	half := uint64(d / 2)
	return time.Duration(half + c.o.Random()%(half+1))
}
