package e2e

import (
	"context"
	"flag"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"jobq/core/spec"
	"jobq/internal/azurite"
	"jobq/internal/busstand"
)

// emulator is the one Azurite of this package.
var emulator azurite.Shared

// TestMain lets more tests wait at a time than there are processors: most of them
// wait for programs, and those for a service.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	code := m.Run()
	emulator.Close()
	if built != "" {
		_ = os.RemoveAll(built)
	}
	os.Exit(code)
}

// workflows of the shared data and how they end.
var azureWorkflows = []struct {
	file, status string
	counts       map[string]int
}{
	{"argo-depends.yaml", "failed", map[string]int{"completed": 4, "failed": 1, "upstream_failed": 1}},
	{"wf-montage103.yaml", "completed", map[string]int{"completed": 103}},
	{"wf-rnaseq197.yaml", "completed", nil},
}

// TestSeparateProcessesOnAzureStorage runs submit, coordinator and workers as
// processes of their own against the emulator of Azure Storage.
func TestSeparateProcessesOnAzureStorage(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.env = emulator.Server(t).Env()
	runOnAzure(t, h, "devstoreaccount1/Demo")
}

// TestSeparateProcessesOnServiceBus is the same with the queues on the stand-in
// for Service Bus: nothing changes in the files.
func TestSeparateProcessesOnServiceBus(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	bus := busstand.New(busstand.Options{})
	connection, err := bus.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(bus.Close)
	endpoint, _, _ := strings.Cut(strings.TrimPrefix(connection, "Endpoint="), ";")
	h.env = append(emulator.Server(t).Env(), "JOBQ_SERVICEBUS_CONNECTION_STRING="+connection, "JOBQ_WORKFLOW_QUEUES="+endpoint)
	runOnAzure(t, h, "devstoreaccount1/Bus")
}

func runOnAzure(t *testing.T, h *home, place string) {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	start := func(args ...string) {
		cmd := h.command(ctx, args...)
		cmd.Stderr = os.Stderr
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
		cmd.WaitDelay = 20 * time.Second
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		wg.Go(func() { _ = cmd.Wait() })
	}
	storage, _, _ := strings.Cut(place, "/")
	queues := map[string]bool{}
	for _, w := range azureWorkflows {
		path := cases(t, w.file)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		d, _ := spec.Parse(w.file, text, nil)
		for i := range d.Tasks {
			queues[storage+"/"+d.Tasks[i].Queue] = true
		}
		h.mustRun(0, "workflow", place, "submit", path, "--id", strings.TrimSuffix(w.file, ".yaml"), "--quiet")
	}
	h.env = append(h.env, "JOBQ_WORKFLOW_PREFIX="+place)
	start("coordinator", "--quiet")
	for range 3 {
		args := []string{"worker", "-n", "4", "--quiet", "--max-idle-backoff", "0.5"}
		for q := range queues {
			args = append(args, q)
		}
		start(args...)
	}
	for _, w := range azureWorkflows {
		id := strings.TrimSuffix(w.file, ".yaml")
		s := h.await(id, patience)
		if s.Status != w.status {
			t.Errorf("%s is %s with %v, want %s", id, s.Status, s.Counts, w.status)
		}
		for status, n := range w.counts {
			if s.Counts[status] != n {
				t.Errorf("%s: %d %s, want %d", id, s.Counts[status], status, n)
			}
		}
	}
}

// patience is how long a workflow may take on the emulator of a busy machine.
const patience = 3 * time.Minute

// serve runs a coordinator and a worker for some queues until the test ends.
func (h *home) serve(queues ...string) {
	h.t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(h.t.Context()))
	var wg sync.WaitGroup
	h.t.Cleanup(func() { stop(); wg.Wait() })
	for _, args := range [][]string{
		{"coordinator", "--quiet"}, append([]string{"worker", "--quiet", "--max-idle-backoff", "0.5"}, queues...),
	} {
		cmd := h.command(ctx, args...)
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			h.t.Fatal(err)
		}
		wg.Go(func() { _ = cmd.Wait() })
	}
}

// await looks at a workflow until it has ended.
func (h *home) await(id string, patience time.Duration) summary {
	h.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		s := h.status(id)
		if s.Status != "pending" && s.Status != "running" || time.Now().After(deadline) {
			return s
		}
		<-time.After(500 * time.Millisecond)
	}
}
