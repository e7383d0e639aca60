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
	words map[string]state.TaskStatus

	mu     sync.Mutex
	index  map[string]int32
	groups grouping
	status []state.TaskStatus
	// inGroup counts the tasks of every group, counts those of the workflow.
	inGroup []state.Counts
	counts  state.Counts
	cancel  bool
	// stopping says that the process stops, which no state shows.
	stopping bool
	// active are the commands that run, oldest first; activeIn counts them by group.
	active   []activeTask
	activeIn []int
	// open says that more may run than are in active.
	open bool

	begun time.Time
	// ends are the times and counts of ended tasks within the rate window.
	ends []ending
}

// activeTask is an attempt whose command runs.
type activeTask struct {
	task    int32
	attempt uint32
}

// ending says that n tasks had ended at a time.
type ending struct {
	at time.Time
	n  int
}

// newProgress follows tasks of these names, all pending.
func newProgress(names []string, now time.Time) *progress {
	p := &progress{
		names: names, words: map[string]state.TaskStatus{}, index: make(map[string]int32, len(names)),
		groups: groupTasks(names, maxGroups), status: make([]state.TaskStatus, len(names)), begun: now,
	}
	for _, s := range state.TaskStatuses() {
		p.words[s.String()] = s
	}
	p.inGroup, p.activeIn = make([]state.Counts, len(p.groups.names)), make([]int, len(p.groups.names))
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
		p.move(int32(i), status)
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
			p.move(i, p.words[m.To])
			if m.Attempt > 0 && m.To != state.Running.String() && m.Cause != state.CauseNumbered {
				p.inactive(func(x activeTask) bool { return x.task == i && x.attempt <= m.Attempt })
			}
		}
	}
	p.counts, p.cancel = n.View.Counts, n.View.CancelRequested
	p.ended(now)
}

// move notes the status of task i. p.mu is held.
func (p *progress) move(i int32, to state.TaskStatus) {
	group := &p.inGroup[p.groups.of[i]]
	group.Add(p.status[i], -1)
	group.Add(to, 1)
	p.status[i] = to
}

// command notes that the command of an attempt begins, or has ended.
func (p *progress) command(task string, attempt uint32, begins bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i, ok := p.index[task]
	if !ok {
		return
	}
	p.inactive(func(x activeTask) bool { return x.task == i && x.attempt == attempt })
	if begins {
		p.active = append(p.active, activeTask{i, attempt})
		p.activeIn[p.groups.of[i]]++
	}
}

// stop notes that the process is stopping.
func (p *progress) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopping = true
}

// stopped reports whether the process is stopping.
func (p *progress) stopped() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stopping
}

// inactive drops commands. p.mu is held.
func (p *progress) inactive(drop func(activeTask) bool) {
	kept := p.active[:0]
	for _, x := range p.active {
		if drop(x) {
			p.activeIn[p.groups.of[x.task]]--
		} else {
			kept = append(kept, x)
		}
	}
	p.active = kept
}

// live takes over what another process found out about the commands that run.
func (p *progress) live(l liveTasks) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inactive(func(activeTask) bool { return true })
	for _, i := range l.running {
		p.active = append(p.active, activeTask{task: i})
		p.activeIn[p.groups.of[i]]++
	}
	p.open = l.more
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
	total    int
	counts   state.Counts
	cancel   bool
	stopping bool
	elapsed  time.Duration
	// rate is ended tasks a second, 0 for unknown; left is how long it may still
	// take, below 0 for unknown.
	rate float64
	left time.Duration
	// active is how many commands run, at least that many with more; running are
	// names of them, oldest first.
	active  int
	more    bool
	running []string
	groups  []groupCounts
}

// groupCounts is one row of a view.
type groupCounts struct {
	name   string
	counts state.Counts
	active int
}

// maxRunning bounds the names of running tasks in a snapshot.
const maxRunning = 20

func (p *progress) snapshot(now time.Time) snapshot {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := snapshot{
		total: len(p.names), counts: p.counts, cancel: p.cancel, stopping: p.stopping, elapsed: now.Sub(p.begun), left: -1,
		groups: make([]groupCounts, len(p.groups.names)),
	}
	for i, name := range p.groups.names {
		s.groups[i] = groupCounts{name, p.inGroup[i], p.activeIn[i]}
	}
	s.active, s.more = len(p.active), p.open
	for _, x := range p.active[:min(len(p.active), maxRunning)] {
		s.running = append(s.running, p.names[x.task])
	}
	s.rate, s.left = p.pace(now)
	return s
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
