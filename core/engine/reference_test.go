package engine_test

import (
	"slices"
	"strings"

	"jobq/core/dag"
	"jobq/core/engine"
	"jobq/core/state"
)

// reference says how every task ends in a run without commands, from nothing
// but the definition, how often each task's command fails before it succeeds,
// and what each condition says. It knows no events, no order and no counters:
// it asks every task again and again until nobody has news.
type reference struct {
	tasks    []dag.Task
	failures map[string]int
	verdicts map[string]engine.Outcome
	ended    map[string]state.TaskStatus
}

func (m *reference) run() {
	for news := true; news; {
		news = false
		for _, task := range m.tasks {
			if _, done := m.ended[task.Name]; done {
				continue
			}
			if status, decided := m.decide(task); decided {
				m.ended[task.Name] = status
				news = true
			}
		}
	}
}

// decide says how task ends, if its parents allow to say it.
func (m *reference) decide(task dag.Task) (state.TaskStatus, bool) {
	succeeded, failed := 0, 0
	for _, parent := range task.DependsOn {
		switch m.ended[parent] {
		case state.Completed, state.Skipped:
			succeeded++
		case state.Failed, state.UpstreamFailed:
			failed++
		}
	}
	open := len(task.DependsOn) - succeeded - failed

	switch {
	case len(task.DependsOn) == 0:
	case task.DepPolicy.Kind == dag.AllSettled:
		if open > 0 {
			return 0, false
		}
	default:
		need := map[dag.PolicyKind]int{dag.All: len(task.DependsOn), dag.Any: 1, dag.AtLeast: task.DepPolicy.N}[task.DepPolicy.Kind]
		if succeeded+open < need {
			return state.UpstreamFailed, true
		}
		if succeeded < need {
			return 0, false
		}
	}

	if task.Condition != "" {
		for _, parent := range namesIn(task.Condition) {
			if _, done := m.ended[parent]; !done {
				return 0, false
			}
		}
		switch m.verdicts[task.Name] {
		case engine.ConditionFalse, engine.ConditionUpstream:
			return state.Skipped, true
		case engine.ConditionError:
			return state.Failed, true
		}
	}

	if m.failures[task.Name] > task.NumRetries {
		return state.Failed, true
	}
	return state.Completed, true
}

// attempts is how many attempts of task are made.
func (m *reference) attempts(task dag.Task) uint32 {
	ran := m.ended[task.Name] == state.Completed || m.ended[task.Name] == state.Failed
	if !ran || task.Condition != "" && m.verdicts[task.Name] == engine.ConditionError {
		return 0
	}
	return uint32(min(m.failures[task.Name], task.NumRetries) + 1)
}

// workflow is how the whole ends.
func (m *reference) workflow(policy dag.ResultPolicy) state.WorkflowStatus {
	isParent := map[string]bool{}
	for _, task := range m.tasks {
		for _, parent := range task.DependsOn {
			isParent[parent] = true
		}
	}
	for _, task := range m.tasks {
		bad := m.ended[task.Name] == state.Failed || m.ended[task.Name] == state.UpstreamFailed
		if bad && (policy == dag.AllTasksSucceed || !isParent[task.Name]) {
			return state.WorkflowFailed
		}
	}
	return state.WorkflowCompleted
}

// namesIn reads the conditions of these tests.
func namesIn(condition string) []string {
	return slices.DeleteFunc(strings.Fields(condition), func(s string) bool { return s == "-" })
}
