package guard

import "golang.org/x/sys/unix"

// clock counts the time that the machine was suspended.
const clock = unix.CLOCK_BOOTTIME
