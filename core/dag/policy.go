package dag

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// ResultPolicy decides when a workflow whose tasks have all ended counts as
// completed. The zero value is AllTasksSucceed.
type ResultPolicy uint8

const (
	// AllTasksSucceed wants every task completed or skipped.
	AllTasksSucceed ResultPolicy = iota
	// AllSinksSucceed wants every task without children completed or skipped.
	AllSinksSucceed
)

// String returns the word that a definition uses.
func (p ResultPolicy) String() string {
	if p == AllSinksSucceed {
		return "all_sinks_succeed"
	}
	return "all_tasks_succeed"
}

// MarshalText implements encoding.TextMarshaler.
func (p ResultPolicy) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *ResultPolicy) UnmarshalText(b []byte) error {
	switch string(b) {
	case "all_tasks_succeed":
		*p = AllTasksSucceed
	case "all_sinks_succeed":
		*p = AllSinksSucceed
	default:
		return fmt.Errorf("result_policy %q is neither all_tasks_succeed nor all_sinks_succeed", b)
	}
	return nil
}

// PolicyKind is the kind of a DepPolicy.
type PolicyKind uint8

const (
	// All runs when every parent succeeded.
	All PolicyKind = iota
	// Any runs when at least one parent succeeded.
	Any
	// AtLeast runs when N parents succeeded.
	AtLeast
	// AllSettled runs when every parent has ended, however it ended.
	AllSettled
)

// DepPolicy decides when a task may run, by how many of its parents succeeded
// (completed or skipped) and failed (failed, upstream_failed or cancelled).
// The zero value is All.
type DepPolicy struct {
	Kind PolicyKind
	// N is the number of AtLeast, 1 or more; 0 for the other kinds.
	N int
}

// Verdict is what a policy says about a task.
type Verdict uint8

const (
	// Wait means that the parents that have not ended still decide.
	Wait Verdict = iota
	// Run means that the policy is met.
	Run
	// Never means that the policy can no longer be met.
	Never
)

// Judge applies p to a task with total parents, of which succeeded and failed
// have ended. A task without parents may always run.
func (p DepPolicy) Judge(succeeded, failed, total int) Verdict {
	if total == 0 {
		return Run
	}
	switch p.Kind {
	case Any:
		return judgeAtLeast(1, succeeded, failed, total)
	case AtLeast:
		return judgeAtLeast(p.N, succeeded, failed, total)
	case AllSettled:
		if succeeded+failed == total {
			return Run
		}
		return Wait
	default:
		return judgeAtLeast(total, succeeded, failed, total)
	}
}

func judgeAtLeast(need, succeeded, failed, total int) Verdict {
	switch {
	case succeeded >= need:
		return Run
	case total-failed < need:
		return Never
	default:
		return Wait
	}
}

// String returns the word or number that a definition uses.
func (p DepPolicy) String() string {
	switch p.Kind {
	case Any:
		return "any"
	case AtLeast:
		return strconv.Itoa(p.N)
	case AllSettled:
		return "all_settled"
	default:
		return "all"
	}
}

// MarshalJSON writes the word as a string and N as a number.
func (p DepPolicy) MarshalJSON() ([]byte, error) {
	if p.Kind == AtLeast {
		return json.Marshal(p.N)
	}
	return json.Marshal(p.String())
}

// UnmarshalJSON reads what MarshalJSON writes.
func (p *DepPolicy) UnmarshalJSON(b []byte) error {
	var n int
	if json.Unmarshal(b, &n) == nil {
		*p = DepPolicy{Kind: AtLeast, N: n}
		return nil
	}
	var word string
	if err := json.Unmarshal(b, &word); err != nil {
		return err
	}
	switch word {
	case "all":
		*p = DepPolicy{Kind: All}
	case "any":
		*p = DepPolicy{Kind: Any}
	case "all_settled":
		*p = DepPolicy{Kind: AllSettled}
	default:
		return fmt.Errorf("dep_policy %q is not all, any, all_settled or a number", word)
	}
	return nil
}
