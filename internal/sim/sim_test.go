package sim

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// instant is the clock of campaigns whose duration nobody asks for.
func instant() time.Time { return time.Time{} }

func TestRandomHistoriesKeepEveryPromise(t *testing.T) {
	t.Parallel()
	c := Campaign{First: 1, Last: 100, Personalities: Personalities(), Faults: AllFaults}
	sum := c.Run(instant)
	for _, f := range sum.Failures {
		var text bytes.Buffer
		Explain(&text, Shrink(f, 100))
		t.Errorf("%s\n%s", f.Command(), text.String())
	}
	if len(sum.Counts.Ended) < 3 {
		t.Errorf("the histories ended as %v; a campaign that sees no more checks little", sum.Counts.Ended)
	}
}

func TestOneSeedGivesOneHistory(t *testing.T) {
	t.Parallel()
	p := &pool{}
	defer p.close()
	for _, personality := range Personalities() {
		config := Draw(11, personality, AllFaults)
		config.Faults = AllFaults &^ deadly
		first := run(config, p)
		for range 99 {
			if w := run(config, p); w.Hash() != first.Hash() || w.Calls() != first.Calls() {
				t.Fatalf("on %s the history is %x of %d calls, then %x of %d", personality, first.Hash(), first.Calls(), w.Hash(), w.Calls())
			}
		}
		t.Logf("%s: %016x", personality, first.Hash())
	}
}

// TestRecordingChangesNothing holds the report to the history that failed.
func TestRecordingChangesNothing(t *testing.T) {
	t.Parallel()
	config := Draw(5, Storage, AllFaults)
	silent := Run(config)
	config.Record = true
	if told := Run(config); told.Hash() != silent.Hash() || len(told.Lines()) == 0 {
		t.Errorf("recorded, the history is %x, silent %x", told.Hash(), silent.Hash())
	}
}

func TestACrashAtEveryCallBreaksNothing(t *testing.T) {
	t.Parallel()
	p := &pool{}
	defer p.close()
	diamond := edges(1<<1 | 1<<2 | 1<<(4+3) | 1<<(8+3))
	for _, personality := range Personalities() {
		for _, c := range Crashes(1) {
			sum := c.Run(personality, instant, nil)
			if c.order == "" {
				c.everyCall(personality, diamond.small(4, smallPolicies()[0], 0), p, &sum)
			}
			for _, f := range sum.Failures {
				t.Errorf("%s on %s: %v (%s)", c.Name, personality, f.Violation, f.Config.What)
			}
			if sum.Histories < 10 {
				t.Errorf("%s on %s: only %d histories", c.Name, personality, sum.Histories)
			}
		}
	}
}

// TestGraphsAreCountedByShape compares with the known numbers of directed
// acyclic graphs without labels.
func TestGraphsAreCountedByShape(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]int{1: 1, 2: 2, 3: 6, 4: 31} {
		if got := len(graphsOf(n)); got != want {
			t.Errorf("%d graphs of %d tasks, want %d", got, n, want)
		}
	}
}

func TestShrinkingKeepsTheViolation(t *testing.T) {
	t.Parallel()
	// A world whose workers never come does not end: that is no defect of the
	// programs, but it is a violation to be made small.
	config := Draw(3, Storage, 0)
	config.Workers, config.Foreign, config.NoWorkers, config.Sweeps = 1, 0, false, false
	config.script = func(p *process, o op, _ string, _ bool) Fault {
		if p.role == workerRole && o == opReceive {
			return EmptyReceive
		}
		return none
	}
	w := Run(config)
	if len(w.Violations) == 0 {
		t.Fatal("a workflow without workers ended")
	}
	small := Shrink(Failure{config, w.Violations[0]}, 60)
	if small.Violation.Oracle != w.Violations[0].Oracle || len(small.Config.Workloads) > 1 {
		t.Errorf("shrunk to %d workflows and %v", len(small.Config.Workloads), small.Violation)
	}
	var text bytes.Buffer
	Explain(&text, small)
	if !strings.Contains(text.String(), "save state") && !strings.Contains(text.String(), "create state") {
		t.Errorf("the report shows no state that was stored:\n%s", text.String())
	}
}

// TestASlowWorkflowDelaysNoOther lets every save of one workflow take minutes.
func TestASlowWorkflowDelaysNoOther(t *testing.T) {
	t.Parallel()
	chain := edges(1<<1 | 1<<(4+2))
	for _, personality := range Personalities() {
		config := Config{
			Personality: personality, Network: Even, Coordinators: 1, Workers: 3, Slots: 4, Storm: 10 * time.Minute, steady: true,
			script: func(p *process, o op, key string, _ bool) Fault {
				if p.role == coordinatorRole && o == opSave && key == "slow" {
					return Slow
				}
				return none
			},
		}
		for _, id := range []string{"a", "slow", "b", "c"} {
			wl := chain.small(3, smallPolicies()[0], 0)
			wl.ID = id
			config.Workloads = append(config.Workloads, wl)
		}
		// Without the script's end the slow one would never be done.
		script := config.script
		config.script = func(p *process, o op, key string, empty bool) Fault {
			if p.calls > 2000 {
				return none
			}
			return script(p, o, key, empty)
		}
		w := Run(config)
		for _, v := range w.Violations {
			t.Errorf("on %s: %v", personality, v)
		}
		slow := w.ledger.workflows["slow"].endedAt
		for _, id := range []string{"a", "b", "c"} {
			if at := w.ledger.workflows[id].endedAt; at > time.Minute || at >= slow {
				t.Errorf("on %s workflow %s ended after %v, beside one that took %v", personality, id, at, slow)
			}
		}
	}
}
