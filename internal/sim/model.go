package sim

import (
	"fmt"
	"slices"

	"jobq/core/cond"
	"jobq/core/dag"
	"jobq/core/state"
)

// model is the rules of DESIGN §7, written to be obvious and not to be fast: it
// keeps nothing that it could count again. It shares no line with the engine.
type model struct {
	d         *dag.Definition
	tasks     []modelTask
	cancelled bool
}

// modelTask is one task. A live one is ready or running.
type modelTask struct {
	status   string // pending, live, completed, failed, upstream_failed, skipped or cancelled
	failures uint32
	// numbered says that the stored state had an attempt of it that may run.
	numbered bool
	output   []byte
}

func newModel(d *dag.Definition) *model {
	m := &model{d: d, tasks: make([]modelTask, len(d.Tasks))}
	for t := range m.tasks {
		m.tasks[t].status = "pending"
	}
	return m
}

func (m *model) clone() *model {
	c := *m
	c.tasks = slices.Clone(m.tasks)
	return &c
}

func (m *model) find(name string) int {
	return slices.IndexFunc(m.d.Tasks, func(t dag.Task) bool { return t.Name == name })
}

func terminal(status string) bool { return status != "pending" && status != "live" }

func succeeded(status string) bool { return status == "completed" || status == "skipped" }

// policy says what the parents of t mean for it: run, never or wait.
func (m *model) policy(t int) string {
	task := &m.d.Tasks[t]
	good, bad := 0, 0
	for _, name := range task.DependsOn {
		switch status := m.tasks[m.find(name)].status; {
		case succeeded(status):
			good++
		case terminal(status):
			bad++
		}
	}
	total := len(task.DependsOn)
	need := total
	switch task.DepPolicy.Kind {
	case dag.Any:
		need = min(1, total)
	case dag.AtLeast:
		need = min(task.DepPolicy.N, total)
	case dag.AllSettled:
		if good+bad == total {
			return "run"
		}
		return "wait"
	}
	switch {
	case good >= need:
		return "run"
	case total-bad < need:
		return "never"
	}
	return "wait"
}

// condition evaluates the condition of t, or says that a parent which it names
// has not ended.
func (m *model) condition(t int) (status string, waits bool) {
	task := &m.d.Tasks[t]
	program, faults := cond.Compile(task.Condition, task.DependsOn)
	if len(faults) > 0 {
		return "failed", false
	}
	inputs := map[string]cond.Input{}
	for _, name := range program.References() {
		parent := m.tasks[m.find(name)]
		if !terminal(parent.status) {
			return "", true
		}
		in := cond.Input{Completed: parent.status == "completed"}
		if in.Completed {
			in.Output = parent.output
		}
		inputs[name] = in
	}
	switch result := program.Evaluate(inputs); {
	case result.Outcome == cond.True:
		return "live", false
	case result.Outcome == cond.False:
		return "skipped", false
	case slices.ContainsFunc(result.Blames, func(name string) bool { return !inputs[name].Completed }):
		return "skipped", false
	}
	return "failed", false
}

// follow does what the statuses lead to, until nothing does. A condition that
// open says is not evaluated yet stays so.
func (m *model) follow(open func(t int) bool) {
	for moved := true; moved; {
		moved = false
		for t := range m.tasks {
			if m.tasks[t].status != "pending" {
				continue
			}
			next := "pending"
			switch m.policy(t) {
			case "never":
				next = "upstream_failed"
			case "run":
				next = m.runnable(t, open)
			}
			if next != "pending" {
				m.tasks[t].status, m.tasks[t].numbered = next, false
				moved = true
			}
		}
	}
}

func (m *model) runnable(t int, open func(t int) bool) string {
	if m.d.Tasks[t].Condition == "" {
		return "live"
	}
	if open(t) {
		return "pending"
	}
	status, waits := m.condition(t)
	if waits {
		return "pending"
	}
	return status
}

// ending is how an attempt ended, as the rules see it.
type modelEnding struct {
	how    string // success, failure, final (no retry helps), or stopped
	output []byte
}

func (m *model) end(t int, e modelEnding) {
	task := &m.tasks[t]
	switch e.how {
	case "success":
		task.status, task.output = "completed", e.output
	case "stopped":
		if m.cancelled {
			task.status = "cancelled"
		}
	default:
		task.failures++
		if m.cancelled || e.how == "final" || task.failures > uint32(m.d.Tasks[t].NumRetries) {
			task.status = "failed"
		}
	}
	task.numbered = false
}

// command does what an accepted command does. cancelledNow says of a task that
// may have been waiting for a number whether the cancel ended it.
func (m *model) command(o *order, cancelledNow func(t int) bool) error {
	switch o.kind {
	case "cancel":
		m.cancelled = true
		for t := range m.tasks {
			task := &m.tasks[t]
			if task.status == "pending" || task.status == "live" && !task.numbered && cancelledNow(t) {
				task.status = "cancelled"
			}
		}
	case "retry":
		m.cancelled = false
		for t := range m.tasks {
			if status := m.tasks[t].status; terminal(status) && !succeeded(status) {
				m.tasks[t] = modelTask{status: "pending"}
			}
		}
	case "rerun":
		return m.rerun(o)
	case "mark":
		m.cancelled = false
		t := m.find(o.tasks[0])
		if m.tasks[t].numbered {
			return fmt.Errorf("%s was marked while an attempt of it could run", o.tasks[0])
		}
		m.tasks[t].status, m.tasks[t].output = o.to.String(), nil
		m.unblock()
	}
	return nil
}

// selected are the tasks that a rerun is about.
func (m *model) selected(o *order) map[string]bool {
	selected := map[string]bool{}
	for _, name := range o.tasks {
		selected[name] = true
	}
	for grown := o.downstream; grown; {
		grown = false
		for _, task := range m.d.Tasks {
			if !selected[task.Name] && slices.ContainsFunc(task.DependsOn, func(p string) bool { return selected[p] }) {
				selected[task.Name], grown = true, true
			}
		}
	}
	return selected
}

func (m *model) rerun(o *order) error {
	m.cancelled = false
	selected := m.selected(o)
	for t := range m.tasks {
		if !selected[m.d.Tasks[t].Name] || m.tasks[t].status == "pending" {
			continue
		}
		if m.tasks[t].numbered {
			return fmt.Errorf("%s was to run again while an attempt of it could run", m.d.Tasks[t].Name)
		}
		m.tasks[t] = modelTask{status: "pending"}
	}
	m.unblock()
	return nil
}

// refuses reports whether a command cannot be carried out as things are.
func (m *model) refuses(o *order) bool {
	ended := m.result() != ""
	cancelling := m.cancelled && !ended
	switch o.kind {
	case "cancel":
		return ended || m.cancelled
	case "purge":
		return !ended
	case "retry":
		return cancelling || !slices.ContainsFunc(m.tasks, func(t modelTask) bool { return terminal(t.status) && !succeeded(t.status) })
	case "mark":
		t := m.find(o.tasks[0])
		return cancelling || t < 0 || m.tasks[t].numbered || m.tasks[t].status == o.to.String()
	default:
		return cancelling || m.refusesRerun(m.selected(o))
	}
}

func (m *model) refusesRerun(selected map[string]bool) bool {
	ended := false
	for t, task := range m.tasks {
		if !selected[m.d.Tasks[t].Name] {
			continue
		}
		if task.numbered {
			return true
		}
		ended = ended || terminal(task.status)
	}
	return !ended
}

// unblock gives tasks another chance whose policy can be met again.
func (m *model) unblock() {
	for moved := true; moved; {
		moved = false
		for t := range m.tasks {
			if m.tasks[t].status == "upstream_failed" && m.policy(t) != "never" {
				m.tasks[t].status, moved = "pending", true
			}
		}
	}
}

// result is the status of the whole, "" while something can still move.
func (m *model) result() string {
	good, sinksGood, bad := true, true, 0
	for t := range m.tasks {
		status := m.tasks[t].status
		if !terminal(status) {
			return ""
		}
		if succeeded(status) {
			continue
		}
		good = false
		name := m.d.Tasks[t].Name
		if !slices.ContainsFunc(m.d.Tasks, func(c dag.Task) bool { return slices.Contains(c.DependsOn, name) }) {
			sinksGood = false
		}
		if status != "cancelled" {
			bad++
		}
	}
	switch {
	case good, m.d.ResultPolicy == dag.AllSinksSucceed && sinksGood:
		return "completed"
	case m.cancelled || bad == 0:
		return "cancelled"
	}
	return "failed"
}

// class is the word of the model for a stored status.
func class(s state.TaskStatus) string {
	if s == state.Parked || s.Numbered() {
		return "live"
	}
	return s.String()
}

// differs says where a stored state is not what the model has, "" for nowhere.
func (m *model) differs(s *state.Workflow) string {
	for t := range m.tasks {
		name := m.d.Tasks[t].Name
		if got, want := class(s.TaskStatus[t]), m.tasks[t].status; got != want {
			return fmt.Sprintf("task %s is %s, the rules say %s", name, got, want)
		}
		if got, want := s.Failures[t], m.tasks[t].failures; got != want {
			return fmt.Sprintf("task %s has used %d of its budget, the rules say %d", name, got, want)
		}
	}
	if s.CancelRequested != m.cancelled {
		return fmt.Sprintf("its cancel flag is %v, the rules say %v", s.CancelRequested, m.cancelled)
	}
	got, want := "", m.result()
	if s.Status.Ended() {
		got = s.Status.String()
	}
	if got != want {
		return fmt.Sprintf("it is %s, the rules say %q", s.Status, want)
	}
	return ""
}

// adopt notes which attempts of s may run.
func (m *model) adopt(s *state.Workflow) {
	for t := range m.tasks {
		m.tasks[t].numbered = s.TaskStatus[t].Numbered()
	}
}
