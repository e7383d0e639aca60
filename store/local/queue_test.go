package local

import (
	"slices"
	"strings"
	"testing"
	"time"

	"jobq/core/port"
)

func TestQueuesOfWorkflowsThatEndedAreRemoved(t *testing.T) {
	t.Parallel()
	ctx, home := t.Context(), t.TempDir()
	s, other := openIn(t, home), openIn(t, home)
	queues, leases := s.Port().Queues, other.Port().Leases
	for _, name := range []string{"cpu", "main/done/cpu", "main/gone/cpu", "main/open/cpu", "main/full/cpu", "main/held/cpu", "main/woken/cpu", "mainly/done/cpu"} {
		if err := queues.Ensure(ctx, name); err != nil {
			t.Fatal(err)
		}
	}
	for workflow, status := range map[string]string{"done": "failed", "open": "running", "full": "completed", "held": "completed", "woken": "cancelled"} {
		if _, err := s.Port().Index.Project(ctx, port.Row{Workflow: workflow, Status: status}, ""); err != nil {
			t.Fatal(err)
		}
	}
	if errs := queues.Queue("main/full/cpu").Send(ctx, []port.Message{{ID: "m"}}); errs != nil {
		t.Fatal(errs[0])
	}
	for _, name := range []string{"main/woken/cpu", "main/held/cpu", "main/open/cpu", "mainly/done/cpu"} {
		if errs := queues.Queue(name).Send(ctx, []port.Message{{Body: []byte("wake")}, {Body: []byte("wake"), Delay: time.Hour}}); errs != nil {
			t.Fatal(errs[0])
		}
	}
	if err := leases.Acquire(ctx, "run/held", "me", time.Hour); err != nil {
		t.Fatal(err)
	}
	spare := func(body []byte) bool { return string(body) == "wake" }
	left := func() []string {
		t.Helper()
		if err := s.RemoveQueues(ctx, "main/", func(workflow string) string { return "run/" + workflow }, spare); err != nil {
			t.Fatal(err)
		}
		names, err := s.queuesBelow(ctx, "")
		if err != nil {
			t.Fatal(err)
		}
		return slices.DeleteFunc(names, func(name string) bool { return strings.HasSuffix(name, "-failed") })
	}
	if got, want := left(), []string{"cpu", "main/full/cpu", "main/held/cpu", "main/open/cpu", "mainly/done/cpu"}; !slices.Equal(got, want) {
		t.Errorf("queues = %q, want %q", got, want)
	}
	// Its owner dies.
	other.Kill()
	if got, want := left(), []string{"cpu", "main/full/cpu", "main/open/cpu", "mainly/done/cpu"}; !slices.Equal(got, want) {
		t.Errorf("queues = %q, want %q", got, want)
	}
	for name, want := range map[string]int{"main/full/cpu": 1, "main/open/cpu": 2, "mainly/done/cpu": 2} {
		if n, err := queues.Queue(name).Count(ctx); err != nil || n != want {
			t.Errorf("%s holds %d messages, %v; want %d", name, n, err, want)
		}
	}
	if err := queues.Ensure(ctx, "main/done/cpu"); err != nil {
		t.Fatal(err)
	}
	if errs := queues.Queue("main/done/cpu").Send(ctx, []port.Message{{ID: "again"}}); errs != nil {
		t.Fatal(errs[0])
	}
	if d, _ := receiveOne(t, queues.Queue("main/done/cpu"), time.Minute); d.ID != "again" {
		t.Errorf("received %q from a queue that was made anew", d.ID)
	}
}
