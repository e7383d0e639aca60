package cli

import (
	"math"
	"sync"
	"time"

	"jobq/core/coord"
	"jobq/core/state"
)

// maxGroups is how many groups a view has at most.
const maxGroups = 40

// rateWindow is how far back the rate looks.
const rateWindow = 20 * time.Second

// progress follows one workflow for a view. Each change costs the same whatever
// the number of tasks. Safe for concurrent use.
type progress struct {
	names []string
	slots int
	words map[string]state.TaskStatus

	mu     sync.Mutex
	index  map[string]int32
	groups grouping
	status []state.TaskStatus
	// inGroup counts the tasks of every group, counts those of the workflow.
	inGroup []state.Counts
	counts  state.Counts
	cancel  bool
	// sent are the tasks that went to a queue, oldest first. An entry counts while
	// its turn is still that of its task; others are dropped from the front.
	sent []sentTask
	turn []uint32
	last uint32

	begun time.Time
	// ends are the times and counts of ended tasks within the rate window.
	ends []ending
}

type sentTask struct {
	task int32
	turn uint32
}

// ending says that n tasks had ended at a time.
type ending struct {
	at time.Time
	n  int
}

// newProgress follows tasks of these names, all pending, of which slots run at a
// time; 0 slots is unknown.
func newProgress(names []string, slots int, now time.Time) *progress {
	p := &progress{
		names: names, slots: slots, words: map[string]state.TaskStatus{}, index: make(map[string]int32, len(names)),
		groups: groupTasks(names, maxGroups), status: make([]state.TaskStatus, len(names)), turn: make([]uint32, len(names)), begun: now,
	}
	for _, s := range state.TaskStatuses() {
		p.words[s.String()] = s
	}
	p.inGroup = make([]state.Counts, len(p.groups.names))
	for i, name := range names {
		p.index[name] = int32(i)
		p.status[i] = state.Pending
		p.inGroup[p.groups.of[i]].Pending++
	}
	p.counts.Pending = len(names)
	return p
}

// load takes over the statuses of s.
func (p *progress) load(s *state.Workflow, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, status := range s.TaskStatus {
		p.move(int32(i), status, status.Numbered())
	}
	p.counts, p.cancel = s.Counts(), s.CancelRequested
	p.ended(now)
}

// changed applies a notice.
func (p *progress) changed(n coord.Notice, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range n.Moves {
		if i, ok := p.index[m.Task]; ok {
			to := p.words[m.To]
			p.move(i, to, to == state.Running || m.Cause == state.CauseNumbered)
		}
	}
	p.counts, p.cancel = n.View.Counts, n.View.CancelRequested
	p.ended(now)
}

// move notes the status of task i and whether it was sent. p.mu is held.
func (p *progress) move(i int32, to state.TaskStatus, sent bool) {
	group := &p.inGroup[p.groups.of[i]]
	group.Add(p.status[i], -1)
	group.Add(to, 1)
	p.status[i] = to
	switch {
	case !sent:
		p.turn[i] = 0
	case p.turn[i] == 0:
		p.last++
		p.turn[i] = p.last
		p.sent = append(p.sent, sentTask{i, p.last})
	}
}

// ended notes how many tasks have ended by now. p.mu is held.
func (p *progress) ended(now time.Time) {
	const apart = 100 * time.Millisecond
	n := len(p.ends)
	if n > 1 && now.Sub(p.ends[n-2].at) < apart {
		p.ends = p.ends[:n-1]
	}
	p.ends = append(p.ends, ending{now, p.counts.Ended()})
	for len(p.ends) > 2 && now.Sub(p.ends[1].at) > rateWindow {
		p.ends = p.ends[1:]
	}
}

// snapshot is what a view shows of a workflow.
type snapshot struct {
	total   int
	counts  state.Counts
	cancel  bool
	elapsed time.Duration
	// rate is ended tasks a second, 0 for unknown; left is how long it may still
	// take, below 0 for unknown.
	rate float64
	left time.Duration
	// running are the names of the tasks that run, as far as is known.
	running []string
	groups  []groupCounts
}

// groupCounts is one row of a view.
type groupCounts struct {
	name   string
	counts state.Counts
}

// maxRunning bounds the names of running tasks in a snapshot.
const maxRunning = 20

func (p *progress) snapshot(now time.Time) snapshot {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := snapshot{
		total: len(p.names), counts: p.counts, cancel: p.cancel, elapsed: now.Sub(p.begun), left: -1,
		groups: make([]groupCounts, len(p.groups.names)),
	}
	for i, name := range p.groups.names {
		s.groups[i] = groupCounts{name, p.inGroup[i]}
	}
	s.running = p.running()
	s.rate, s.left = p.pace(now)
	return s
}

// running names the tasks that run: queues are about first in, first out, so of
// what was sent the oldest do. p.mu is held.
func (p *progress) running() []string {
	for len(p.sent) > 0 && p.turn[p.sent[0].task] != p.sent[0].turn {
		p.sent = p.sent[1:]
	}
	most := maxRunning
	if p.slots > 0 {
		most = min(most, p.slots)
	}
	var names []string
	for _, t := range p.sent {
		if len(names) == most {
			break
		}
		if p.turn[t.task] == t.turn {
			names = append(names, p.names[t.task])
		}
	}
	return names
}

// pace returns the rate of ended tasks and the time that the open ones take at
// that rate. p.mu is held.
func (p *progress) pace(now time.Time) (rate float64, left time.Duration) {
	if len(p.ends) == 0 {
		return 0, -1
	}
	first, last := p.ends[0], p.ends[len(p.ends)-1]
	span := now.Sub(first.at).Seconds()
	if done := last.n - first.n; done > 0 && span > 0.2 {
		rate = float64(done) / span
	}
	if rate == 0 || p.counts.Open() == 0 {
		return rate, -1
	}
	seconds := float64(p.counts.Open()) / rate
	if seconds > math.MaxInt64/float64(time.Second) {
		return rate, -1
	}
	return rate, time.Duration(seconds * float64(time.Second))
}
