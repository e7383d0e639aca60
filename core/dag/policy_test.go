package dag

import (
	"encoding/json"
	"testing"
)

func TestJudge(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		policy                   DepPolicy
		succeeded, failed, total int
		want                     Verdict
	}{
		"without parents every policy runs":           {DepPolicy{AtLeast, 1}, 0, 0, 0, Run},
		"all waits for the last parent":               {DepPolicy{}, 2, 0, 3, Wait},
		"all runs when every parent succeeded":        {DepPolicy{}, 3, 0, 3, Run},
		"all gives up on the first failure":           {DepPolicy{}, 1, 1, 3, Never},
		"any waits while one may still succeed":       {DepPolicy{Kind: Any}, 0, 2, 3, Wait},
		"any runs on the first success":               {DepPolicy{Kind: Any}, 1, 1, 3, Run},
		"any gives up when every parent failed":       {DepPolicy{Kind: Any}, 0, 3, 3, Never},
		"at least two waits on one success":           {DepPolicy{AtLeast, 2}, 1, 1, 3, Wait},
		"at least two runs on the second success":     {DepPolicy{AtLeast, 2}, 2, 1, 3, Run},
		"at least two gives up on the second failure": {DepPolicy{AtLeast, 2}, 0, 2, 3, Never},
		"all_settled waits for the last parent":       {DepPolicy{Kind: AllSettled}, 0, 2, 3, Wait},
		"all_settled runs after failures":             {DepPolicy{Kind: AllSettled}, 0, 3, 3, Run},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := tc.policy.Judge(tc.succeeded, tc.failed, tc.total); got != tc.want {
				t.Errorf("%v.Judge(%d, %d, %d) = %v, want %v", tc.policy, tc.succeeded, tc.failed, tc.total, got, tc.want)
			}
		})
	}
}

func TestPoliciesAsJSON(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]DepPolicy{
		`"all"`: {}, `"any"`: {Kind: Any}, `"all_settled"`: {Kind: AllSettled}, `3`: {AtLeast, 3},
	} {
		var p DepPolicy
		if err := json.Unmarshal([]byte(text), &p); err != nil || p != want {
			t.Errorf("Unmarshal(%s) = %v, %v, want %v", text, p, err, want)
		}
		if b, err := json.Marshal(want); err != nil || string(b) != text {
			t.Errorf("Marshal(%v) = %s, %v, want %s", want, b, err, text)
		}
	}
	for text, want := range map[string]ResultPolicy{`"all_tasks_succeed"`: AllTasksSucceed, `"all_sinks_succeed"`: AllSinksSucceed} {
		var p ResultPolicy
		if err := json.Unmarshal([]byte(text), &p); err != nil || p != want {
			t.Errorf("Unmarshal(%s) = %v, %v, want %v", text, p, err, want)
		}
		if b, err := json.Marshal(want); err != nil || string(b) != text {
			t.Errorf("Marshal(%v) = %s, %v, want %s", want, b, err, text)
		}
	}
	for _, text := range []string{`"most"`, `true`, `{}`} {
		if err := json.Unmarshal([]byte(text), new(DepPolicy)); err == nil {
			t.Errorf("DepPolicy accepts %s", text)
		}
		if err := json.Unmarshal([]byte(text), new(ResultPolicy)); err == nil {
			t.Errorf("ResultPolicy accepts %s", text)
		}
	}
}
