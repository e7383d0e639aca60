package engine_test

import (
	"slices"
	"strings"
	"time"

	"jobq/core/dag"
	"jobq/core/engine"
	"jobq/core/msg"
	"jobq/core/state"
)

// model follows a run event by event, commands included, and says again what
// DESIGN §7 says: one task at a time, by names, always looking at everything.
type model struct {
	tasks  []dag.Task
	limit  int
	policy dag.ResultPolicy

	status    map[string]string
	attempt   map[string]uint32
	failures  map[string]int
	giveBacks map[string]int
	notBefore map[string]time.Time
	cancelled bool
	sent      bool // something was sent since the workflow was opened
	ended     string
	commands  map[string]bool // ids of those that were done
}

func newModel(d *dag.Definition) *model {
	m := &model{
		tasks: d.Tasks, limit: d.MaxParallelism, policy: d.ResultPolicy,
		status: map[string]string{}, attempt: map[string]uint32{}, failures: map[string]int{},
		giveBacks: map[string]int{}, notBefore: map[string]time.Time{}, commands: map[string]bool{},
	}
	for _, task := range m.tasks {
		m.status[task.Name] = "pending"
	}
	return m
}

func (m *model) terminal(name string) bool {
	return slices.Contains([]string{"completed", "failed", "upstream_failed", "skipped", "cancelled"}, m.status[name])
}

func (m *model) succeeded(name string) bool {
	return m.status[name] == "completed" || m.status[name] == "skipped"
}

func (m *model) numbered(name string) bool {
	return m.status[name] == "ready" || m.status[name] == "running"
}

// verdict is met, impossible or open.
func (m *model) verdict(task dag.Task) string {
	good, bad := 0, 0
	for _, parent := range task.DependsOn {
		switch {
		case m.succeeded(parent):
			good++
		case m.terminal(parent):
			bad++
		}
	}
	all := len(task.DependsOn)
	need := all
	switch task.DepPolicy.Kind {
	case dag.AllSettled:
		if good+bad == all {
			return "met"
		}
		return "open"
	case dag.Any:
		need = min(1, all)
	case dag.AtLeast:
		need = min(task.DepPolicy.N, all)
	}
	switch {
	case good >= need:
		return "met"
	case all-bad < need:
		return "impossible"
	default:
		return "open"
	}
}

// candidate says that nothing but the condition is open.
func (m *model) candidate(task dag.Task) bool {
	return m.status[task.Name] == "pending" && task.Condition != "" && m.verdict(task) == "met" &&
		!slices.ContainsFunc(namesIn(task.Condition), func(parent string) bool { return !m.terminal(parent) })
}

// apply follows one event, then everything that it makes possible.
func (m *model) apply(ev engine.Event, now time.Time) {
	switch ev := ev.(type) {
	case engine.Completion:
		m.complete(ev, now)
	case engine.Dispatched:
		if name := m.tasks[ev.Task].Name; m.status[name] == "ready" && m.attempt[name] == ev.Attempt {
			m.status[name] = "running"
			m.sent = true
		}
	case engine.Fenced:
		if name := m.tasks[ev.Task].Name; m.numbered(name) && m.attempt[name] == ev.Attempt {
			m.stopped(name, now)
		}
	case engine.Verdict:
		m.judge(m.tasks[ev.Task], ev.Outcome)
	case engine.Cancel:
		m.command(ev.ID, m.cancel)
	case engine.Retry:
		m.command(ev.ID, m.retry)
	case engine.Rerun:
		m.command(ev.ID, func() bool { return m.rerun(ev) })
	case engine.Mark:
		m.command(ev.ID, func() bool { return m.mark(ev) })
	}
	m.propagate()
	m.number(now)
	m.finish()
}

func (m *model) complete(ev engine.Completion, now time.Time) {
	attempt := max(ev.Attempt, 1)
	if !m.numbered(ev.Task) || m.attempt[ev.Task] != attempt {
		return
	}
	m.sent = true
	budget := m.tasks[m.index(ev.Task)].NumRetries
	switch {
	case ev.Success:
		m.status[ev.Task] = "completed"
	case ev.Reason == msg.Cancelled:
		m.stopped(ev.Task, now)
	default:
		m.giveBacks[ev.Task] = 0
		m.failures[ev.Task]++
		if m.cancelled || ev.Reason == msg.Undeliverable || m.failures[ev.Task] > budget {
			m.status[ev.Task] = "failed"
		} else {
			m.status[ev.Task] = "parked"
		}
	}
}

// stopped ends an attempt through no fault of the task.
func (m *model) stopped(name string, now time.Time) {
	if m.cancelled {
		m.status[name] = "cancelled"
		return
	}
	m.status[name] = "parked"
	wait := time.Second
	for range m.giveBacks[name] {
		wait *= 2
		if wait > 5*time.Minute {
			wait = 5 * time.Minute
			break
		}
	}
	m.giveBacks[name]++
	m.notBefore[name] = now.Add(wait)
}

func (m *model) judge(task dag.Task, outcome engine.Outcome) {
	if !m.candidate(task) {
		return
	}
	m.status[task.Name] = map[engine.Outcome]string{
		engine.ConditionTrue: "parked", engine.ConditionFalse: "skipped",
		engine.ConditionUpstream: "skipped", engine.ConditionError: "failed",
	}[outcome]
}

// command does do unless a command with this id was done before.
func (m *model) command(id string, do func() bool) {
	if !m.commands[id] {
		m.commands[id] = do()
	}
}

func (m *model) cancelling() bool { return m.cancelled && m.ended == "" }

func (m *model) cancel() bool {
	if m.ended != "" || m.cancelled {
		return false
	}
	m.cancelled = true
	for _, task := range m.tasks {
		if m.status[task.Name] == "pending" || m.status[task.Name] == "parked" {
			m.status[task.Name] = "cancelled"
		}
	}
	return true
}

func (m *model) reset(name string) {
	m.status[name] = "pending"
	m.failures[name], m.giveBacks[name] = 0, 0
	delete(m.notBefore, name)
}

func (m *model) retry() bool {
	if m.cancelling() {
		return false
	}
	done := false
	for _, task := range m.tasks {
		if m.terminal(task.Name) && !m.succeeded(task.Name) {
			m.reset(task.Name)
			m.cancelled = false
			done = true
		}
	}
	return done
}

func (m *model) rerun(ev engine.Rerun) bool {
	if m.cancelling() || ev.DryRun {
		return false
	}
	selected := map[string]bool{}
	for _, name := range ev.Tasks {
		selected[name] = true
	}
	for again := ev.Downstream; again; {
		again = false
		for _, task := range m.tasks {
			if !selected[task.Name] && slices.ContainsFunc(task.DependsOn, func(p string) bool { return selected[p] }) {
				selected[task.Name] = true
				again = true
			}
		}
	}
	hasEnded := false
	for name := range selected {
		if m.numbered(name) {
			return false
		}
		hasEnded = hasEnded || m.terminal(name)
	}
	if !hasEnded {
		return false
	}
	m.cancelled = false
	for name := range selected {
		if m.status[name] != "pending" {
			m.reset(name)
		}
	}
	m.unblock()
	return true
}

func (m *model) mark(ev engine.Mark) bool {
	to := ev.To.String()
	if m.cancelling() || m.numbered(ev.Task) || m.status[ev.Task] == to {
		return false
	}
	m.cancelled = false
	m.status[ev.Task] = to
	delete(m.notBefore, ev.Task)
	m.unblock()
	return true
}

// unblock opens whatever is upstream_failed without a reason.
func (m *model) unblock() {
	for again := true; again; {
		again = false
		for _, task := range m.tasks {
			if m.status[task.Name] == "upstream_failed" && m.verdict(task) != "impossible" {
				m.status[task.Name] = "pending"
				again = true
			}
		}
	}
}

// propagate lets every pending task look at its parents until nobody moves.
func (m *model) propagate() {
	for again := true; again; {
		again = false
		for _, task := range m.tasks {
			if m.status[task.Name] != "pending" {
				continue
			}
			switch m.verdict(task) {
			case "impossible":
				m.status[task.Name] = "upstream_failed"
				again = true
			case "met":
				if task.Condition == "" {
					m.status[task.Name] = "parked"
					again = true
				}
			}
		}
	}
}

// number gives the next numbers while there are slots: first who waited for the
// earliest time, then by position.
func (m *model) number(now time.Time) {
	var waiting []string
	active := 0
	for _, task := range m.tasks {
		if m.numbered(task.Name) {
			active++
		}
		if m.status[task.Name] == "parked" && !m.notBefore[task.Name].After(now) {
			waiting = append(waiting, task.Name)
		}
	}
	slices.SortStableFunc(waiting, func(a, b string) int { return m.notBefore[a].Compare(m.notBefore[b]) })
	for _, name := range waiting {
		if m.limit > 0 && active >= m.limit {
			return
		}
		active++
		m.status[name] = "ready"
		m.attempt[name]++
		delete(m.notBefore, name)
	}
}

// finish says how the workflow stands.
func (m *model) finish() {
	was := m.ended
	m.ended = ""
	counts := map[string]int{}
	bad := 0
	for _, task := range m.tasks {
		if !m.terminal(task.Name) {
			if was != "" {
				m.sent = false
			}
			return
		}
		m.giveBacks[task.Name] = 0
		counts[m.status[task.Name]]++
		isParent := slices.ContainsFunc(m.tasks, func(o dag.Task) bool { return slices.Contains(o.DependsOn, task.Name) })
		if !m.succeeded(task.Name) && (m.policy == dag.AllTasksSucceed || !isParent) {
			bad++
		}
	}
	switch {
	case bad == 0:
		m.ended = "completed"
	case m.cancelled || counts["failed"]+counts["upstream_failed"] == 0:
		m.ended = "cancelled"
	default:
		m.ended = "failed"
	}
}

func (m *model) index(name string) int {
	return slices.IndexFunc(m.tasks, func(t dag.Task) bool { return t.Name == name })
}

// String is the same picture as that of world.
func (m *model) String() string {
	var words []string
	for _, task := range m.tasks {
		words = append(words, task.Name+" "+m.status[task.Name])
	}
	whole := m.ended
	switch {
	case whole != "":
	case m.sent:
		whole = state.WorkflowRunning.String()
	default:
		whole = state.WorkflowPending.String()
	}
	return strings.Join(words, ", ") + ": " + whole
}
