package guard

import "golang.org/x/sys/unix"

// clock counts the time that the machine was asleep, on this system.
const clock = unix.CLOCK_MONOTONIC
