package guard

import "time"

// Moment is a point of time that every process of this machine understands
// alike: nanoseconds on a clock that nobody can set and that, on Linux and
// Darwin, also runs while the machine is suspended. A wall clock may jump, and
// Go's monotonic clock neither means anything to another process nor counts a
// suspension, during which a record grows stale all the same.
type Moment int64

// Age returns the time since m.
func (m Moment) Age() time.Duration { return time.Duration(Now() - m) }
