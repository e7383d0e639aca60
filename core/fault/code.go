package fault

// Code classifies an error. The zero value is Internal on purpose: an error
// that nobody classified is ours to explain.
type Code uint8

// The closed list of codes.
const (
	// Internal is a defect of jobq or an error that nobody classified.
	Internal Code = iota
	// Invalid is input that can never be accepted as it is.
	Invalid
	// NotFound is a named thing that does not exist, although the place where it would be was read.
	NotFound
	// Exists is a create-only write of a thing that is already there.
	Exists
	// Conflict is a conditional write that another writer won. Nothing was written.
	Conflict
	// TooLarge is a value over a declared size limit. Nothing was written.
	TooLarge
	// Throttled is a service that asks to come back later; see RetryAfter.
	Throttled
	// Unavailable is a service that did not answer, or answered that it cannot
	// now. A write may or may not have happened.
	Unavailable
	// Denied is a caller without the right to do this.
	Denied
	// LeaseLost is a lock, lease or receipt that is no longer ours.
	LeaseLost
	// Canceled is work that was stopped by its caller or by a deadline.
	Canceled
	// Corrupt is stored data that fails its own checks.
	Corrupt
	// TooNew is stored data of a format that this program does not know yet.
	TooNew
)

// codes holds name and remedy of every code, in the order of the constants.
var codes = [...]struct{ name, remedy string }{
	Internal:    {"internal", "this is a defect of jobq; please report it with the command and the message"},
	Invalid:     {"invalid", "correct the input as the message says and try again"},
	NotFound:    {"not_found", "check the name; `jobq list` shows the workflows of this prefix"},
	Exists:      {"exists", "choose another name, or use the one that is there"},
	Conflict:    {"conflict", "somebody else changed it at the same time; look at the present state and try again"},
	TooLarge:    {"too_large", "make it smaller than the limit that the message names"},
	Throttled:   {"throttled", "the service asked for a pause; wait a little and try again"},
	Unavailable: {"unavailable", "the store did not answer; check that it can be reached and try again"},
	Denied:      {"denied", "ask for the right that the message names"},
	LeaseLost:   {"lease_lost", "another process took over; nothing needs to be done"},
	Canceled:    {"canceled", "it was stopped before it was done; start it again"},
	Corrupt:     {"corrupt", "the stored data is damaged; `jobq doctor` shows where"},
	TooNew:      {"too_new", "the stored data was written by a newer jobq; install that version"},
}

// Codes returns every code, in a fixed order, for tables that must be complete.
func Codes() []Code {
	all := make([]Code, len(codes))
	for i := range all {
		all[i] = Code(i)
	}
	return all
}

// String returns the stable lower-case name of c.
func (c Code) String() string {
	if int(c) < len(codes) {
		return codes[c].name
	}
	return codes[Internal].name
}

// Remedy returns one sentence that tells a person what to do about c.
func (c Code) Remedy() string {
	if int(c) < len(codes) {
		return codes[c].remedy
	}
	return codes[Internal].remedy
}

// Transient reports whether the same call may succeed later without a change
// by the caller.
func (c Code) Transient() bool { return c == Throttled || c == Unavailable }
