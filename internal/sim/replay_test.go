package sim

import (
	"os"
	"strconv"
	"testing"
)

// TestReplay prints the history that JOBQ_SIM_SEED and JOBQ_SIM_QUEUE name.
func TestReplay(t *testing.T) {
	text := os.Getenv("JOBQ_SIM_SEED")
	if text == "" {
		t.Skip("JOBQ_SIM_SEED names no history")
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	p := Storage
	if os.Getenv("JOBQ_SIM_QUEUE") == "servicebus" {
		p = ServiceBus
	}
	c := Draw(seed, p, AllFaults)
	c.Record = true
	w := Run(c)
	for _, line := range w.Lines() {
		t.Log(line)
	}
	t.Log(c.Faults, "sweeps", c.Sweeps, "coordinators", c.Coordinators, "network", c.Network, w.Violations)
}
