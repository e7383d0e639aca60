package guard

import (
	"time"

	"jobq/core/fault"
)

// Group is one start of a command as the guardian sees it.
type Group struct {
	// RunID is the value of the run id variable in the environment of the
	// command: 1 to 480 bytes, no NUL.
	RunID string
	// PGID is the process group, or 0 while the command is not started.
	PGID int
	// TTL is the age of the last successful beat at which others may take the
	// attempt over; 0 where nobody goes by time (the embedded store).
	TTL time.Duration
	// Sent is the moment at which the last successful beat was sent; the
	// write that claimed the record counts as the first.
	Sent Moment
}

// check refuses a group that cannot be guarded.
func (g Group) check() error {
	if g.TTL < 0 || g.PGID < 0 || g.PGID == 1 || g.Sent < 0 {
		return fault.Newf(fault.Invalid, "run %q: ttl %v, process group %d, beat %d cannot be guarded", g.RunID, g.TTL, g.PGID, g.Sent)
	}
	return checkRunID(g.RunID)
}

// killAt is the part of the ttl, in tenths, after which a group without a newer
// beat is killed. The rest is the time for the kill to take effect.
const killAt = 8

// deadline returns the moment at which g is to be killed, if there is one.
func (g Group) deadline() (Moment, bool) {
	if g.TTL == 0 {
		return 0, false
	}
	return g.Sent + Moment(g.TTL/10*killAt), true
}
