package coord

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"jobq/core/dag"
	"jobq/core/engine"
	"jobq/core/state"
)

// bulky returns the plan of a definition of its own whose command is large.
func bulky(t testing.TB, n int) *plan {
	t.Helper()
	cmd, err := json.Marshal(fmt.Sprintf("echo %d %s", n, strings.Repeat("x", 100<<10)))
	if err != nil {
		t.Fatal(err)
	}
	p, err := newPlan(&dag.Definition{Name: "bulky", DefaultQueue: "q", Tasks: []dag.Task{
		{Name: "A", Queue: "q", Kwargs: []dag.Kwarg{{Key: "cmd", Value: cmd}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func entryOf(t testing.TB, wf string, p *plan) *entry {
	t.Helper()
	run, err := engine.NewRun(p.Plan, state.New(wf, p.Len()))
	if err != nil {
		t.Fatal(err)
	}
	return &entry{run: run, plan: p, size: entrySize(100, p.Len())}
}

// A small state may belong to a large definition, which stays in memory with it.
func TestTheCacheCountsWhatItsEntriesKeepInMemory(t *testing.T) {
	t.Parallel()
	c := newCache(1 << 20)
	for i := range 100 {
		c.put(fmt.Sprintf("w%d", i), entryOf(t, fmt.Sprintf("w%d", i), bulky(t, i)))
	}
	if n := len(c.byID); n < 5 || n > 12 {
		t.Errorf("a cache of 1 MiB holds %d workflows with definitions of 100 KiB, want about ten", n)
	}
	for i := range 100 {
		c.take(fmt.Sprintf("w%d", i))
	}
	if c.size != 0 {
		t.Errorf("an empty cache has size %d", c.size)
	}

	// Workflows of one definition share it.
	p := bulky(t, 0)
	for i := range 100 {
		c.put(fmt.Sprintf("w%d", i), entryOf(t, fmt.Sprintf("w%d", i), p))
	}
	if n := len(c.byID); n != 100 {
		t.Errorf("a cache of 1 MiB holds %d workflows of one definition of 100 KiB, want 100", n)
	}
}

func TestTheCacheOfPlansCountsTheirBytes(t *testing.T) {
	t.Parallel()
	c := newPlanCache(1 << 20)
	for i := range 100 {
		c.put(bulky(t, i))
	}
	if n := len(c.byID); n < 5 || n > 12 {
		t.Errorf("a cache of 1 MiB holds %d plans of 100 KiB, want about ten", n)
	}
}
