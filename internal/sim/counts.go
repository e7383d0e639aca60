package sim

// Path is a way of recovery that a campaign must have taken.
type Path uint8

// The paths of recovery that are counted.
const (
	// PathResent are intents that were sent again on a repeat.
	PathResent Path = iota
	// PathRepeat are repeated or late reports that were dropped.
	PathRepeat
	// PathConflict are events applied again after a 412.
	PathConflict
	// PathTakeOver are attempts taken over by a further start.
	PathTakeOver
	// PathReported are ends found in a record and reported again.
	PathReported
	// PathWake are delayed wakes.
	PathWake
	// PathPoison are messages moved to a poison queue.
	PathPoison
	// PathFenced are attempts ended by a coordinator.
	PathFenced
	// PathClaim are commands that the sweep finished.
	PathClaim
	// PathLostMessage are running tasks that were sent again.
	PathLostMessage
	// PathEndedRecord are ends that only the sweep found.
	PathEndedRecord
	// PathGivenBack are attempts given back by a worker that stops.
	PathGivenBack
	// PathCrashLimit are attempts ended because too many starts were lost.
	PathCrashLimit
	// PathQueued are commands that went through the inbox.
	PathQueued
	// PathHostFailed are calls of a function that failed, PathReconsidered messages
	// that came back from poison, where a host had put them.
	PathHostFailed
	PathReconsidered
	// PathPart are batches of which a fault struck a part.
	PathPart
	// PathOtherID are commands that were given again under another id, PathTurned
	// those that were left for another command.
	PathOtherID
	PathTurned
	paths
)

var pathNames = [paths]string{
	"intents re-sent on a repeat", "repeated or late report dropped", "event applied again after a 412",
	"attempt taken over", "recorded end reported again", "delayed wake", "message poisoned", "attempt ended by a coordinator",
	"command finished by the sweep", "lost message sent again by the sweep", "recorded end found by the sweep",
	"attempt given back", "crash limit reached", "command through the inbox",
	"function failed", "message back from poison",
	"batch struck in part", "command given again under another id", "command left for another one",
}

func (p Path) String() string { return pathNames[p] }

// Counts is what happened in one or many histories.
type Counts struct {
	Faults [faultKinds]int64
	Paths  [paths]int64
	// Steps counts those that had to be prompt.
	Steps int64
	// Ended counts workflows by their final status.
	Ended map[string]int64
}

// Add adds o to c.
func (c *Counts) Add(o Counts) {
	for i, n := range o.Faults {
		c.Faults[i] += n
	}
	for i, n := range o.Paths {
		c.Paths[i] += n
	}
	c.Steps += o.Steps
	for status, n := range o.Ended {
		if c.Ended == nil {
			c.Ended = map[string]int64{}
		}
		c.Ended[status] += n
	}
}

func (w *World) count(f Fault) { w.Counts.Faults[f]++ }

func (w *World) path(p Path) { w.Counts.Paths[p]++ }
